"""Finds where a turn starts: config, base branch, commit; and what the token for it may reach."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bot import account_settings, repo_config
from bot.errors import GitHubRefused, NotFound, TransientError, UserError
from bot.git.cache import Comparison
from bot.git.errors import RefMissing, RepositoryEmpty, RepositoryUnsupported
from bot.git.run import RemoteAccess
from bot.github.client import GitHubApp, InstallationClient
from bot.github.types import Pull, TokenPurpose
from bot.kinds.parts import OnFork
from bot.kinds.resolve import Merge
from bot.models import Fork, Outcome, Repo, RepoId, Thread
from bot.repo_config import RepoConfig
from bot.sessions.services import Services
from bot.settings import Settings
from bot.store import accounts, approvals, repos, sessions
from bot.store.approvals import ApprovalKind, ApprovalState
from bot.store.base import Store
from bot.store.sessions import Session, Turn
from bot.words import endings, on_access, on_forks, on_pulls

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


PUBLISHED = (Outcome.PULL_REQUEST, Outcome.PUSHED)


@dataclass(frozen=True)
class Start:
    """`tip` is where the session's branch stands; None while it has none. A push expects it to be there still.
    `base` is where the base branch stands; None where it is gone."""

    sha: str
    tip: str | None
    base: str | None = None
    ref: str | None = None
    fork: Fork | None = None
    """Where it lives, if in another repository."""


async def pin(services: Services, turn: Turn, base: str) -> Start:
    session = await sessions.session(services.store, turn.key.session)
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    earlier = await sessions.turns_of(services.store, turn.key.session)
    branch = await _branch_to_go_on_with(services, turn, session, earlier)
    tip = await _fetched(services, session, access, branch) if branch else None
    if branch and tip is None:
        if is_on_pull(turn, session):
            raise UserError(endings.branch_missing(branch))
        await _let_go(services, session)
    base_tip = await _fetched(services, session, access, base)
    stands = tip or base_tip
    if stands is None:
        raise UserError(endings.branch_missing(base))
    saved = await _saved(services, session.repo_id, access, _unpublished(earlier, before=turn.n))
    return Start(saved or stands, tip, base_tip, f"refs/heads/{branch}" if tip else None)


async def _branch_to_go_on_with(
    services: Services, turn: Turn, session: Session, earlier: Iterable[Turn]
) -> str | None:
    """The session's, while its pull request is open or has yet to be opened; else a new one is made."""
    if turn.new_branch and not is_on_pull(turn, session):
        await _let_go(services, session)
        return None
    if session.pull_number is None:
        pushed = any(one.commit_sha is not None and one.rescue_ref is None for one in earlier)
        return session.branch if pushed else None
    if is_on_pull(turn, session) or await open_pull(services, session) is not None:
        return session.branch
    await _let_go(services, session)
    return None


async def pin_pull(services: Services, turn: Turn) -> tuple[str, Start]:
    """The head of a pull request as GitHub keeps it, also of a fork's, and the branch that it is to be merged into."""
    session = await sessions.session(services.store, turn.key.session)
    reads = services.github.installation(session.installation_id)
    pull = await reads.pull(session.thread.repo, turn.number)
    if pull.state != "open":
        raise UserError(endings.pull_closed(pull.number))
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    ref = f"refs/pull/{pull.number}/head"
    base_tip = await _fetched(services, session, access, pull.base_branch)
    if base_tip is None:
        raise UserError(endings.branch_missing(pull.base_branch))
    try:
        sha = await services.cache.fetch(session.repo_id, access, ref)
    except RefMissing:
        raise UserError(endings.head_gone(pull.number)) from None
    is_own = pull.head_repo_id == session.repo_id
    fork = None if is_own else Fork(pull.head_repo_id, pull.head_repo, pull.head_branch)
    return pull.base_branch, Start(sha, sha, base_tip, ref, fork)


def is_on_pull(turn: Turn, session: Session) -> bool:
    """Asked on the pull request itself: its branch is meant and no other."""
    return session.is_pull or turn.number != session.number


async def open_pull(services: Services, session: Session) -> Pull | None:
    """The session's own, while it can still be gone on with."""
    if session.pull_number is None:
        return None
    reads = services.github.installation(session.installation_id)
    try:
        pull = await reads.pull(session.thread.repo, session.pull_number)
    except NotFound:
        return None
    return pull if pull.state == "open" else None


async def _let_go(services: Services, session: Session) -> None:
    """Its pull request was merged or closed, or its branch deleted: the conversation goes on with new ones."""
    await sessions.update_session(services.store, session.id, branch=None, pull_number=None, pull_url=None)


async def _fetched(services: Services, session: Session, access: RemoteAccess, branch: str) -> str | None:
    try:
        return await services.cache.fetch(session.repo_id, access, f"refs/heads/{branch}")
    except RepositoryEmpty:
        raise UserError(endings.repository_empty()) from None
    except RefMissing:
        return None


def _unpublished(turns: Iterable[Turn], *, before: int) -> str | None:
    """The ref of work that was cut short and that no later turn has published."""
    for turn in sorted((one for one in turns if one.n < before), key=lambda one: one.n, reverse=True):
        if turn.rescue_ref is not None:
            return turn.rescue_ref
        if turn.outcome in PUBLISHED:
            return None
    return None


async def _saved(services: Services, repo: RepoId, access: RemoteAccess, ref: str | None) -> str | None:
    if ref is None:
        return None
    try:
        return await services.cache.fetch(repo, access, ref)
    except RefMissing:  # expired, or removed by somebody: the work goes on from the branch
        return None


async def base_branch_of_issue(services: Services, turn: Turn, session: Session, config: RepoConfig) -> str:
    """Takes the base of the pull request that it goes on with; for new work what was said, also on an earlier turn."""
    pull = None if turn.new_branch else await open_pull(services, session)
    if pull is not None:
        require_base_of(pull, turn, beside=True)
        return pull.base_branch
    return await _said(services, turn) or config.base or session.default_branch


def require_base_of(pull: Pull, turn: Turn, *, beside: bool = False) -> None:
    if turn.base is not None and turn.base != pull.base_branch:
        raise UserError(on_pulls.another_base(pull.number, turn.base, pull.base_branch, beside=beside))


async def _said(services: Services, turn: Turn) -> str | None:
    """Another base holds until one more is named: what was planned, saved or answered on it goes on there."""
    if turn.base is not None:
        return turn.base
    earlier = [one for one in await sessions.turns_of(services.store, turn.key.session) if one.n < turn.n]
    return next((one.options.base for one in reversed(earlier) if one.options and one.options.base), None)


async def require_open(services: Services, turn: Turn, session: Session) -> None:
    """UserError for a conversation that is locked or a repository that is archived."""
    reads, repo = services.github.installation(session.installation_id), session.thread.repo
    issue, now = await asyncio.gather(reads.issue(repo, turn.number), reads.repo(repo.full_name))
    if now.archived or now.disabled:
        raise UserError(on_access.repository_archived())
    if issue.locked:
        raise UserError(on_access.thread_locked())


async def read_config(services: Services, session: Session) -> RepoConfig:
    return await config_of(services.github.installation(session.installation_id), session.thread.repo, services.store)


async def config_of(reads: InstallationClient, repo: Repo, store: Store) -> RepoConfig:
    """Takes what the account has chosen where the repository has no file."""
    if (raw := await reads.file(repo, repo_config.PATH, repo.default_branch)) is not None:
        return await asyncio.to_thread(repo_config.parse, raw)
    if await reads.file(repo, repo_config.MISNAMED, repo.default_branch) is not None:
        raise repo_config.misnamed()
    return account_settings.config_without_file(await accounts.settings_of(store, reads.id))


async def pin_fork(services: Services, turn: Turn) -> tuple[str, Start]:
    """The head as the repository itself has it (`refs/pull`): the fork is not asked for anything."""
    if not turn.traits.on_forks:
        raise UserError(on_forks.no_conflicts_on_forks(services.settings.command))
    return await pin_pull(services, turn)


async def may_set_up(services: Services, turn: Turn) -> bool:
    """Setup commands run what is checked out: of a fork only a commit that somebody has approved by its name."""
    if turn.part(OnFork).fork is None:
        return True
    known = await approvals.of_session(services.store, turn.key.session)
    return any(
        one.kind is ApprovalKind.FORK and one.state is ApprovalState.APPROVED and one.sha == turn.base_sha
        for one in known
    )


async def notes(services: Services, turn: Turn, config: RepoConfig) -> tuple[str, ...]:
    """What the reader is told that was left out for it."""
    left_out = turn.part(OnFork).fork is not None and not turn.traits.judges and bool(config.setup)
    return (on_forks.SETUP_LEFT_OUT,) if left_out and not await may_set_up(services, turn) else ()
