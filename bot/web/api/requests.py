"""Stores a request as a delivery, once by its key, and waits a while for what becomes of it."""

from __future__ import annotations

import asyncio
import hashlib
import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bot.events import api
from bot.events.api import ApiAsked
from bot.handlers.desk import Desk
from bot.models import DeliveryId
from bot.notices import Topic
from bot.store import api_tokens, deliveries
from bot.store.api_tokens import ApiToken
from bot.store.deliveries import Addition, DeliveryState, NewDelivery, StoredDelivery
from bot.web.api.answers import ApiRefusal, written
from bot.web.api.shapes import Accepted

KEY = "Idempotency-Key"
KEY_FORM = r"^[!-~]{1,100}$"
WAIT_SECONDS = 10.0
FIRST_LOOK, LONGEST_LOOK = 0.01, 0.2
STATUSES = {DeliveryState.IGNORED: 403, DeliveryState.REFUSED: 403, DeliveryState.FAILED: 503}
NO_KEY = f"Send the header `{KEY}`: 1 to 100 visible ASCII characters, new for each thing that you ask for."
OTHER_BODY = "This key came before with another body or address. Send a new key for a new request."
_WAITING = Accepted(
    "waiting", said=f"It is stored. Send the same request with the same {KEY} to see what became of it."
)


async def ask(request: Request, body: bytes, token: ApiToken, asked: ApiAsked, desk: Desk) -> Response:
    """The same key with the same body gives the same answer; nothing starts twice."""
    sent = hashlib.sha256(request.url.path.encode() + b"\n" + body).hexdigest()
    new = NewDelivery(
        guid=_guid(request, token),
        event=api.EVENT,
        action=asked.action,
        body_sha256=sent,
        body=msgspec.json.encode(asked).decode(),
        installation_id=token.installation_id,
        repo_id=asked.repo_id,
        number=asked.number,
        sender=token.made_by,
    )
    addition = await deliveries.add(desk.store, new)
    if addition is Addition.CONFLICT:
        raise ApiRefusal(409, OTHER_BODY)
    if addition is Addition.ADDED:
        desk.notices.tell(Topic.DELIVERY)
    settled = await _settled(new.guid, desk)
    return written(_WAITING, 202) if settled is None else await _answer(settled, desk)


def _guid(request: Request, token: ApiToken) -> DeliveryId:
    keys = request.headers.getlist(KEY)
    if len(keys) != 1 or not re.fullmatch(KEY_FORM, keys[0]):
        raise ApiRefusal(400, NO_KEY)
    return DeliveryId(f"api-{token.id}-{hashlib.sha256(keys[0].encode()).hexdigest()[:40]}")


async def _settled(guid: DeliveryId, desk: Desk) -> StoredDelivery | None:
    pause = FIRST_LOOK
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                row = await deliveries.get(desk.store, guid)
                if row is not None and row.state is not DeliveryState.RECEIVED:
                    return row
                await asyncio.sleep(pause)  # the leader may be another replica
                pause = min(pause * 1.5, LONGEST_LOOK)
    except TimeoutError:
        return None


async def _answer(row: StoredDelivery, desk: Desk) -> Response:
    found = await api_tokens.key_of(desk.store, api.source_of(row.guid))
    if row.state is DeliveryState.ACTED or found is not None:
        session, turn = found or (row.session_id, None)
        return written(Accepted("done", session, turn, row.reason or ""), 201 if row.action == api.START else 200)
    raise ApiRefusal(
        STATUSES[row.state], row.reason or "It was refused.", None if row.state is DeliveryState.FAILED else "refused"
    )
