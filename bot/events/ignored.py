"""Deliveries that need no action, and the reason for people."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import DeliveryId


@dataclass(frozen=True)
class Ignored:
    """A delivery that is only stored; `why` says the reason."""

    delivery: DeliveryId
    reason: str


def useless(delivery: DeliveryId, name: str, action: str | None = None) -> Ignored:
    what = f"`{_short(name)}` events" if action is None else f"`{name}` with the action `{_short(action)}`"
    return Ignored(delivery, f"Forgehand does not act on {what}")


def _short(text: str) -> str:
    return "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in text[:60])
