"""What comes in by the webhook."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from bot.simulation.github.webhooks import signed
from tests.loop import hostile
from tests.loop.attacks import attack
from tests.loop.field import Field
from tests.world.plain_http import plain_client

KILOBYTE = 1 << 10
MEGABYTE = 1 << 20


@attack("nothing", "none")
async def nothing(field: Field) -> None:
    await asyncio.sleep(3)


def comments_of(size: int, who: str, by: str) -> None:
    for kind, words in (("quotes", hostile.quotes(size * KILOBYTE)), ("fences", hostile.fences(size * KILOBYTE))):

        @attack(f"{kind} of {size} KB by {who}", "comment")
        async def comment(field: Field, words: str = words) -> None:
            field.world.say(words, by=by)
            await field.settled()


comments_of(15, "an outsider", "mallory")
comments_of(64, "a writer", "alice")


async def post(field: Field, event: str, body: bytes, *, sign: bool = True) -> int:
    """With a GUID of its own; `sign`: as GitHub does."""
    hook = signed(field.world.app, event, {})
    headers = {**hook.headers, **(field.world.github.sign(field.world.app, body) if sign else {})}
    async with plain_client(timeout=60) as client:
        answer = await client.post(f"{field.service.url}/webhook", content=body, headers=headers)
    return answer.status_code


def payload(field: Field, **more: Any) -> dict[str, Any]:
    """Of a comment, as GitHub sends it, with more in it."""
    comment = field.world.say("Hello.", by="mallory")
    whole: dict[str, Any] = json.loads(field.world.github.comment_webhook(comment).body)
    return {**whole, **more}


@attack("25 MB, signed, eight at once", "webhook")
async def large_bodies(field: Field) -> None:
    body = json.dumps(payload(field, filler="x" * (24 * MEGABYTE))).encode()
    await asyncio.gather(*(post(field, "issue_comment", body) for _ in range(8)))
    await field.settled()


@attack("25 MB, not signed, eight at once", "webhook")
async def forged_bodies(field: Field) -> None:
    body = b"x" * (24 * MEGABYTE)
    assert set(await asyncio.gather(*(post(field, "issue_comment", body, sign=False) for _ in range(8)))) <= {401, 503}


@attack("25 MB of tiny values", "webhook")
async def tiny_values(field: Field) -> None:
    body = json.dumps(payload(field)).encode()[:-1] + b',"filler":[' + b"1," * (12 * MEGABYTE) + b"1]}"
    for _ in range(3):
        await post(field, "issue_comment", body)
    await field.settled()


@attack("deep JSON of 20 MB", "webhook")
async def deep_bodies(field: Field) -> None:
    for text in (hostile.deep(20 * MEGABYTE), hostile.deep_objects(20 * MEGABYTE)):
        await post(field, "issue_comment", text.encode())
        await post(field, "issue_comment", f'{{"issue":{text}}}'.encode())
    await field.settled()


@attack("10,000 labels and reviewers", "webhook")
async def labels(field: Field) -> None:
    whole = payload(field)
    user = whole["sender"]
    label = {"id": 1, "name": "bug", "color": "ffffff", "default": False, "description": "d" * 100}
    whole["issue"] = {**whole["issue"], "labels": [label] * 10_000, "assignees": [user] * 10_000}
    pull = {**whole["issue"], "requested_reviewers": [user] * 10_000, "head": {"sha": "0" * 40}}
    asked = {**whole, "action": "review_requested", "pull_request": pull, "requested_reviewer": user}
    for _ in range(5):
        await post(field, "issue_comment", json.dumps(whole).encode())
        await post(field, "pull_request", json.dumps(asked).encode())
    await field.settled()
