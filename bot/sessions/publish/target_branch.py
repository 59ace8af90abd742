"""Gets a commit onto its branch, finds one that arrived already, and puts work on top of a branch that moved."""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.git.errors import GitRefusal, PushRefused, RefMissing
from bot.github.types import Pull, TokenPurpose
from bot.kinds.resolve import Merge
from bot.sessions import starting_point
from bot.sessions.publish import signed_commits, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.starting_point import remote_access
from bot.store import pushes
from bot.words import endings


class Guarded(PushRefused):
    """By its owners, since the turn was prepared; the text is one sentence for people."""

    def __init__(self, why: str) -> None:
        super().__init__(GitRefusal.PROTECTED, why)
        self.why = why


async def commit_names(work: TurnWork) -> tuple[str, ...]:
    """Lists the names of the commit at the remote: its own, and that of what was made and signed of it."""
    made = await pushes.signed_for(work.services.store, work.session.id, work.commit)
    return (work.commit,) if made is None else (work.commit, made)


async def land(work: TurnWork, branch: str) -> str:
    """The commit at which the branch then stands; PushRaced or PushRefused where it does not."""
    await _require_unguarded(work, branch)
    purpose = TokenPurpose.PUSH_WORKFLOWS if work.let_go else TokenPurpose.PUSH
    if repo_config.load(work.turn.config).commits == "verified":
        return await signed_commits.land_signed(work, branch, purpose)
    access = await remote_access(work.services, work.session.thread, purpose)
    await work.quarantine.push(access, work.commit, branch, expect=work.turn.tip_sha)
    return work.commit


async def _require_unguarded(work: TurnWork, branch: str) -> None:
    """Asks as at the turn's beginning, which may be days ago where the work has waited for a yes."""
    session, tip = work.session, work.turn.tip_sha
    if tip is None or not starting_point.is_on_pull(work.done, session):
        return
    reads = work.services.github.installation(session.installation_id)
    why = None
    if branch == (await reads.repo(session.thread.repo.full_name)).default_branch:
        why = endings.default_branch_is_head(branch)
    elif await reads.is_protected(session.thread.repo, branch):
        why = endings.head_is_protected(branch)
    if why is not None and await reads.branch_sha(session.thread.repo, branch) not in await commit_names(work):
        raise Guarded(why)


DEEPER = 2000
"""Commits of history, where the usual number does not reach back to where the work began."""


async def branch_head(work: TurnWork, branch: str) -> str | None:
    """Fetches the branch with enough of its history to tell; None when it is gone."""
    return await _fetched(work, f"refs/heads/{branch}")


async def arrived_at_pull(work: TurnWork, pull: Pull) -> str | None:
    """The commit by which the pull request, open or not, has the work already; its branch may be gone."""
    at = await _fetched(work, f"refs/pull/{pull.number}/head")
    found = await landed_at(work, at) if at is not None else None
    return found[1] if found is not None else None


async def _fetched(work: TurnWork, ref: str) -> str | None:
    services, session = work.services, work.session
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    try:
        found = await services.cache.fetch(session.repo_id, access, ref)
        await work.quarantine.look_again()
        if not await _continues(work, found):
            found = await services.cache.fetch(session.repo_id, access, ref, depth=DEEPER)
            await work.quarantine.look_again()
    except RefMissing:
        return None
    return found


async def landed_at(work: TurnWork, at: str) -> tuple[TurnWork, str] | None:
    """The work as it stands there, and its commit: a push had arrived though its answer was lost, and others have
    pushed since."""
    for name in await commit_names(work):
        if await work.quarantine.continues(at, name):
            return work, name
    since = work.turn.tip_sha
    if since is None or not await _continues(work, at):
        return None
    made = await pushes.signed_in(work.services.store, work.session.id)
    for one in await work.quarantine.made_at(since, at, int(work.turn.created_at), or_one_of=made):
        ours = await turn_commit.commit_on_top(work, one.tree, one.parent)
        if ours in (one.sha, made.get(one.sha)):
            return replace(work, commit=ours), one.sha
    return None


async def put_on_top(work: TurnWork, at: str) -> tuple[TurnWork, str] | None:
    """The same work as one commit on top of `at`, and its tree; None where that rewrote history, or it does not fit."""
    if work.turn.part(Merge).sha is not None or not await _continues(work, at):
        return None
    over = await work.quarantine.merge_base(work.commit, at)
    tree = await work.quarantine.merged(over, at, work.commit) if over else None
    if tree is None:
        return None
    commit = await turn_commit.commit_on_top(work, tree, at)
    return replace(work, turn=replace(work.turn, base_sha=at, tip_sha=at), commit=commit), tree


async def _continues(work: TurnWork, at: str) -> bool:
    """Tells whether what was there when the work began is still part of it."""
    return work.turn.tip_sha is not None and await work.quarantine.continues(at, work.turn.tip_sha)
