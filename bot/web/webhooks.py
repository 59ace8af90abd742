"""Serves `POST /webhook`: checks the signature, stores the delivery, answers; nothing else happens before that."""

from __future__ import annotations

import hmac
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.errors import BotError
from bot.loops import LARGE_BODY, beside
from bot.settings import Secret
from bot.store import deliveries
from bot.store.base import Store
from bot.store.deliveries import Addition, DeliveryState, NewDelivery
from bot.web import bodies
from bot.web.bodies import BodyLimits, BodyReader, BodyRefused, Disconnected

log = logging.getLogger(__name__)

STATUSES = (202, 400, 401, 408, 409, 413, 415, 503)
SPACING_SECONDS = 60.0
"""Between two log lines about the same status. Otherwise anyone who can reach us could fill the log."""
WHY = {
    401: "the signature is missing or wrong; where GitHub has sent it, FORGEHAND_WEBHOOK_SECRET is not the App's",
    413: "the body is too large",
    415: "the body is encoded; set the webhook's content type to application/json",
}


_SIGNATURE = re.compile(rb"sha256=([0-9a-fA-F]{64})")
_GUID = re.compile(rb"[0-9A-Za-z_-]{1,100}")
_EVENT = re.compile(rb"[a-z0-9_]{1,64}")
_LENGTH = re.compile(rb"[0-9]{1,18}")


class CountedAnswers:
    """Wraps the endpoint: passes the status of each answer to `count`, and logs refusals."""

    def __init__(self, app: ASGIApp, count: Callable[[int], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._count = count
        self._clock = clock
        self._silent: Counter[int] = Counter()
        self._said_at: dict[int, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(message["status"])
            await send(message)

        await self._app(scope, receive, noting)

    def _note(self, status: int) -> None:
        self._count(status)
        if status < 400:
            return
        self._silent[status] += 1
        now, said_at = self._clock(), self._said_at.get(status)
        if said_at is not None and now - said_at < SPACING_SECONDS:
            return
        self._said_at[status] = now
        told = {"status": status, "times": self._silent.pop(status), "why": WHY.get(status, "see its answer at GitHub")}
        log.warning("webhooks were refused", extra=told)


class Signatures:
    """Several secrets are valid while a new one replaces an old one."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._keys = tuple(secret.reveal().encode() for secret in secrets if secret.reveal())

    def __repr__(self) -> str:
        return f"Signatures({len(self._keys)} secrets)"

    def match(self, claimed: bytes, body: bytes | bytearray) -> bool:
        found = [hmac.compare_digest(claimed, hmac.digest(key, body, "sha256")) for key in self._keys]
        return any(found)


def claimed_digest(headers: Sequence[bytes]) -> bytes | None:
    form = _SIGNATURE.fullmatch(headers[0]) if len(headers) == 1 else None
    return bytes.fromhex(form.group(1).decode()) if form else None


def signature_header(secret: Secret, body: bytes) -> str:
    return f"sha256={hmac.digest(secret.reveal().encode(), body, 'sha256').hex()}"


def webhook_routes(
    store: Store,
    secrets: Sequence[Secret],
    *,
    handled: Collection[str],
    on_stored: Callable[[], None],
    on_answered: Callable[[int], None] = lambda _: None,
    limits: BodyLimits = BodyLimits(),  # noqa: B008 - frozen
) -> list[BaseRoute]:
    """`handled` names events, or actions of events: `issues.opened`. Others are stored without their bodies.

    `on_stored` is called after each new delivery that needs work, `on_answered` with the status of each answer.
    Neither may block."""
    endpoint = WebhookEndpoint(store, Signatures(secrets), frozenset(handled), on_stored, limits)
    return [Route("/webhook", CountedAnswers(endpoint, on_answered), methods=["POST"])]


class WebhookEndpoint:
    """A plain ASGI application: a request object for each delivery would cost more than the work."""

    def __init__(
        self, store: Store, keys: Signatures, handled: frozenset[str], on_stored: Callable[[], None], limits: BodyLimits
    ) -> None:
        self._store = store
        self._keys = keys
        self._handled = handled
        self._on_stored = on_stored
        self._bodies = BodyReader(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            claim, declared = _admit(scope)
            body = await self._bodies.read(receive, declared)
        except Disconnected:
            return
        except BodyRefused as refusal:
            await self._refuse(refusal, receive, send)
            return
        try:
            status, word = await self._take(scope, claim, body)
        except BodyRefused as refusal:
            status, word = refusal.status, refusal.sentence
        for message in _messages(status, word, close=False):
            await send(message)

    async def _take(self, scope: Scope, claim: bytes, body: bytes | bytearray) -> tuple[int, str]:
        delivery = await beside(partial(self._read, scope, claim, body), size=len(body), most=LARGE_BODY)
        try:
            addition = await deliveries.add(self._store, delivery)
        except BotError as error:
            log.error("delivery %s could not be stored: %s", delivery.guid, error)
            return 503, "It could not be stored."
        if addition is Addition.CONFLICT:
            log.error("delivery %s came again with another body: the first one counts", delivery.guid)
            return 409, "This delivery is known with another body."
        if addition is Addition.ADDED and delivery.state is DeliveryState.RECEIVED:
            self._on_stored()
        return 202, addition.value

    def _read(self, scope: Scope, claim: bytes, body: bytes | bytearray) -> NewDelivery:
        if not self._keys.match(claim, body):
            raise _bad_signature()
        guid = _only(scope, b"x-github-delivery", _GUID)
        event = _only(scope, b"x-github-event", _EVENT)
        try:
            return bodies.ledger_entry(guid, event, body, deliveries.digest(body), self._handled)
        except (bodies.NotJson, UnicodeDecodeError):
            words = "The body is not JSON: set the webhook's content type to application/json."
            raise BodyRefused(400, words) from None

    async def _refuse(self, refusal: BodyRefused, receive: Receive, send: Send) -> None:
        """Answer without reading the rest of the body first, then close."""
        start, body = _messages(refusal.status, refusal.sentence, close=True)
        await send(start)
        await send({**body, "more_body": True})
        await self._bodies.linger(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _only(scope: Scope, name: bytes, form: re.Pattern[bytes]) -> str:
    values = _values(scope, name)
    if len(values) != 1 or not form.fullmatch(values[0]):
        raise BodyRefused(400, f"{name.decode()} must be there once, in GitHub's form.")
    return values[0].decode("ascii")


def _admit(scope: Scope) -> tuple[bytes, int | None]:
    """Refuse what the headers alone rule out; return the claimed digest and the declared length."""
    lengths = _values(scope, b"content-length")
    declared = int(lengths[0]) if len(lengths) == 1 and _LENGTH.fullmatch(lengths[0]) else None
    if any(value.strip().lower() not in (b"", b"identity") for value in _values(scope, b"content-encoding")):
        raise BodyRefused(415, "Send the body as it is, without Content-Encoding.")
    claim = claimed_digest(_values(scope, b"x-hub-signature-256"))
    if claim is None:
        raise _bad_signature()
    return claim, declared


def _bad_signature() -> BodyRefused:
    return BodyRefused(401, "The signature is missing or wrong.")


def _messages(status: int, word: str, *, close: bool) -> tuple[Message, Message]:
    body = b'{"status":"%s"}' % word.encode()  # our own words need no escaping
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if close:
        headers.append((b"connection", b"close"))
    if status == 503:
        headers.append((b"retry-after", b"30"))
    start = {"type": "http.response.start", "status": status, "headers": headers}
    return start, {"type": "http.response.body", "body": body}
