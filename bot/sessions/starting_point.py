"""Finds the start of a turn: config, base branch, commit. Also gets the token that reaches its repository."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bot import account_settings, repo_config
from bot.errors import BadRepoConfig, CommandError, GitHubRefused, NotFound, TransientError, UserError
from bot.git.cache import Comparison
from bot.git.errors import RefMissing, RepositoryEmpty, RepositoryUnsupported
from bot.git.run import RemoteAccess
from bot.github.client import GitHubApp, InstallationClient
from bot.github.types import Pull, TokenPurpose
from bot.kinds.resolve import Merge
from bot.kinds.shape import OnFork, WorkFolders
from bot.models import PUSHED, Fork, Repo, Thread
from bot.repo_config import RepoConfig, layers
from bot.repo_config.layers import ConfigLayer, LayeredConfig
from bot.sessions import account_repository
from bot.sessions.services import Services
from bot.settings import Settings
from bot.store import accounts, approvals, dashboards, repo_configs, repos, sessions
from bot.store.approvals import ApprovalKind, ApprovalState
from bot.store.base import Store
from bot.store.repo_configs import ConfigState
from bot.store.sessions import Session, Turn
from bot.words import endings, on_access, on_forks, on_pulls

MOVED = (301, 302, 307, 308)
JOINED_DEPTH = 2000
"""Commits of history, if both sides must reach back to the point where they parted."""


class Reach(Protocol):
    """The services that reach a repository."""

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
    """`base` and `head`: a fetched commit, and its ref, which brings more history if that is short."""
    repo, cache = thread.repo.id, services.cache
    found = await cache.compare(repo, base[0], head[0], max_bytes=max_bytes)
    if found is None:
        access = await remote_access(services, thread, TokenPurpose.READ_REPOSITORY)
        try:
            for _, ref in (base, head):
                await cache.fetch(repo, access, ref, depth=JOINED_DEPTH)
        except RepositoryUnsupported:  # so much of its history is too large; the turn goes on without it
            return None
        found = await cache.compare(repo, base[0], head[0], max_bytes=max_bytes)
    return found


async def follow_rename(services: Services, turn: Turn, refusal: GitHubRefused) -> None:
    """Raise TransientError, to try again, if GitHub refused only because the repository has a new name."""
    if refusal.status not in MOVED:
        return
    thread = (await sessions.session(services.store, turn.key.session)).thread
    found = await services.github.installation(thread.installation).repo(thread.repo.full_name)
    if found.id == thread.repo.id and found.full_name != thread.repo.full_name:
        repo = Repo(found.id, found.owner, found.name, found.private, found.default_branch)
        await repos.upsert_repo(services.store, repo, thread.installation)
        raise TransientError(f"the repository is called {found.full_name} now", retry_after=0.0)


async def restore_mirror(services: Services, turn: Turn) -> None:
    """Bring the pinned commit back into a cache that was lost, so that the step can be repeated."""
    if turn.base_sha is None:
        return
    thread = (await sessions.session(services.store, turn.key.session)).thread
    access = await remote_access(services, thread, TokenPurpose.READ_REPOSITORY)
    if rules := turn.part(WorkFolders).rules_sha:
        await services.cache.fetch(thread.repo.id, access, rules)
    merged = turn.part(Merge).sha
    if merged is None or turn.tip_sha is None:
        await services.cache.fetch(thread.repo.id, access, turn.base_sha)
        return
    for sha in (turn.tip_sha, merged):  # the host's own merge is at no remote
        await services.cache.fetch(thread.repo.id, access, sha, depth=JOINED_DEPTH)
    await services.cache.join(thread.repo.id, turn.tip_sha, merged)


@dataclass(frozen=True)
class Start:
    sha: str
    tip: str | None
    """The tip of the session's branch; None while it has none. A push expects the branch to be there still."""
    base: str | None = None
    """The tip of the base branch; None if it is gone."""
    ref: str | None = None
    fork: Fork | None = None
    """Its home, if that is another repository."""


async def pin(services: Services, turn: Turn, base: str) -> Start:
    session = await sessions.session(services.store, turn.key.session)
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    earlier = await sessions.turns_of(services.store, turn.key.session)
    branch = await _branch_to_go_on_with(services, turn, session, earlier)
    tip = await _fetched(services, session, access, branch) if branch else None
    if branch and tip is None:
        if is_on_pull(turn, session):
            raise UserError(endings.branch_missing(branch))
        await _forget_branch(services, session)
    base_tip = await _fetched(services, session, access, base)
    stands = tip or base_tip
    if stands is None:
        error = CommandError if turn.options and turn.options.base == base else UserError
        raise error(endings.branch_missing(base))
    saved = None
    if ref := _unpublished(earlier, before=turn.n):
        with contextlib.suppress(RefMissing):  # expired, or removed by a person: the work goes on from the branch
            saved = await services.cache.fetch(session.repo_id, access, ref)
    return Start(saved or stands, tip, base_tip, f"refs/heads/{branch}" if tip else None)


async def default_tip(services: Services, session: Session) -> str:
    """Fetch the default branch, and return its tip."""
    branch = session.thread.repo.default_branch
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    if (tip := await _fetched(services, session, access, branch)) is None:
        raise UserError(endings.branch_missing(branch))
    return tip


async def _branch_to_go_on_with(
    services: Services, turn: Turn, session: Session, earlier: Iterable[Turn]
) -> str | None:
    """Return the session's branch while its pull request is open or still to come; None for a new one."""
    if turn.new_branch and not is_on_pull(turn, session):
        await _forget_branch(services, session)
        return None
    if session.pull_number is None:
        pushed = any(one.commit_sha is not None and one.rescue_ref is None for one in earlier)
        return session.branch if pushed else None
    if is_on_pull(turn, session) or await find_open_pull(services, session) is not None:
        return session.branch
    await _forget_branch(services, session)
    return None


async def pin_pull(services: Services, turn: Turn) -> tuple[str, Start]:
    """Return a pull request's base branch, and its head at GitHub (also a fork's, without asking the fork)."""
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
    """Tell whether people asked on the pull request itself and so mean its branch."""
    return session.is_pull or turn.number != session.number


async def find_open_pull(services: Services, session: Session) -> Pull | None:
    """Find the session's own pull request; None if it is not open."""
    if session.pull_number is None:
        return None
    reads = services.github.installation(session.installation_id)
    try:
        pull = await reads.pull(session.thread.repo, session.pull_number)
    except NotFound:
        return None
    return pull if pull.state == "open" else None


async def _forget_branch(services: Services, session: Session) -> None:
    """Go on with a new branch and pull request after the old ones were merged, closed or deleted."""
    await sessions.update_session(services.store, session.id, branch=None, pull_number=None, pull_url=None)


async def _fetched(services: Services, session: Session, access: RemoteAccess, branch: str) -> str | None:
    try:
        return await services.cache.fetch(session.repo_id, access, f"refs/heads/{branch}")
    except RepositoryEmpty:
        raise UserError(endings.repository_empty()) from None
    except RefMissing:
        return None


def _unpublished(turns: Iterable[Turn], *, before: int) -> str | None:
    """Return the ref of work that was cut short and that no later turn has published."""
    for turn in sorted((one for one in turns if one.n < before), key=lambda one: one.n, reverse=True):
        if turn.rescue_ref is not None or turn.outcome in PUSHED:
            return turn.rescue_ref
    return None


async def base_branch_of_issue(services: Services, turn: Turn, session: Session, config: RepoConfig) -> str:
    """Take the base of the open pull request; for new work the one that people named, also in an earlier turn."""
    pull = None if turn.new_branch else await find_open_pull(services, session)
    if pull is not None:
        require_base_of(pull, turn, beside=True)
        return pull.base_branch
    if turn.base is not None:
        return turn.base
    earlier = [one for one in await sessions.turns_of(services.store, turn.key.session) if one.n < turn.n]
    named = (one.options.base for one in reversed(earlier) if one.options and one.options.base)
    return next(named, None) or config.base or session.default_branch


def require_base_of(pull: Pull, turn: Turn, *, beside: bool = False) -> None:
    if turn.base is not None and turn.base != pull.base_branch:
        raise CommandError(on_pulls.another_base(pull.number, turn.base, pull.base_branch, beside=beside))


async def require_open(services: Services, turn: Turn, session: Session) -> None:
    """Raise UserError if the conversation is locked or the repository archived."""
    reads, repo = services.github.installation(session.installation_id), session.thread.repo
    issue, now = await asyncio.gather(reads.issue(repo, turn.number), reads.repo(repo.full_name))
    if now.archived or now.disabled:
        raise UserError(on_access.repository_archived())
    if issue.locked:
        raise UserError(on_access.thread_locked())


async def read_config(services: Services, session: Session) -> RepoConfig:
    return await config_of(services.github.installation(session.installation_id), session.thread.repo, services.store)


async def config_of(reads: InstallationClient, repo: Repo, store: Store) -> RepoConfig:
    """Read the repository's file over the defaults of its account. Note what the look has found."""
    try:
        own = await _own_layer(reads, repo)
    except BadRepoConfig as error:
        await repo_configs.note(store, repo.id, ConfigState.ERROR, str(error))
        raise
    shared = await account_repository.of(reads, store, repo.owner)
    choices = {} if own else await accounts.settings_of(store, reads.id)
    found = LayeredConfig()
    if choices or shared.config is not None:
        silent = account_repository.is_silent(shared, repo)
        found = await asyncio.to_thread(account_settings.defaults, choices, shared.config, repo.owner, silent=silent)
    found = found.under(own) if own else found
    await dashboards.heard_config(store, repo, reads.id, wanted=found.config.dashboard)
    state = ConfigState.OK if own else ConfigState.MISSING
    await repo_configs.note(store, repo.id, state, values=found.rows() if found.origins else ())
    return found.config


async def _own_layer(reads: InstallationClient, repo: Repo) -> ConfigLayer | None:
    if (raw := await reads.file(repo, repo_config.PATH, repo.default_branch)) is not None:
        return await asyncio.to_thread(layers.of_file, raw, f"{repo_config.PATH} of {repo.full_name}")
    if await reads.file(repo, repo_config.MISNAMED, repo.default_branch) is not None:
        raise repo_config.misnamed()
    return None


async def may_set_up(services: Services, turn: Turn) -> bool:
    """Setup runs the checked out code, so a fork's commit needs a person's approval by its name."""
    if turn.part(OnFork).fork is None:
        return True
    known = await approvals.of_session(services.store, turn.key.session)
    return any(
        one.kind is ApprovalKind.FORK and one.state is ApprovalState.APPROVED and one.sha == turn.base_sha
        for one in known
    )


async def fork_notes(services: Services, turn: Turn, config: RepoConfig) -> tuple[str, ...]:
    """Tell the reader if setup was left out because of a fork."""
    left_out = turn.part(OnFork).fork is not None and not turn.traits.judges and bool(config.setup)
    return (on_forks.SETUP_LEFT_OUT,) if left_out and not await may_set_up(services, turn) else ()
