"""What the ledger is given of a delivery, whichever way it came: by the webhook or by GitHub's own log."""

from __future__ import annotations

from collections.abc import Collection

from bot.models import DeliveryId
from bot.store.deliveries import DeliveryState, NewDelivery
from bot.web import envelope


def is_wanted(event: str, action: str | None, handled: Collection[str]) -> bool:
    """`handled` names events, or actions of events: `issues.opened`."""
    return event in handled or f"{event}.{action}" in handled


def read(guid: str, event: str, body: bytes | bytearray, sha256: str, handled: Collection[str]) -> NewDelivery:
    """What nobody acts upon is noted without its body. NotJson or UnicodeDecodeError when it is not JSON."""
    seen = envelope.read(body)
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
