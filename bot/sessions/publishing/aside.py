"""A branch of the turn's own and a pull request against the one that the work is for: asked for, or the only way."""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.sessions.moves import End, Move
from bot.sessions.publishing import landing, opening
from bot.sessions.publishing.work import TurnWork
from bot.store import sessions


def is_meant(work: TurnWork) -> bool:
    """Asked for on a pull request, or begun by an earlier try: where a push may have gone, the next one goes too."""
    asked = work.turn.new_branch and work.session.pull_number is not None
    return asked or work.turn.branch is not None


async def publish(work: TurnWork, onto: str, words: str) -> Move:
    """`onto` is the branch that the pull request is to be merged into."""
    services, turn = work.services, work.turn
    name = f"{repo_config.load(turn.config).branch_name(turn.number, turn.key.session)}-{turn.n}"
    await sessions.update_turn(services.store, turn.key, branch=name)
    sha = await landing.land(replace(work, turn=replace(turn, tip_sha=None)), name)
    await sessions.update_turn(services.store, turn.key, commit_sha=sha)
    move = await opening.open_pull(replace(work, turn=replace(turn, base=onto), landed=sha), name)
    if not isinstance(move, End):
        return move
    # The session stays with the pull request that it is about.
    opened = {"pull_number": move.session["pull_number"]} if "pull_number" in move.session else {}
    detail = "\n\n".join(part for part in (words, move.detail) if part)
    return replace(move, detail=detail, columns={**move.columns, **opened}, session={})
