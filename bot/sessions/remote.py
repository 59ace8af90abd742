"""The way to a repository's git server, with a token minted for this moment and purpose."""

from __future__ import annotations

from bot.git.access import RemoteAccess
from bot.github.types import Purpose
from bot.models import Thread
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn


async def remote_access(services: Services, thread: Thread, purpose: Purpose) -> RemoteAccess:
    token = await services.github.installation(thread.installation).token(purpose, thread.repo.id, fresh=True)
    return RemoteAccess(f"{services.settings.github.url}/{thread.repo.full_name}.git", token)


async def restore_mirror(services: Services, turn: Turn) -> None:
    """The cached repository is gone: bring the pinned commit back, so that the step can be repeated."""
    if turn.base_sha is None:
        return
    thread = (await sessions.session(services.store, turn.key.session)).thread
    access = await remote_access(services, thread, Purpose.READ_REPOSITORY)
    await services.cache.fetch(thread.repo.id, access, turn.base_sha)
