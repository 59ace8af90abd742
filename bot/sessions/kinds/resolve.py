"""Merges the base branch into that of a pull request, and leaves conflicts to the agent."""

from __future__ import annotations

from dataclasses import replace

from bot.errors import UserError
from bot.git.commits import Joined
from bot.github.types import TokenPurpose
from bot.kinds import resolve
from bot.models import Outcome, Step
from bot.sessions.kinds import Preparation, TurnKind
from bot.sessions.moves import End, To
from bot.sessions.reading import Evidence
from bot.sessions.services import Services
from bot.sessions.starting_point import JOINED_DEPTH, Start, remote_access
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import on_pulls

MOST_SIDE_BYTES = 200_000
"""Limit for one side's changes to the files in conflict."""


class ResolveTurn(TurnKind):
    traits = resolve.TRAITS

    async def begin(self, services: Services, turn: Turn, preparation: Preparation) -> Preparation | To | End:
        """Begin at both sides as git merges them; without a conflict the agent has nothing to do."""
        base, start = preparation.base, preparation.start
        joined = await _join(services, turn, base, start)
        if isinstance(joined, End):
            return joined
        paths = tuple(path.encode("utf-8", "replace").decode() for path in joined.conflicts)
        begun = replace(
            preparation,
            start=replace(start, sha=joined.commit),
            columns={"tree_sha": joined.tree},
            parts=(resolve.Merge(start.base, paths),),
        )
        if not joined.conflicts:
            return To(Step.VERIFY, begun.pinned, parts=begun.parts)
        beside = await _both_sides(services, turn, base, start, joined)
        return replace(begun, beside=beside, request=turn.prompt or self.traits.unsaid)


async def _join(services: Services, turn: Turn, base: str, start: Start) -> Joined | End:
    """Let git merge both sides, with the conflicts marked; end the turn if there is nothing to merge."""
    session = await sessions.session(services.store, turn.key.session)
    if start.tip is None or start.base is None or start.ref is None:
        raise UserError(on_pulls.resolve_needs_a_branch())
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    for ref in (f"refs/heads/{base}", start.ref):
        await services.cache.fetch(session.repo_id, access, ref, depth=JOINED_DEPTH)
    joined = await services.cache.join(session.repo_id, start.tip, start.base)
    if joined is None:
        raise UserError(on_pulls.no_common_history(base))
    if joined.parted == start.base:
        return End(Outcome.NO_CHANGE, on_pulls.nothing_to_resolve(base, start.base))
    return joined


async def _both_sides(services: Services, turn: Turn, base: str, start: Start, joined: Joined) -> Evidence:
    """Describe the conflicts: which files, git's words, and each side's changes with their reasons."""
    assert start.tip is not None and start.base is not None
    repo, paths = turn.repo_id, joined.conflicts
    ours, theirs = [
        await services.cache.side(repo, joined.parted, tip, paths, max_bytes=MOST_SIDE_BYTES)
        for tip in (start.tip, start.base)
    ]
    said = (
        ("the files in conflict", "\n".join([*paths, "", *joined.words]).encode("utf-8", "replace").decode()),
        ("what the pull request did to these files since it left its base", ours),
        (f"what {base} did to these files since then", theirs),
    )
    return Evidence(said=said)


KIND = ResolveTurn()
