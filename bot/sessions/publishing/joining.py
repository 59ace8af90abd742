"""A merge that the host has begun: what it was begun with, whether its conflicts are solved, what is said of it."""

from __future__ import annotations

from collections.abc import Sequence

from bot.git.merges import Joined, Left
from bot.git.quarantine import Quarantine
from bot.kinds.resolve import Merge
from bot.models import RepoId
from bot.sessions import keeping
from bot.sessions.publishing.work import Work
from bot.sessions.services import Services
from bot.store.sessions import Turn
from bot.words import on_pulls

MERGED = 2
"""Parents of a merge."""


async def tree(services: Services, turn: Turn, quarantine: Quarantine) -> str:
    """What came home. Of a merge whose files needed no change, nothing did: then it is as the host has joined it; of
    saved work that was whole, nothing did either."""
    assert turn.base_sha is not None
    if turn.tree_sha is None:
        return (await quarantine.facts(turn.base_sha)).tree
    joined = await _begun_with(services, turn, quarantine)
    if joined is not None and turn.tree_sha == joined.tree:
        return joined.tree
    return await quarantine.admit(keeping.collected(services, turn), base=turn.base_sha)


async def unsolved(work: Work, tree: str) -> str | None:
    """The sentence that names the files in which marks of a conflict are left, or None."""
    joined = await _begun_with(work.services, work.turn, work.quarantine)
    left = await work.quarantine.marked(tree, joined) if joined else []
    return on_pulls.conflicts_left(left) if left else None


async def told(work: Work) -> str:
    turn, merge = work.turn, work.turn.part(Merge)
    if merge.sha is None or turn.base is None:
        return ""
    if not merge.conflicts:
        return on_pulls.merged_in(turn.base, merge.sha)
    joined = await _begun_with(work.services, turn, work.quarantine)
    left = await work.quarantine.left(f"{work.commit}^{{tree}}", joined) if joined else Left((), ())
    return on_pulls.solved(turn.base, merge.sha, len(merge.conflicts), left.ours, left.theirs)


async def _begun_with(services: Services, turn: Turn, quarantine: Quarantine) -> Joined | None:
    """Also of a merge that an earlier turn was cut short in, and that was saved."""
    if turn.base_sha in (None, turn.tip_sha):
        return None
    return await joined(services, turn, await quarantine.parents(turn.base_sha))


async def joined(services: Services, turn: Turn, parents: Sequence[str]) -> Joined | None:
    """What git makes of a merge of these, which is the same each time; None where they are not two."""
    return await services.cache.join(RepoId(turn.repo_id), *parents) if len(parents) == MERGED else None
