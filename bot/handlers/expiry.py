"""Plans and held commits that nobody approved in time: taken from the table with a word in the thread, once."""

from __future__ import annotations

import logging
from dataclasses import replace

from bot.errors import GitHubRefused
from bot.handlers.desk import Desk
from bot.store import approvals, sessions
from bot.store.approvals import Approval, Kind
from bot.words import on_approvals

log = logging.getLogger(__name__)


_WORDS = {Kind.PLAN: on_approvals.plan_expired, Kind.PUSH: on_approvals.push_expired}


async def look(desk: Desk) -> None:
    for kind in _WORDS:
        for approval in await approvals.due(desk.store, kind, desk.clock()):
            await _expire(approval, desk)


async def _expire(approval: Approval, desk: Desk) -> None:
    """The word comes before the row: repeated after a crash, the comment is found by its marker."""
    try:
        await _say(approval, desk)
    except GitHubRefused as error:  # a locked thread, an App that is gone: it expires all the same
        log.warning("nobody was told that it expired", extra={"approval": approval.id, "error": str(error)})
    await approvals.expire(desk.store, approval.id)
    await desk.show_anew(approval.key)


async def fork_code(desk: Desk) -> None:
    """A yes to a fork's code that nobody gave in time; the comment that asked for it says so."""
    for approval in await approvals.due(desk.store, Kind.FORK, desk.clock()):
        await approvals.expire(desk.store, approval.id)
        await desk.show_anew(approval.key)


async def _say(approval: Approval, desk: Desk) -> None:
    turn = await sessions.turn(desk.store, approval.key)
    thread = replace((await sessions.session(desk.store, approval.session_id)).thread, number=turn.number)
    marker = f"<!-- forgehand:expired={approval.id} -->"
    words = _WORDS[approval.kind](approval.id, desk.settings.command)
    await desk.outbound.comment(thread, f"{marker}\n{words}", marker)
