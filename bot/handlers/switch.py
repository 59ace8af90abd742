"""The operator's switch: nothing new begins, or all goes on; whoever waits sees it in the live comment."""

from __future__ import annotations

from bot.handlers.desk import Desk
from bot.store import sessions, switches
from bot.words import endings

OPERATOR = "operator"


async def throw(desk: Desk, kind: str, *, stop: bool) -> str:
    """The words of the answer."""
    if kind == "resume":
        changed = await switches.resume(desk.store, OPERATOR)
        desk.admit()
        await _tell_the_queue(desk)
        return "Forgehand takes up what waits." if changed else "Nothing was paused."
    changed = await switches.pause(desk.store, OPERATOR)
    await _tell_the_queue(desk)
    words = "Nothing new is begun until `forgehand resume`." if changed else "Forgehand was paused already."
    return f"{words} {await _stop_all(desk)}" if stop else f"{words} What runs goes on."


async def _tell_the_queue(desk: Desk) -> None:
    for turn in await sessions.queued(desk.store):
        desk.board.touch(turn.key)


async def _stop_all(desk: Desk) -> str:
    """What runs, not what waits: that is begun when all goes on."""
    turns = await sessions.running(desk.store)
    for turn in turns:
        await sessions.request_stop(desk.store, turn.key, endings.PAUSED)
        desk.poke(turn.key)
        desk.board.touch(turn.key)
    count = "1 turn is" if len(turns) == 1 else f"{len(turns)} turns are"
    return f"{count} being stopped; the work so far is kept."
