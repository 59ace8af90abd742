"""Requests of the command line to the running service, and regular sweeps."""

from __future__ import annotations

import math

import msgspec

from bot.errors import BotError
from bot.handlers import answers, buttons, turns
from bot.handlers.desk import Desk
from bot.loops import Loop
from bot.models import SessionId
from bot.store import deliveries, gateway, operations, sessions, spend
from bot.store.deliveries import NewDelivery
from bot.store.operations import CliRequest
from bot.words import endings, on_money

LOOK_SECONDS = 1.0
NOT_KEPT = (
    "There is no body of that delivery any more: it is kept only where something failed. Copy the payload from the "
    "App's page at GitHub (Advanced, Recent deliveries) into a file, and replay that."
)
OPERATOR = "operator"
ASKED_ONCE = ("retry", "settle")
"""Kinds that we do not try again: the person who waits for the answer can ask again."""
SWEEP_EVERY = 60
"""Looks between two sweeps."""


class CliRequests:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._looks = -1
        self.loop = Loop("cli_requests", self._look, LOOK_SECONDS)

    async def _look(self) -> None:
        self._looks += 1
        for request in await operations.waiting_requests(self._desk.store):
            await self._one(request)
        if self._looks % SWEEP_EVERY == 0:
            await gateway.revoke_all_dead(self._desk.store)
            await answers.expire(self._desk)

    async def _one(self, request: CliRequest) -> None:
        done, words = False, f"`{request.kind}` is not known to the running service: it may be of another version."
        session, body = SessionId(request.body.get("session", "")), request.body
        try:
            match request.kind:
                case "stop":
                    done = bool(await turns.stop_all(session, "the operator", self._desk))
                    ran = f"Session {session} is being stopped; its work so far is kept."
                    words = ran if done else f"Nothing runs in session {session or '(none)'}."
                case "retry":
                    found = await sessions.session(self._desk.store, session)
                    done, words = await buttons.retry_as_operator(found, self._desk)
                case "settle":
                    done, words = await self._settle(session, body.get("usd", ""))
                case "pause" | "resume":
                    done, words = True, await self._throw_switch(request.kind, stop="stop" in body)
                case "replay":
                    done, words = await self._replay(body)
        except BotError as error:
            if request.kind not in ASKED_ONCE:
                raise
            words = str(error)
        await operations.answer_request(self._desk.store, request.id, words, failed=not done)

    async def _replay(self, body: dict[str, str]) -> tuple[bool, str]:
        """Replay a delivery of the ledger by its GUID, or a new one that came with the request."""
        guid, store = body.get("guid", ""), self._desk.store
        if "delivery" not in body:
            if await deliveries.reopen(store, guid, by=OPERATOR):
                return True, f"Forgehand handles delivery {guid} again."
            return False, NOT_KEPT
        new = msgspec.json.decode(body["delivery"], type=NewDelivery)
        await deliveries.add(store, new)
        return True, f"Forgehand handles it as delivery {new.guid}."

    async def _settle(self, session: SessionId, said_usd: str) -> tuple[bool, str]:
        """Replace unconfirmed money by what the operator has read at the provider."""
        try:
            usd = float(said_usd)
        except ValueError:
            usd = math.nan
        if not math.isfinite(usd) or usd < 0:
            return False, "The dollars must be a number such as 0.03."
        store = self._desk.store
        await sessions.session(store, session)
        open_usd, shown = await spend.confirm(store, session, usd, by="operator")
        if not open_usd:
            return False, on_money.nothing_to_settle(session)
        if not shown:
            return False, on_money.cannot_be_so_much(session, usd, open_usd)
        for key in shown:
            await self._desk.redraw(key)
        return True, on_money.settled(session, usd, open_usd)

    async def _throw_switch(self, kind: str, *, stop: bool) -> str:
        """Pause or resume everything; people who wait see it in the live comment."""
        store = self._desk.store
        if kind == "resume":
            changed = await operations.resume(store, OPERATOR)
            self._desk.admit()
        else:
            changed = await operations.pause(store, OPERATOR)
        for turn in await sessions.queued(store):
            self._desk.board.touch(turn.key)
        if kind == "resume":
            return "Forgehand starts what was waiting." if changed else "Nothing was paused."
        words = "Nothing new starts until `forgehand resume`." if changed else "Forgehand was already paused."
        return f"{words} {await self._stop_all()}" if stop else f"{words} What runs goes on."

    async def _stop_all(self) -> str:
        """Stop what runs; what waits starts after the pause."""
        running = await sessions.running(self._desk.store)
        for turn in running:
            await sessions.request_stop(self._desk.store, turn.key, endings.PAUSED)
            self._desk.poke(turn.key)
            self._desk.board.touch(turn.key)
        count = "1 turn is" if len(running) == 1 else f"{len(running)} turns are"
        return f"{count} being stopped; the work so far is kept."
