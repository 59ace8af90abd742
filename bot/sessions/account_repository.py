"""Reads an account's own repository, `.github`, for what all its repositories share: defaults and know-how."""

from __future__ import annotations

import asyncio

from bot import repo_config
from bot.agent.material import KNOW_HOW
from bot.errors import BadRepoConfig, GitHubRefused
from bot.github.client import InstallationClient
from bot.models import ACCOUNT_REPOSITORY, Repo
from bot.store import accounts
from bot.store.accounts import AccountRepository
from bot.store.base import Store

FRESH_SECONDS = 300.0
"""A push to it has it read again at once; this is for pushes that nobody told us of."""


async def of(reads: InstallationClient, store: Store, account: str) -> AccountRepository:
    """Return the account's own repository as it was lately."""
    known = await accounts.own_repository(store, reads.id)
    if known is not None and 0 <= store.now() - known.read_at < FRESH_SECONDS:
        return known
    found = await read(reads, account, store.now())
    await accounts.put_own_repository(store, reads.id, found, known)
    return found


def shares_with(shared: AccountRepository, repo: Repo) -> Repo | None:
    """Return the account's repository if its know-how reaches another one."""
    if shared.repo is None or not shared.know_how or shared.repo.id == repo.id:
        return None
    return None if is_silent(shared, repo) else shared.repo


def is_silent(shared: AccountRepository, repo: Repo) -> bool:
    """Decide whether its words stay out of a repository's threads: an agent could repeat private ones in public."""
    return shared.repo is not None and shared.repo.private and not repo.private


async def read(reads: InstallationClient, account: str, now: float) -> AccountRepository:
    """A token for the repository is refused if the App is not installed on it, even if anybody may read it."""
    nothing = AccountRepository(None, None, None, know_how=False, read_at=now)
    try:
        seen = await reads.repo(f"{account}/{ACCOUNT_REPOSITORY}")
        if (seen.owner.lower(), seen.name.lower()) != (account.lower(), ACCOUNT_REPOSITORY):  # it was moved or renamed
            return nothing
        repo = Repo(seen.id, seen.owner, seen.name, seen.private, seen.default_branch)
        names = {f".claude/{one.name}/" for one in await reads.folder(repo, ".claude", repo.default_branch)}
    except GitHubRefused:
        return nothing
    config = problem = None
    try:
        if (raw := await reads.file(repo, repo_config.PATH, repo.default_branch)) is not None:
            await asyncio.to_thread(repo_config.parse, raw)
            config = raw.decode("utf-8-sig")
    except (BadRepoConfig, GitHubRefused) as error:  # such as a file that GitHub does not give out because of its size
        problem = str(error)
    return AccountRepository(repo, config, problem, know_how=not names.isdisjoint(KNOW_HOW), read_at=now)
