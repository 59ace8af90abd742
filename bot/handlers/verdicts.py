"""What is noted in the ledger of a delivery that was looked at."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import SessionId
from bot.store.deliveries import DeliveryState


@dataclass(frozen=True)
class Noted:
    """`reason` is what `why` will say."""

    state: DeliveryState
    reason: str | None = None
    session: SessionId | None = None


def acted(session: SessionId | None = None, reason: str | None = None) -> Noted:
    return Noted(DeliveryState.ACTED, reason, session)


def ignored(reason: str) -> Noted:
    return Noted(DeliveryState.IGNORED, reason)


def refused(reason: str) -> Noted:
    return Noted(DeliveryState.REFUSED, reason)
