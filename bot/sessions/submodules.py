"""Decides which submodules a turn gets, fetches them, and judges where the work moves their pointers.

The commit says only which commits it wants. Which repositories these are, the `.gitmodules` of the default branch says:
whoever can push a branch could otherwise name any repository of the installation.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.errors import GitHubRefused, UserError
from bot.git import submodules
from bot.git.errors import BadName, GitFailed, RefMissing, RepositoryUnsupported
from bot.git.inspection import GITLINK, Change
from bot.git.quarantine import Had, RepositoryPack
from bot.git.run import RemoteAccess
from bot.git.submodules import Gitlink
from bot.github.types import RepoView, TokenPurpose
from bot.models import Permission, Repo, Thread
from bot.sessions.services import Services
from bot.store.sessions import Turn
from bot.words import on_submodules
from sandbox.execution import ExecutionEnvironment

MOST = 20
MOST_CLOSED = 30
MOST_TOLD = 20
MOST_DEPTH = 3
MOST_BYTES = 1 << 30


class Closed(UserError):
    """A submodule is not opened; the text is the reason."""


@dataclass(frozen=True)
class Opened:
    path: str
    packs: tuple[RepositoryPack, ...]
    """That of its commit; then, if it differs, what the tip of the default branch adds."""
    branch: str

    @property
    def item(self) -> dict[str, object]:
        """Describe it for the script inside."""
        return {
            "path": self.path,
            "packs": [one.path.name for one in self.packs],
            "sha": self.packs[0].sha,
            "tip": self.packs[-1].sha,
            "branch": self.branch,
            "shallow": sorted({commit for one in self.packs for commit in one.shallow}),
        }


class Submodules:
    """The submodules of one commit, as far as the person who asked may see them."""

    def __init__(self, services: Services, turn: Turn, thread: Thread) -> None:
        self._services, self._turn, self._thread = services, turn, thread
        self._github = services.github.installation(thread.installation)
        self._parent: RepoView | None = None
        self._addresses: dict[int, dict[str, str]] = {}
        self._located: dict[str, tuple[Repo, RemoteAccess]] = {}
        self._bytes = 0
        self.opened: list[Opened] = []
        self.closed: list[tuple[str, str]] = []

    async def open(self, git_dir: Path, commit: str, folder: Path) -> None:
        """Fetch and pack those of a commit, and those inside of them."""
        await self._open_all(await self._repository_of_thread(), git_dir, commit, folder, "", 1)

    async def pointer_fault(self, path: str, sha: str) -> str | None:
        """Say why a pointer may not move to a commit; None if its repository has it."""
        try:
            await self._fetched(await self._repository_of_thread(), Gitlink(path, sha))
        except Closed as closed:
            return str(closed)
        return None

    async def _open_all(self, repo: Repo, git_dir: Path, commit: str, folder: Path, prefix: str, depth: int) -> None:
        for link in await submodules.links(git_dir, commit):
            path = f"{prefix}{link.path}"
            try:
                other = await self._open_one(repo, link, path, folder, depth)
            except Closed as closed:
                self.closed.append((path, str(closed)))
            else:
                place = self._services.cache.git_dir(other.id)
                await self._open_all(other, place, link.sha, folder, f"{path}/", depth + 1)

    async def _open_one(self, repo: Repo, link: Gitlink, path: str, folder: Path, depth: int) -> Repo:
        if fault := submodules.path_fault(path):
            raise Closed(fault)
        if depth > MOST_DEPTH:
            raise Closed(on_submodules.too_deep(MOST_DEPTH))
        if len(self.opened) >= MOST or len(self.closed) >= MOST_CLOSED:  # each one costs calls of GitHub's API
            raise Closed(on_submodules.too_many(MOST))
        other = await self._fetched(repo, link)
        name = f"submodule-{len(self.opened)}"
        packs = [await self._packed(other, link.sha, folder / f"{name}.pack")]
        if depth == 1 and (tip := await self._tip(other)) not in (None, link.sha):  # work may move the pointer there
            packs.append(await self._packed(other, str(tip), folder / f"{name}-tip.pack", packs[0]))
        self.opened.append(Opened(path, tuple(packs), other.default_branch))
        return other

    async def _packed(self, repo: Repo, sha: str, place: Path, on: RepositoryPack | None = None) -> RepositoryPack:
        had = None if on is None else Had(on.sha, on.shallow)
        try:
            pack = await self._services.cache.pack(repo.id, sha, place, had=had)
        except RepositoryUnsupported as error:
            raise Closed(str(error)) from None
        self._bytes += pack.size
        if self._bytes > MOST_BYTES:
            await asyncio.to_thread(pack.path.unlink)
            raise Closed(on_submodules.too_large(MOST_BYTES))
        return pack

    async def _tip(self, repo: Repo) -> str | None:
        _, access = await self._reached(repo.full_name)
        try:
            return await self._services.cache.fetch(repo.id, access, f"refs/heads/{repo.default_branch}")
        except (RefMissing, RepositoryUnsupported):
            return None

    async def _fetched(self, repo: Repo, link: Gitlink) -> Repo:
        """Fetch the commit that a pointer names from the repository that belongs there."""
        address = (await self._named(repo)).get(link.path)
        if address is None:
            raise Closed(on_submodules.not_named(repo.default_branch))
        try:
            name = submodules.repository(address, repo.full_name, self._services.settings.github.url)
        except BadName as error:
            raise Closed(str(error)) from None
        other, access = await self._reached(name)
        if other.id == self._thread.repo.id:
            raise Closed(on_submodules.is_itself())
        try:
            await self._services.cache.fetch(other.id, access, link.sha)
        except RefMissing:
            raise Closed(on_submodules.no_commit(other.full_name, link.sha)) from None
        except GitHubRefused:
            raise Closed(on_submodules.not_open(other.full_name, self._turn.requester)) from None
        except RepositoryUnsupported as error:
            raise Closed(str(error)) from None
        return other

    async def _named(self, repo: Repo) -> dict[str, str]:
        """Read `.gitmodules` of the default branch."""
        if repo.id not in self._addresses:
            tip, found = await self._tip(repo), dict[str, str]()
            with contextlib.suppress(BadName, GitFailed):
                if tip is not None:
                    found = await submodules.addresses(self._services.cache.git_dir(repo.id), tip)
            self._addresses[repo.id] = found
        return self._addresses[repo.id]

    async def _repository_of_thread(self) -> RepoView:
        if self._parent is None:
            self._parent = await self._github.repo(self._thread.repo.full_name)
        return self._parent

    async def _reached(self, full_name: str) -> tuple[Repo, RemoteAccess]:
        """Get a token that reads this one repository, if the App has it and the person may read it."""
        if (known := self._located.get(full_name.lower())) is not None:
            return known
        parent, not_open = await self._repository_of_thread(), on_submodules.not_open(full_name, self._turn.requester)
        try:
            repo = await self._github.repo(full_name)
            # GitHub refuses a token for a repository that is not the installation's, also for a public one.
            token = await self._github.token(TokenPurpose.READ_REPOSITORY, repo.id, fresh=True)
        except GitHubRefused:
            raise Closed(not_open) from None
        if repo.id != parent.id and repo.private:
            if not await self._may_read(repo):
                raise Closed(not_open)
            if not parent.private:
                raise Closed(on_submodules.reaches_the_public(full_name))
        access = RemoteAccess(f"{self._services.settings.github.url}/{repo.full_name}.git", token)
        self._located[full_name.lower()] = repo, access
        return repo, access

    async def _may_read(self, repo: Repo) -> bool:
        """Ask GitHub now. An account that has only the login of the person means no."""
        try:
            answered_id, permission = await self._github.permission(repo, self._turn.requester)
        except GitHubRefused:
            return False
        return answered_id == self._turn.requester_id and permission is not Permission.NONE


async def bring(found: Submodules, environment: ExecutionEnvironment) -> tuple[str, ...]:
    """Check them out inside, and empty the places of all others. Return what is to be said about those."""
    packs = {pack.path.name: pack.path for one in found.opened for pack in one.packs}
    items = [one.item for one in found.opened]
    empty = [path for path, _ in found.closed if submodules.path_fault(path) is None]
    try:
        await environment.furnish("submodules", {"items": items, "empty": empty}, packs)
    finally:
        for path in packs.values():
            await asyncio.to_thread(path.unlink, missing_ok=True)
    told = tuple(on_submodules.stays_empty(path, why) for path, why in found.closed[:MOST_TOLD])
    more = len(found.closed) - len(told)
    return (*told, on_submodules.more_stay_empty(more)) if more else told


async def pointer_faults(
    services: Services, turn: Turn, thread: Thread, changes: Sequence[Change]
) -> dict[str, str | None]:
    """Judge each submodule that the work only moves: a commit that its repository has, or the reason against it."""
    found = Submodules(services, turn, thread)
    moved = [one for one in changes if one.old_mode == one.new_mode == GITLINK]
    faults = {one.path: await found.pointer_fault(one.path, one.sha) for one in moved[:MOST]}
    return {path: fault and on_submodules.may_not_move(fault) for path, fault in faults.items()}
