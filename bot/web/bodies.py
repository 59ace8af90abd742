"""Reads a request's body under limits, and from a delivery the few fields that the ledger keeps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from starlette.types import Receive

from bot.models import ACCOUNT_REPOSITORY, DeliveryId
from bot.store.deliveries import DeliveryState, NewDelivery

MEGABYTE = 1024 * 1024
T = TypeVar("T")
_LARGEST = 2**63 - 1
_LONGEST = 100


class BodyRefused(Exception):
    """Carries the status to answer before closing, and a sentence for the sender."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Disconnected(Exception):
    """The sender left before the end of the body."""


@dataclass(frozen=True)
class BodyLimits:
    most_bytes: int = 25 * MEGABYTE  # GitHub's own cap
    seconds: float = 10.0
    all_bytes: int = 128 * MEGABYTE
    """The cap for all bodies being read, because any stranger may send one. Beyond it, the largest is refused."""
    linger_seconds: float = 5.0


@dataclass(eq=False)
class _Reading:
    deadline: asyncio.Timeout
    size: int = 0
    evicted: bool = False

    def evict(self) -> None:
        self.evicted = True
        with contextlib.suppress(RuntimeError):  # it has already timed out
            self.deadline.reschedule(asyncio.get_running_loop().time())


class BodyReader:
    """Counts what all requests of a route hold together."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._readings: set[_Reading] = set()

    async def read(self, receive: Receive, declared: int | None) -> bytes | bytearray:
        """Refuse a declared length over the cap unread, and a false or missing one while reading."""
        if declared is not None and declared > self._limits.most_bytes:
            raise self._too_large()
        mine = _Reading(asyncio.timeout(self._limits.seconds))
        self._readings.add(mine)
        try:
            async with mine.deadline:
                return await self._read(receive, mine)
        except TimeoutError:
            if mine.evicted:
                raise _too_much() from None
            raise BodyRefused(408, "The body did not arrive in time.") from None
        finally:
            self._readings.discard(mine)

    async def linger(self, receive: Receive) -> None:
        """Drop what still arrives, for a while: closing at once would destroy our answer on its way."""
        with contextlib.suppress(TimeoutError, Disconnected):
            async with asyncio.timeout(self._limits.linger_seconds):
                more = True
                while more:
                    _, more = await _chunk(receive)

    async def _read(self, receive: Receive, mine: _Reading) -> bytes | bytearray:
        first, more = await _chunk(receive)
        self._hold(len(first), mine)
        if not more:
            return first
        body = bytearray(first)
        while more:
            chunk, more = await _chunk(receive)
            self._hold(len(chunk), mine)
            body += chunk
        return body

    def _hold(self, count: int, mine: _Reading) -> None:
        """Refuse the largest body if no room is left: strangers must not keep GitHub's small ones out."""
        mine.size += count
        if mine.size > self._limits.most_bytes:
            raise self._too_large()
        while sum(one.size for one in self._readings if not one.evicted) > self._limits.all_bytes:
            largest = max((one for one in self._readings if not one.evicted), key=lambda one: one.size)
            if largest is mine:
                raise _too_much()
            largest.evict()

    def _too_large(self) -> BodyRefused:
        return BodyRefused(413, f"The body is larger than {self._limits.most_bytes // MEGABYTE} MB.")


def _too_much() -> BodyRefused:
    return BodyRefused(503, "Too much is being received at once.")


async def _chunk(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] != "http.request":
        raise Disconnected
    body: bytes = message.get("body", b"")
    return body, message.get("more_body", False)


class NotJson(ValueError):
    """The body is not a JSON object."""


@dataclass(frozen=True)
class Envelope:
    """The subject of a delivery. Missing or malformed fields are None."""

    action: str | None = None
    installation_id: int | None = None
    repo_id: int | None = None
    number: int | None = None
    sender: str | None = None
    repo_name: str | None = None


class _Id(msgspec.Struct):
    id: int | None = None


class _Named(msgspec.Struct):
    id: int | None = None
    name: str | None = None


class _Numbered(msgspec.Struct):
    number: int | None = None


class _Login(msgspec.Struct):
    login: str | None = None


class _Payload(msgspec.Struct):
    action: str | None = None
    installation: _Id | None = None
    repository: _Named | None = None
    issue: _Numbered | None = None
    pull_request: _Numbered | None = None
    sender: _Login | None = None
    number: int | None = None


_FIELDS = {field.name: field.type for field in msgspec.structs.fields(_Payload)}
_STRICT = msgspec.json.Decoder(_Payload)
_LOOSE = msgspec.json.Decoder(
    msgspec.defstruct("_Loose", [(name, msgspec.Raw, msgspec.Raw(b"null")) for name in _FIELDS])
)


def read_envelope(body: bytes | bytearray) -> Envelope:
    """Raise NotJson, and never another error, if the body is not a JSON object."""
    try:
        payload = _STRICT.decode(body)
    except msgspec.ValidationError:
        payload = _salvage(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise NotJson("The body is not JSON.") from None
    about = payload.issue or payload.pull_request
    return Envelope(
        action=_text(payload.action),
        installation_id=_whole(payload.installation.id if payload.installation else None),
        repo_id=_whole(payload.repository.id if payload.repository else None),
        number=_whole(about.number if about else payload.number),
        sender=_text(payload.sender.login if payload.sender else None),
        repo_name=_text(payload.repository.name if payload.repository else None),
    )


def _salvage(body: bytes | bytearray) -> _Payload:
    """Read field by field, so that one of a wrong type does not spoil the others."""
    try:
        loose = _LOOSE.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise NotJson("The body is not a JSON object.") from None
    return _Payload(**{name: _as(kind, getattr(loose, name)) for name, kind in _FIELDS.items()})


def _as(kind: type[T], raw: msgspec.Raw) -> T | None:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _whole(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= _LARGEST else None


def _text(value: str | None) -> str | None:
    return value[:_LONGEST] if value else None


def is_wanted(event: str, action: str | None, handled: Collection[str]) -> bool:
    """`handled` names events, or actions of events: `issues.opened`."""
    return event in handled or f"{event}.{action}" in handled


def ledger_entry(guid: str, event: str, body: bytes | bytearray, sha256: str, handled: Collection[str]) -> NewDelivery:
    """Keep the body only if a handler wants it. Raise NotJson or UnicodeDecodeError if it is not JSON."""
    seen = read_envelope(body)
    of_account = event != "push" or seen.repo_name == ACCOUNT_REPOSITORY  # there are far too many others
    wanted = of_account and is_wanted(event, seen.action, handled)
    named = f"`{event}` ({seen.action})" if seen.action else f"`{event}`"
    return NewDelivery(
        guid=DeliveryId(guid),
        event=event,
        body_sha256=sha256,
        body=body.decode() if wanted else None,
        action=seen.action,
        state=DeliveryState.RECEIVED if wanted else DeliveryState.IGNORED,
        reason=None if wanted else f"Forgehand does not act on {named}.",
        installation_id=seen.installation_id,
        repo_id=seen.repo_id,
        number=seen.number,
        sender=seen.sender,
    )
