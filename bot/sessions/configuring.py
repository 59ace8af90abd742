"""The repository's config for a turn that begins: from the default branch, never from what is worked on."""

from __future__ import annotations

import asyncio

from bot import account_settings, repo_config
from bot.github.client import InstallationClient
from bot.models import Repo
from bot.repo_config import RepoConfig
from bot.sessions.services import Services
from bot.store import choices
from bot.store.base import Store
from bot.store.sessions import Session


async def read(services: Services, session: Session) -> RepoConfig:
    return await of(services.github.installation(session.installation_id), session.thread.repo, services.store)


async def of(reads: InstallationClient, repo: Repo, store: Store) -> RepoConfig:
    """Where the repository has no file of its own, what its account has chosen."""
    if (raw := await reads.file(repo, repo_config.PATH, repo.default_branch)) is not None:
        return await asyncio.to_thread(repo_config.parse, raw)
    if await reads.file(repo, repo_config.MISNAMED, repo.default_branch) is not None:
        raise repo_config.misnamed()
    return account_settings.config_without_file(await choices.of(store, reads.id))
