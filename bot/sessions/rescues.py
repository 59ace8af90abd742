"""Refs with work that was cut short expire: when their time is over they are taken away, if they are ours still."""

from __future__ import annotations

import logging

from bot.errors import BotError, GitHubRefused
from bot.git.removal import Removed
from bot.github.types import TokenPurpose
from bot.sessions.remote import remote_access
from bot.sessions.services import Services
from bot.store import audit, rescues, sessions
from bot.store.rescues import Rescue
from bot.store.upkeep import DAY

log = logging.getLogger(__name__)


def until(services: Services) -> float:
    """Of a ref that is made now."""
    return services.clock() + services.settings.limits.rescue_days * DAY


async def expire(services: Services) -> None:
    """What GitHub does not answer is tried again at the next look; what it refuses is not ours to remove."""
    for one in await rescues.due(services.store, services.settings.limits.rescue_days * DAY):
        try:
            became = str(await _remove(services, one))
        except GitHubRefused as error:
            became = f"could not be removed: GitHub refused it ({error.status})"
        except BotError as error:
            log.warning("a rescue ref waits", extra={"ref": one.rescue_ref, "error": str(error)})
            continue
        await rescues.gone(services.store, one)
        await audit.add(services.store, "forgehand", "rescue ref expired", one.rescue_ref, became)


async def _remove(services: Services, one: Rescue) -> Removed:
    session = await sessions.session(services.store, one.session_id)
    access = await remote_access(services, session.thread, TokenPurpose.PUSH)
    return await services.cache.remove_ref(access, one.rescue_ref, one.commit_sha)
