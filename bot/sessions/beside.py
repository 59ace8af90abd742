"""What goes on beside a run. A part that fails is tried again: the agent must not get rid of one by spoiling it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable

from bot.errors import BotError
from bot.models import Outcome
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

log = logging.getLogger(__name__)

AGAIN_SECONDS = 0.5
DISK_LOOK_SECONDS = 1.0
GRACE_SECONDS = 3.0
SPARE_BYTES = 4 << 30
SPARE_SHARE = 0.1
"""What must stay free of the host's disk: the smaller of the two."""
SMALL_BYTES = 1 << 30
"""An environment that takes less is not who fills it."""

Part = Callable[[Services, Turn, ExecutionEnvironment], Awaitable[None]]


async def keep_up(part: Part, services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Until it has done what it is there for."""
    while True:
        try:
            await part(services, turn, environment)
        except EnvironmentGone:
            return  # whoever follows the run meets it too, and says so
        except (BotError, SandboxError) as error:
            log.warning("will be tried again", extra={"turn": turn.key.workflow_id, "error": str(error)})
        except Exception:  # a bug here must not leave a run without its limits
            log.exception("bug beside a run", extra={"turn": turn.key.workflow_id})
        else:
            return
        await asyncio.sleep(AGAIN_SECONDS)


async def spare_the_disk(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Local boxes write to the disk that our store is on: whoever fills it is ended before nothing can be stored."""
    if services.settings.e2b is not None:
        return
    while True:
        if await _fills_the_disk(services, environment):
            break
        await asyncio.sleep(DISK_LOOK_SECONDS)
    await sessions.decide(services.store, turn.key, Outcome.KILLED, endings.filled_the_disk())
    await environment.stop(turn.key.n, GRACE_SECONDS)


async def _fills_the_disk(services: Services, environment: ExecutionEnvironment) -> bool:
    disk = await asyncio.to_thread(shutil.disk_usage, services.settings.data_dir)
    if disk.free >= min(SPARE_BYTES, disk.total * SPARE_SHARE):
        return False
    return (await environment.primitives.metrics()).disk_bytes > SMALL_BYTES
