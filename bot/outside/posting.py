"""Posts one bulletin to one receiver: what it says, how it is signed, and what the answer means."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from bot.errors import UserError, VaultError
from bot.models import TurnKey
from bot.outside import receivers
from bot.outside.addresses import BadAddress
from bot.outside.client import OutsideClient, OutsideRequest, OutsideTrouble, Patience
from bot.outside.receivers import ReceiverTarget
from bot.repo_config.notify import BulletinEvent
from bot.settings.inside import InsideHosts
from bot.store.base import Clock
from bot.store.bulletins import Bulletin, BulletinFacts
from bot.store.outside_services import OutsideService
from bot.vault import Vault

PATIENCE = Patience(connect_seconds=5.0, read_seconds=10.0)
WHOLE_SECONDS = 15.0
LONGEST_ASKED_SECONDS = 3600.0
"""A receiver that asks for a longer pause is asked again after this."""


@dataclass(frozen=True)
class PostingResult:
    works: bool
    words: str
    """Names the host and no path: paths are secrets."""
    pause_seconds: float = 0.0
    """The pause that the receiver asked for."""


@dataclass(frozen=True)
class Links:
    """Leads people to a thread and a session."""

    github: str
    pages: str | None

    def session(self, key: TurnKey) -> str | None:
        return f"{self.pages.rstrip('/')}/sessions/{key.session}" if self.pages else None


def body(bulletin: Bulletin, facts: BulletinFacts, links: Links) -> str:
    """Write the JSON. All of it is ours: numbers, closed words, and the repository's name."""
    key, repository = bulletin.key, f"{facts.owner}/{facts.name}"
    thread, session = f"{links.github}/{repository}/issues/{facts.number}", links.session(key)
    outcome = None if bulletin.event is BulletinEvent.ASKS else facts.outcome
    kind = facts.kind.replace("_", " ")
    if bulletin.asks is not None:
        words = f"{kind} waits for an answer ({bulletin.asks})"
    else:
        words = f"{kind} has ended: {(outcome or 'unknown').replace('_', ' ')} (${facts.usd:,.2f})"
    said: dict[str, Any] = {
        "id": bulletin.id,
        "event": bulletin.event,
        "at": datetime.fromtimestamp(bulletin.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "repository": repository,
        "number": facts.number,
        "thread_url": thread,
        "session": key.session,
        "turn": key.n,
        "session_url": session,
        "kind": facts.kind,
        "outcome": outcome,
        "asks": bulletin.asks,
        "cost_usd": round(facts.usd, 6),
    }
    text = f"{repository}#{facts.number}: {words}. {session or thread}"
    return msgspec.json.encode({"text": text, "forgehand": said}).decode()


def headers(target: ReceiverTarget, made: str, body: str, at: float) -> list[tuple[str, str]]:
    """Sign as Standard Webhooks says: over the id, the second of this try, and the body."""
    second = str(int(at))
    signed = hmac.new(target.key_bytes, f"{made}.{second}.{body}".encode(), hashlib.sha256).digest()
    return [
        ("content-type", "application/json"),
        ("user-agent", "Forgehand"),
        ("webhook-id", made),
        ("webhook-timestamp", second),
        ("webhook-signature", f"v1,{base64.b64encode(signed).decode()}"),
    ]


async def post(client: OutsideClient, target: ReceiverTarget, made: str, body: str, at: float) -> PostingResult:
    """Post it once. Nothing of the answer's body is read, and no redirect is followed."""
    host = "The receiver"
    try:
        address = client.address(target.url.reveal())
        host = address.host
        wanted = OutsideRequest("POST", address, headers(target, made, body, at), body.encode(), patience=PATIENCE)
        async with asyncio.timeout(WHOLE_SECONDS), client.ask(wanted) as answer:
            asked = answer.headers.get("retry-after", "")
            pause = min(float(asked), LONGEST_ASKED_SECONDS) if asked.isascii() and asked.isdecimal() else 0.0
            return PostingResult(200 <= answer.status < 300, f"{host} answered {answer.status}.", pause)
    except TimeoutError:
        return PostingResult(False, f"{host} did not answer in time.")
    except (BadAddress, OutsideTrouble) as error:
        return PostingResult(False, str(error))


async def try_out(service: OutsideService, vault: Vault, inside: InsideHosts, clock: Clock) -> PostingResult:
    """Post a test that names no repository."""
    client, made, at = OutsideClient(inside), f"msg_{secrets.token_hex(16)}", clock()
    said = {"id": made, "event": "test", "at": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    words = f"This is a test of the receiver {service.name}."
    text = msgspec.json.encode({"text": words, "forgehand": said}).decode()
    try:
        return await post(client, await receivers.target(vault, service), made, text, at)
    except (UserError, VaultError) as error:
        return PostingResult(False, str(error))
    finally:
        await client.close()
