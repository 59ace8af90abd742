"""Puts many calls into a session that has ended, as if its agent had made them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from bot.models import SessionId, TurnKey
from bot.store import conversation
from bot.store.base import Store
from bot.store.rows import Database, insert, one, run
from tests.world import World

EVERY_FAILED = 50
FAILED = "AssertionError: the price is below zero"
OUTPUT = "tests/test_prices.py::test_discount PASSED\n" * 12


async def lengthen(world: World, calls: int, *, session: str = "") -> str:
    """Return the session, which now has so many calls more, one every three seconds or so."""
    key = TurnKey(SessionId(session or str(world.states()[-1]["session"])), 1)
    store = await Store.open(world.database, migrate=False)

    def work(db: Database) -> None:
        known = one(db, "SELECT COALESCE(MAX(seq), 0) AS seq FROM events WHERE session_id = :id", id=key.session)
        turn = one(db, "SELECT started_at FROM turns WHERE session_id = :id AND n = 1", id=key.session)
        assert known is not None and turn is not None
        at, seq, rows = float(turn["started_at"]), int(known["seq"]), []
        for seconds, line in _lines(calls):
            at, seq = at + seconds, seq + 1
            same = {"session_id": key.session, "turn": 1, "kind": conversation.STREAM}
            rows.append({**same, "seq": seq, "at": at, "line": json.dumps(line)})
        insert(db, "events", rows)
        run(db, "UPDATE turns SET finished_at = :at WHERE session_id = :id AND n = 1", at=at, id=key.session)

    try:
        await store.write(work)
    finally:
        await store.close()
    return key.session


def _lines(calls: int) -> Iterator[tuple[float, dict[str, object]]]:
    """Yield lines of the agent, each with the seconds since the one before."""
    some = random.Random(calls)
    for n in range(1, calls + 1):
        name, asked = _call(n)
        failed = n % EVERY_FAILED == 0
        if n % 4 == 1:
            yield 1.0, _line("assistant", {"type": "text", "text": f"Step {n}: I look at `price_{n}` **next**."})
        yield 0.5, _line("assistant", {"type": "tool_use", "id": f"long-{n}", "name": name, "input": asked})
        result = {"type": "tool_result", "tool_use_id": f"long-{n}", "is_error": failed}
        yield some.uniform(0.1, 4.0), _line("user", {**result, "content": FAILED if failed else f"{n}\n{OUTPUT}"})


def _call(n: int) -> tuple[str, dict[str, object]]:
    if n % 5 == 0:
        return "Bash", {
            "command": f"python -m pytest -q tests/test_{n}.py",
            "description": f"Run the tests of part {n}",
        }
    if n % 5 == 1:
        file = {"file_path": f"src/part_{n}.py"}
        return "Edit", {**file, "old_string": "return price - discount", "new_string": f"return max(0, {n})"}
    if n % 5 == 2:
        return "Grep", {"pattern": f"discount_{n}"}
    if n % 5 == 3:
        return "Read", {"file_path": f"src/part_{n}.py"}
    return "Bash", {"command": f"sed -n '{n},{n + 40}p' src/prices.py | grep -n discount", "description": "Look around"}


def _line(kind: str, block: dict[str, object]) -> dict[str, object]:
    message = {"id": "m", "type": "message", "role": kind, "model": "m", "content": [block]}
    return {"type": kind, "message": message, "session_id": "s"}
