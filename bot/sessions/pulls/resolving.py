"""`resolve`: the base branch brought into that of a pull request; what git cannot merge is left to the agent."""

from __future__ import annotations

from bot.errors import UserError
from bot.git.merges import Joined
from bot.github.types import TokenPurpose
from bot.models import Outcome
from bot.sessions.moves import End
from bot.sessions.pinning import Start
from bot.sessions.reading.evidence import Evidence
from bot.sessions.remote import JOINED_DEPTH, remote_access
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import on_pulls

MOST_SIDE_BYTES = 200_000
"""Of what one side did to the files in conflict."""


async def join(services: Services, turn: Turn, base: str, start: Start) -> Joined | End:
    """Both sides as git merges them, with the conflicts marked; an end where there is nothing to bring in."""
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


async def both_sides(services: Services, turn: Turn, base: str, start: Start, joined: Joined) -> Evidence:
    """What the agent is told of the conflicts: which files, in git's words, and what each side did to them, and why."""
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
