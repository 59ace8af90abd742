"""What the command line asks of the running service, and what is done every now and then."""

from __future__ import annotations

import msgspec

from bot.errors import BotError
from bot.handlers import buttons, expiry, settling, stop, switch
from bot.handlers.desk import Desk
from bot.loops import Loop
from bot.models import SessionId
from bot.store import deliveries, gateway, requests, sessions
from bot.store.deliveries import NewDelivery
from bot.store.requests import Request

LOOK_SECONDS = 0.5
NOT_KEPT = (
    "There is no body of that delivery any more: it is kept only where something failed. Copy the payload from the "
    "App's page at GitHub (Advanced, Recent deliveries) into a file, and replay that."
)
SWEEP_EVERY = 120
"""Looks between two sweeps."""


class Errands:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._looks = -1
        self.loop = Loop("errands", self._look, LOOK_SECONDS)

    async def _look(self) -> None:
        self._looks += 1
        for request in await requests.waiting(self._desk.store):
            await self._one(request)
        if self._looks % SWEEP_EVERY == 0:
            await gateway.revoke_all_dead(self._desk.store)
            await expiry.look(self._desk)

    async def _one(self, request: Request) -> None:
        done, words = False, f"`{request.kind}` is not known to the running service: it may be of another version."
        if request.kind == "stop":
            done, words = await self._stop(SessionId(request.body.get("session", "")))
        elif request.kind == "retry":
            done, words = await self._retry(SessionId(request.body.get("session", "")))
        elif request.kind == "settle":
            done, words = await self._settle(request.body)
        elif request.kind in ("pause", "resume"):
            done, words = True, await switch.throw(self._desk, request.kind, stop="stop" in request.body)
        elif request.kind == "replay":
            done, words = await self._replay(request.body)
        await requests.answer(self._desk.store, request.id, words, failed=not done)

    async def _replay(self, body: dict[str, str]) -> tuple[bool, str]:
        """A delivery of the ledger by its GUID, or a new one that came with the request."""
        guid, store = body.get("guid", ""), self._desk.store
        if "delivery" not in body:
            if await deliveries.reopen(store, guid):
                return True, f"Delivery {guid} is taken up again."
            return False, NOT_KEPT
        new = msgspec.json.decode(body["delivery"], type=NewDelivery)
        await deliveries.add(store, new)
        return True, f"Taken up as delivery {new.guid}."

    async def _stop(self, session_id: SessionId) -> tuple[bool, str]:
        if not await stop.stop_all(session_id, "the operator", self._desk):
            return False, f"Nothing runs in session {session_id or '(none)'}."
        return True, f"Session {session_id} is being stopped; its work so far is kept."

    async def _settle(self, body: dict[str, str]) -> tuple[bool, str]:
        try:
            return await settling.settle(SessionId(body.get("session", "")), body.get("usd", ""), self._desk)
        except BotError as error:
            return False, str(error)

    async def _retry(self, session_id: SessionId) -> tuple[bool, str]:
        try:
            return await buttons.retry_as_operator(await sessions.session(self._desk.store, session_id), self._desk)
        except BotError as error:  # asked once: whoever waits for the answer asks again
            return False, str(error)
