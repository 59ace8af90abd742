"""What nobody said yes to in time: taken from the table, with a word in the thread where nothing else says so."""

from __future__ import annotations

import logging
from dataclasses import replace

from bot.errors import GitHubRefused
from bot.handlers.desk import Desk
from bot.store import approvals, sessions
from bot.store.approvals import Approval, Kind, Standing
from bot.words import on_approvals, on_forks

log = logging.getLogger(__name__)

_EXPIRE = (Kind.PLAN, Kind.PUSH, Kind.FORK)
"""An agent's questions do so with the agent."""


async def look(desk: Desk) -> None:
    for kind in _EXPIRE:
        for approval in await approvals.due(desk.store, kind, desk.clock()):
            await _tell(approval, desk)
            await take_away(approval, desk)


async def found_over(approval: Approval, said_at: float, desk: Desk) -> str | None:
    """The sentence for who has said it too late, also where nobody has looked since its time was over."""
    over_at = min(said_at, desk.clock())
    if approval.kind not in _EXPIRE or approval.state is not Standing.OPEN or approval.expires_at > over_at:
        return None
    await take_away(approval, desk)
    return _sentence(approval, desk)


async def take_away(approval: Approval, desk: Desk) -> None:
    await approvals.expire(desk.store, approval.id)
    await desk.show_anew(approval.key)


def _sentence(approval: Approval, desk: Desk) -> str:
    command = desk.settings.command
    if approval.sha is not None:
        return on_forks.over(approval.sha, command)
    words = on_approvals.plan_expired if approval.kind is Kind.PLAN else on_approvals.push_expired
    return words(approval.id, command)


async def _tell(approval: Approval, desk: Desk) -> None:
    """The word comes before the row: repeated after a crash, the comment is found by its marker. Of a fork's code the
    comment says it that asked for the yes."""
    if approval.kind is Kind.FORK:
        return
    turn = await sessions.turn(desk.store, approval.key)
    thread = replace((await sessions.session(desk.store, approval.session_id)).thread, number=turn.number)
    marker = f"<!-- forgehand:expired={approval.id} -->"
    try:
        await desk.outbound.comment(thread, f"{marker}\n{_sentence(approval, desk)}", marker)
    except GitHubRefused as error:  # a locked thread, an App that is gone: it expires all the same
        log.warning("nobody was told that it expired", extra={"approval": approval.id, "error": str(error)})
