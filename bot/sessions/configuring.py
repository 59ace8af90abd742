"""The repository's config for a turn that begins: from the default branch, never from what is worked on."""

from __future__ import annotations

from bot import account_settings, repo_config
from bot.repo_config import RepoConfig
from bot.sessions.services import Services
from bot.store import choices
from bot.store.sessions import Session


async def read(services: Services, session: Session) -> RepoConfig:
    """Where the repository has no file of its own, what its account has chosen."""
    repo = session.thread.repo
    raw = await services.github.installation(session.installation_id).file(repo, repo_config.PATH, repo.default_branch)
    if raw is not None:
        return repo_config.parse(raw)
    return account_settings.config_without_file(await choices.of(services.store, session.installation_id))
