"""A delivery in a file: its content, and what it would start, as far as we know without asking GitHub."""

from __future__ import annotations

import dataclasses
import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.cli import console
from bot.models import DeliveryId

LARGEST = 25 << 20
UNREADABLE = "This file is neither a payload, nor a delivery as GitHub's API or the App's page shows it."
BY_CONFIG = "It holds no command, but starts something if the repository's config says so."
TAKEN_UP = "Forgehand would handle it, but it holds no text that could be a command."


@dataclass(frozen=True)
class Read:
    event: str
    body: str
    guid: DeliveryId | None
    """None for a bare payload, which does not name its GUID."""


def read(path: Path, event: str) -> Read:
    if path.stat().st_size > LARGEST:
        console.fail("This file is larger than any payload of GitHub.")
    try:
        name, payload, guid = _parts(json.loads(path.read_bytes()), event)
    except (ValueError, AttributeError, TypeError, RecursionError):
        console.fail(UNREADABLE)
    if not name:
        console.fail("Which event is it? Name it, for example with `--event issue_comment`.")
    return Read(name, json.dumps(payload), guid)


def as_new(found: Read) -> str:
    """Return it as a new delivery, in JSON; a comment that already started something starts nothing twice."""
    import msgspec

    from bot.store.deliveries import NewDelivery, digest
    from bot.web import bodies

    about = dataclasses.asdict(bodies.read_envelope(found.body.encode()))
    guid = DeliveryId(f"replay-{uuid.uuid4()}")
    return msgspec.json.encode(
        NewDelivery(guid, found.event, digest(found.body.encode()), found.body, **about)
    ).decode()


def foretold(found: Read, word: str) -> str:
    """Foretell what it would start, without the author's permission and the repository's config."""
    from bot import commands, events
    from bot.errors import CommandError
    from bot.events.ignored import Ignored
    from bot.events.threads import CommentDeleted, CommentEdited, Labeled, Remark, ReviewWanted
    from bot.handlers import table

    event = events.decode(found.event, found.body, delivery=DeliveryId("file"), now=time.time())
    if isinstance(event, Ignored):
        return f"It would be ignored: {event.reason}."
    if not isinstance(event, Remark) or isinstance(event, CommentEdited | CommentDeleted):
        return TAKEN_UP
    if isinstance(event, Labeled | ReviewWanted):
        return BY_CONFIG
    try:
        command = commands.parse(event.body, table.TABLE, word=word)
    except CommandError as error:
        return f"It would be refused: {error}"
    if command is None:
        return f"There is no `{word}` in it that counts as a command."
    place = f"{event.thread.repo.full_name}#{event.thread.number}"
    return f"It is the command `{command.word}` by {event.author.login} on {place}, if they may write there."


def _parts(found: Any, event: str) -> tuple[str, dict[str, Any], DeliveryId | None]:
    """Return the event's name, payload and GUID, from a delivery with its request or from a bare payload."""
    request = found.get("request")
    if not isinstance(request, dict):
        return event, dict(found), None
    headers = {str(name).lower(): str(value) for name, value in (request.get("headers") or {}).items()}
    guid = found.get("guid") or headers.get("x-github-delivery")
    name = event or headers.get("x-github-event") or str(found.get("event") or "")
    return name, dict(request["payload"]), DeliveryId(guid) if isinstance(guid, str) else None
