"""Knows GitHub's webhook payloads and turns each into an event of ours; nothing else in the bot sees their JSON."""

from __future__ import annotations

import msgspec

from bot.events import accounts, checks, threads
from bot.events.accounts import AccessChanged, InstallationChanged
from bot.events.checks import CheckAsked, CheckEnded
from bot.events.ignored import Ignored, useless
from bot.events.remarks import Remark
from bot.events.threads import ThreadChanged
from bot.models import DeliveryId

SUBSCRIBED_EVENTS = frozenset(
    (
        "check_run",
        "issue_comment",
        "issues",
        "member",
        "organization",
        "pull_request",
        "pull_request_review",
        "pull_request_review_comment",
        "status",
    )
)
"""The same list as in app.yml."""
AUTOMATIC_EVENTS = frozenset(("github_app_authorization", "installation", "installation_repositories"))
"""GitHub sends these to every App; a manifest that names them is refused."""
HANDLED_EVENTS = SUBSCRIBED_EVENTS | AUTOMATIC_EVENTS

Event = Remark | CheckAsked | CheckEnded | ThreadChanged | InstallationChanged | AccessChanged | Ignored


def decode(name: str, body: bytes | str, *, delivery: DeliveryId, now: float) -> Event:
    """The event in a delivery whose signature was checked; never raises for what GitHub, or anyone, may send."""
    try:
        if name in accounts.ABOUT_PEOPLE:
            return accounts.decode_access(name, body, delivery)
        if name in AUTOMATIC_EVENTS:
            return accounts.decode_installation(name, body, delivery)
        if name in checks.EVENTS:
            return checks.decode(name, body, delivery)
        if name in SUBSCRIBED_EVENTS:
            return threads.decode(name, body, delivery, now)
    except msgspec.ValidationError as error:
        return Ignored(delivery, f"the payload of `{name}` lacks something that we need: {error}"[:300])
    except (ValueError, RecursionError, OverflowError):  # not JSON; msgspec's errors are ValueErrors
        return Ignored(delivery, f"the payload of `{name}` cannot be read as JSON")
    return useless(delivery, name)
