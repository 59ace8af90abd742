"""Work whose branch was moved meanwhile: whether it is there already, or fits on top of what was pushed."""

from __future__ import annotations

from dataclasses import replace

from bot.git.errors import RefMissing
from bot.github.types import Pull, TokenPurpose
from bot.kinds.resolve import Merge
from bot.sessions.publishing import committing, landing
from bot.sessions.publishing.work import Work
from bot.sessions.remote import remote_access
from bot.store import signed

DEEPER = 2000
"""Commits of history, where the usual number does not reach back to where the work began."""


async def head(work: Work, branch: str) -> str | None:
    """Where the branch stands now, with enough of its history to tell; None when it is gone."""
    return await _fetched(work, f"refs/heads/{branch}")


async def arrived(work: Work, pull: Pull) -> str | None:
    """The commit by which the pull request, open or not, has the work already; its branch may be gone."""
    at = await _fetched(work, f"refs/pull/{pull.number}/head")
    found = await landed(work, at) if at is not None else None
    return found[1] if found is not None else None


async def _fetched(work: Work, ref: str) -> str | None:
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


async def landed(work: Work, at: str) -> tuple[Work, str] | None:
    """The work as it stands there, and its commit: a push had arrived though its answer was lost, and others have
    pushed since."""
    for name in await landing.names(work):
        if await work.quarantine.continues(at, name):
            return work, name
    since = work.turn.tip_sha
    if since is None or not await _continues(work, at):
        return None
    made = await signed.made(work.services.store, work.session.id)
    for one in await work.quarantine.made_at(since, at, int(work.turn.created_at), or_one_of=made):
        ours = await committing.on_top(work, one.tree, one.parent)
        if ours in (one.sha, made.get(one.sha)):
            return replace(work, commit=ours), one.sha
    return None


async def on_top(work: Work, at: str) -> tuple[Work, str] | None:
    """The same work as one commit on top of `at`, and its tree; None where that rewrote history, or it does not fit."""
    if work.turn.part(Merge).sha is not None or not await _continues(work, at):
        return None
    over = await work.quarantine.merge_base(work.commit, at)
    tree = await work.quarantine.merged(over, at, work.commit) if over else None
    if tree is None:
        return None
    commit = await committing.on_top(work, tree, at)
    return replace(work, turn=replace(work.turn, base_sha=at, tip_sha=at), commit=commit), tree


async def _continues(work: Work, at: str) -> bool:
    """What was there when the work began is still part of it."""
    return work.turn.tip_sha is not None and await work.quarantine.continues(at, work.turn.tip_sha)
