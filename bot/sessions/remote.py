"""The way to a repository's git server, with a token minted for this moment and purpose."""

from __future__ import annotations

from bot.git.access import RemoteAccess
from bot.github.types import Purpose
from bot.models import Thread
from bot.sessions.services import Services


async def remote_access(services: Services, thread: Thread, purpose: Purpose) -> RemoteAccess:
    token = await services.github.installation(thread.installation).token(purpose, thread.repo.id, fresh=True)
    return RemoteAccess(f"{services.settings.github.url}/{thread.repo.full_name}.git", token)
