"""Webhooks of one account by the thousand, while another account asks for one thing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from bot.simulation.github.faults import Fault
from bot.simulation.github.webhooks import Signed, signed
from tests.loop.attacks import attack
from tests.loop.field import Field
from tests.world.plain_http import plain_client

AT_ONCE = 16
MANY = 5_000
THREADS = 1_000


def flood(field: Field, words: str, by: str, many: int = MANY) -> Iterator[Signed]:
    """Comments on many threads in turn, as GitHub sends them."""
    comment = field.world.say("Hello.", by=by)
    whole: dict[str, Any] = json.loads(field.world.github.comment_webhook(comment).body)
    for n in range(many):
        said = {**whole["comment"], "id": 10_000_000 + n, "body": words}
        issue = {**whole["issue"], "number": 1_000 + n % THREADS}
        yield signed(field.world.app, "issue_comment", {**whole, "comment": said, "issue": issue})


async def send(field: Field, hooks: Iterable[Signed]) -> None:
    """As fast as they are taken."""
    waiting = iter(hooks)
    async with plain_client(timeout=60) as client:

        async def some() -> None:
            for hook in waiting:
                answer = await client.post(f"{field.service.url}/webhook", content=hook.body, headers=hook.headers)
                assert answer.status_code == 202, answer.text

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))


def of_the_flooded(field: Field, kind: Literal["delay", "hold"], seconds: float = 0.0) -> Fault:
    """Trouble with all that is asked of GitHub about the repository whose comments come."""
    name = field.world.repo.full_name
    return field.world.github.faults.add(Fault(f"* */repos/{name}/*", kind, seconds=seconds, times=None))


@attack("5,000 comments of an outsider", "flood")
async def of_an_outsider(field: Field, many: int = MANY) -> None:
    """GitHub lets the App ask so much an hour, and then nothing more: of that account."""
    await send(field, flood(field, "/claude add a line", "mallory", many))
    await asyncio.sleep(10)


@attack("5,000 comments of a writer, answered slowly", "flood")
async def answered_slowly(field: Field, many: int = MANY) -> None:
    of_the_flooded(field, "delay", 1.0)
    await send(field, flood(field, "/claude status", "alice", many))
    await asyncio.sleep(10)
    assert field.waiting() > many // 2, "nothing was slow"


@attack("5,000 comments of a writer, never answered", "flood")
async def never_answered(field: Field, many: int = MANY) -> None:
    of_the_flooded(field, "hold")
    await send(field, flood(field, "/claude status", "alice", many))
    await asyncio.sleep(10)
    assert field.waiting() >= many, "something was answered"


async def leave_a_line(field: Field, many: int = MANY) -> None:
    """Before the attack above: it is met by a process that starts."""
    of_the_flooded(field, "hold")
    tokens = f"POST */app/installations/{field.world.installation.id}/access_tokens"
    field.world.github.faults.add(Fault(tokens, "hold", times=None))
    await send(field, flood(field, "/claude status", "alice", many))
    await field.restart()


@attack("5,000 comments of a writer, never answered, and a restart", "flood", leave_a_line)
async def after_a_restart(field: Field) -> None:
    """Those in the ledger are the first that the next process finds; nothing of that account is answered to it."""
    await asyncio.sleep(10)
    assert field.waiting() >= MANY, "something was answered"
