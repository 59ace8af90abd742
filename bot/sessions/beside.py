"""What goes on beside a run. A part that fails is tried again: the agent must not get rid of one by spoiling it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bot.errors import BotError
from bot.models import Outcome
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

T = TypeVar("T")

log = logging.getLogger(__name__)

AGAIN_SECONDS = 0.5
DISK_LOOK_SECONDS = 1.0
GRACE_SECONDS = 3.0
SPARE_BYTES = 4 << 30
SPARE_SHARE = 0.1
"""What must stay free of the host's disk: the smaller of the two."""
SPARE_FILES = 200_000
"""Likewise of the files that it can hold."""
SMALL_BYTES = 1 << 30
SMALL_FILES = 50_000
"""An environment that takes less is not who fills it."""


class DiskFilled(SandboxError):
    """A command was ended because the disk was running full."""


Part = Callable[[Services, Turn, ExecutionEnvironment], Awaitable[None]]


async def keep_up(part: Part, services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Repeats the part until it has done what it is there for."""
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


async def spared(
    services: Services, environment: ExecutionEnvironment, command: str, work: Coroutine[Any, Any, T]
) -> T:
    """The same of a command that is no agent's: DiskFilled once it was ended, with all that it has started."""
    doing = asyncio.ensure_future(work)
    try:
        while not doing.done():
            await asyncio.wait({doing}, timeout=DISK_LOOK_SECONDS)
            if not doing.done() and services.settings.e2b is None and await _seems_to_fill(services, environment):
                break
        else:
            return doing.result()
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
    await environment.primitives.still()
    raise DiskFilled(endings.command_filled_the_disk(command))


async def _seems_to_fill(services: Services, environment: ExecutionEnvironment) -> bool:
    try:
        return await _fills_the_disk(services, environment)
    except SandboxError:  # the command meets it too, and says so
        return False


async def _fills_the_disk(services: Services, environment: ExecutionEnvironment) -> bool:
    """Counts as too much what cannot be counted: millions of files spare nobody."""
    places = (services.settings.data_dir, *services.disks)
    short_of_bytes, short_of_files = await asyncio.to_thread(_short, places)
    if not (short_of_bytes or short_of_files):
        return False
    used = await environment.primitives.metrics()
    large = (short_of_bytes and used.disk_bytes > SMALL_BYTES) or (short_of_files and used.disk_files > SMALL_FILES)
    return large or not used.disk_counted


def _short(places: Sequence[Path]) -> tuple[bool, bool]:
    """Tells whether bytes run out there, and whether files do, where the disk counts its files."""
    found = [os.statvfs(place) for place in places]
    in_bytes = [(one.f_bavail * one.f_frsize, one.f_blocks * one.f_frsize) for one in found]
    in_files = [(one.f_favail, one.f_files) for one in found if one.f_files]
    return (
        any(free < min(SPARE_BYTES, whole * SPARE_SHARE) for free, whole in in_bytes),
        any(free < min(SPARE_FILES, whole * SPARE_SHARE) for free, whole in in_files),
    )
