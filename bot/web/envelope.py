"""Reads the few fields of a delivery that the ledger keeps, without parsing the rest; tolerates any payload."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from bot.models import DeliveryId
from bot.store.deliveries import DeliveryState, NewDelivery

T = TypeVar("T")

_LARGEST = 2**63 - 1
_LONGEST = 100


class NotJson(ValueError):
    """Not a JSON object."""


@dataclass(frozen=True)
class Envelope:
    """What a delivery is about; a field that is missing or nonsense is None."""

    action: str | None = None
    installation_id: int | None = None
    repo_id: int | None = None
    number: int | None = None
    sender: str | None = None


class _Id(msgspec.Struct):
    id: int | None = None


class _Numbered(msgspec.Struct):
    number: int | None = None


class _Login(msgspec.Struct):
    login: str | None = None


class _Payload(msgspec.Struct):
    action: str | None = None
    installation: _Id | None = None
    repository: _Id | None = None
    issue: _Numbered | None = None
    pull_request: _Numbered | None = None
    sender: _Login | None = None
    number: int | None = None


_NULL = msgspec.Raw(b"null")


class _Loose(msgspec.Struct):
    action: msgspec.Raw = _NULL
    installation: msgspec.Raw = _NULL
    repository: msgspec.Raw = _NULL
    issue: msgspec.Raw = _NULL
    pull_request: msgspec.Raw = _NULL
    sender: msgspec.Raw = _NULL
    number: msgspec.Raw = _NULL


_STRICT = msgspec.json.Decoder(_Payload)
_LOOSE = msgspec.json.Decoder(_Loose)


def read(body: bytes | bytearray) -> Envelope:
    """NotJson when the body is not a JSON object; never another error."""
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
    )


def _salvage(body: bytes | bytearray) -> _Payload:
    """Field by field: one of a wrong type does not cost the others."""
    try:
        loose = _LOOSE.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise NotJson("The body is not a JSON object.") from None
    return _Payload(
        action=_as(str, loose.action),
        installation=_as(_Id, loose.installation),
        repository=_as(_Id, loose.repository),
        issue=_as(_Numbered, loose.issue),
        pull_request=_as(_Numbered, loose.pull_request),
        sender=_as(_Login, loose.sender),
        number=_as(int, loose.number),
    )


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
    """What nobody acts upon is noted without its body. NotJson or UnicodeDecodeError when it is not JSON."""
    seen = read(body)
    wanted = is_wanted(event, seen.action, handled)
    text = body.decode() if wanted else None
    named = f"`{event}` ({seen.action})" if seen.action else f"`{event}`"
    return NewDelivery(
        guid=DeliveryId(guid),
        event=event,
        body_sha256=sha256,
        body=text,
        action=seen.action,
        state=DeliveryState.RECEIVED if wanted else DeliveryState.IGNORED,
        reason=None if wanted else f"Nothing is done upon {named}.",
        installation_id=seen.installation_id,
        repo_id=seen.repo_id,
        number=seen.number,
        sender=seen.sender,
    )
