"""The way to a repository's git server, with a token minted for this moment and purpose."""

from __future__ import annotations

from typing import Protocol

from bot.errors import GitHubRefused, TransientError
from bot.git.cache import Comparison
from bot.git.errors import RepositoryUnsupported
from bot.git.run import RemoteAccess
from bot.github.client import GitHubApp
from bot.github.types import TokenPurpose
from bot.kinds.resolve import Merge
from bot.models import Repo, Thread
from bot.sessions.services import Services
from bot.settings import Settings
from bot.store import repos, sessions
from bot.store.sessions import Turn

MOVED = (301, 302, 307, 308)
JOINED_DEPTH = 2000
"""Commits of history where both sides must reach back to where they parted."""


class Reach(Protocol):
    """What it takes to reach a repository."""

    @property
    def settings(self) -> Settings: ...
    @property
    def github(self) -> GitHubApp: ...


async def remote_access(services: Reach, thread: Thread, purpose: TokenPurpose) -> RemoteAccess:
    token = await services.github.installation(thread.installation).token(purpose, thread.repo.id, fresh=True)
    return RemoteAccess(f"{services.settings.github.url}/{thread.repo.full_name}.git", token)


async def compared(
    services: Services, thread: Thread, base: tuple[str, str], head: tuple[str, str], *, max_bytes: int
) -> Comparison | None:
    """`base` and `head`: a commit that was fetched, and its ref; with more of their history where that is short."""
    repo, cache = thread.repo.id, services.cache
    found = await cache.compare(repo, base[0], head[0], max_bytes=max_bytes)
    if found is None:
        access = await remote_access(services, thread, TokenPurpose.READ_REPOSITORY)
        try:
            for _, ref in (base, head):
                await cache.fetch(repo, access, ref, depth=JOINED_DEPTH)
        except RepositoryUnsupported:  # so much of its history is too large: that is no reason to do without the rest
            return None
        found = await cache.compare(repo, base[0], head[0], max_bytes=max_bytes)
    return found


async def follow_move(services: Services, turn: Turn, refusal: GitHubRefused) -> None:
    """Raises TransientError where git was refused because the repository has another name now: try again with that."""
    if refusal.status not in MOVED:
        return
    thread = (await sessions.session(services.store, turn.key.session)).thread
    found = await services.github.installation(thread.installation).repo(thread.repo.full_name)
    if found.id == thread.repo.id and found.full_name != thread.repo.full_name:
        repo = Repo(found.id, found.owner, found.name, found.private, found.default_branch)
        await repos.upsert_repo(services.store, repo, thread.installation)
        raise TransientError(f"the repository is called {found.full_name} now", retry_after=0.0)


async def restore_mirror(services: Services, turn: Turn) -> None:
    """The cached repository is gone: bring the pinned commit back, so that the step can be repeated."""
    if turn.base_sha is None:
        return
    thread = (await sessions.session(services.store, turn.key.session)).thread
    access = await remote_access(services, thread, TokenPurpose.READ_REPOSITORY)
    merged = turn.part(Merge).sha
    if merged is None or turn.tip_sha is None:
        await services.cache.fetch(thread.repo.id, access, turn.base_sha)
        return
    for sha in (turn.tip_sha, merged):  # what the host has joined is at no remote
        await services.cache.fetch(thread.repo.id, access, sha, depth=JOINED_DEPTH)
    await services.cache.join(thread.repo.id, turn.tip_sha, merged)
