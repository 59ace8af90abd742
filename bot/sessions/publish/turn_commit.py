"""Makes the one commit of a turn from its work as it came home, also of a merge that the host has begun.

The host makes it, and it is the same bytes however often it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.git.commits import Author, Joined, Left
from bot.git.quarantine import Quarantine
from bot.kinds.resolve import Merge
from bot.models import RepoId
from bot.outbound import TextKind
from bot.proposal import descriptions, verification
from bot.sessions.publish import rescue
from bot.sessions.services import Services
from bot.store.sessions import Session, Turn
from bot.words import on_pulls


@dataclass(frozen=True)
class TurnWork:
    services: Services
    turn: Turn
    session: Session
    quarantine: Quarantine
    commit: str
    report: tuple[str, ...] = ()
    """What people should be told of the change, in the pull request or, where that is there, beside the push."""
    done_by: Turn | None = None
    """The earlier turn whose agent did it, where this one only lets it go."""
    landed: str | None = None
    """The commit at which people see it, once it is pushed: ours, or what GitHub has made and signed of it."""

    @property
    def done(self) -> Turn:
        """The turn whose words the pull request has."""
        return self.done_by or self.turn

    @property
    def is_verified(self) -> bool:
        return verification.all_passed(self.done.verified, self.commit)

    @property
    def checks(self) -> list[dict[str, Any]]:
        """Names the checked commit as people see it: the content is the same."""
        return verification.renamed(self.done.verified or (), self.commit, self.landed or self.commit)

    @property
    def columns(self) -> dict[str, object]:
        return {"commit_sha": self.landed, **({"verified": self.checks} if self.turn.verified else {})}

    @property
    def let_go(self) -> bool:
        """Somebody has approved this very commit, with the workflow files that it changes."""
        return self.done_by is not None


async def commit_of_turn(services: Services, turn: Turn, quarantine: Quarantine, tree: str) -> str:
    """One turn, one commit by the App; the same work gives the same commit, so a repetition pushes nothing new."""
    assert turn.base_sha is not None
    if turn.tree_sha is None:  # it is there: as it was saved
        return turn.base_sha
    # What the host joined is never pushed: the merge takes its place, with its two parents.
    parents = [turn.base_sha] if turn.part(Merge).sha is None else await quarantine.parents(turn.base_sha)
    return await make_commit(services, turn, quarantine, tree, parents, await _message(services, turn))


async def commit_on_top(work: TurnWork, tree: str, parent: str) -> str:
    """The same on another commit than it was made for."""
    return await make_commit(
        work.services, work.turn, work.quarantine, tree, [parent], await _message(work.services, work.turn)
    )


async def make_commit(
    services: Services, turn: Turn, quarantine: Quarantine, tree: str, parents: Sequence[str], words: str
) -> str:
    bot = await services.github.identity()
    message = services.outbound.text(TextKind.COMMIT, words)
    author = Author(bot.bot_login, bot.bot_email)
    return await quarantine.commit(tree, parents, message, author, int(turn.created_at))


async def _message(services: Services, turn: Turn) -> str:
    host = (await services.github.identity()).noreply_host
    merge = turn.part(Merge)
    if merge.sha is not None and turn.base is not None:
        return descriptions.merge_message(turn, turn.base, merge.conflicts, noreply_host=host)
    return descriptions.commit_message(turn, noreply_host=host)


MERGED = 2


async def tree_of(services: Services, turn: Turn, quarantine: Quarantine) -> str:
    """What came home. Of a merge whose files needed no change, nothing did: then it is as the host has joined it; of
    saved work that was whole, nothing did either."""
    assert turn.base_sha is not None
    if turn.tree_sha is None:
        return (await quarantine.facts(turn.base_sha)).tree
    joined = await _begun_with(services, turn, quarantine)
    if joined is not None and turn.tree_sha == joined.tree:
        return joined.tree
    return await quarantine.admit(rescue.collected_bundle(services, turn), base=turn.base_sha)


async def unsolved_conflicts(work: TurnWork, tree: str) -> str | None:
    """The sentence that names the files in which marks of a conflict are left, or None."""
    joined = await _begun_with(work.services, work.turn, work.quarantine)
    left = await work.quarantine.marked(tree, joined) if joined else []
    return on_pulls.conflicts_left(left) if left else None


async def words_on_merge(work: TurnWork) -> str:
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
    return await host_merge(services, turn, await quarantine.parents(turn.base_sha))


async def host_merge(services: Services, turn: Turn, parents: Sequence[str]) -> Joined | None:
    """Asks git for the merge of these, which is the same each time; None where they are not two."""
    return await services.cache.join(RepoId(turn.repo_id), *parents) if len(parents) == MERGED else None
