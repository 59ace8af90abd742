"""Calls of MCP tools through the gateway. Each one is also in the audit trail, without its words."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from bot.models import TurnKey
from bot.store import audit
from bot.store.base import Database, Store
from bot.store.records import Record
from bot.store.rows import many, one, run

ACTOR = "agent"


class CallVerdict(StrEnum):
    BEGUN = "begun"
    NOT_OPEN = "not open"
    NO_YES = "nobody said yes"
    TOO_MANY = "too many"
    """Not noted any more: an agent could fill the disk."""


@dataclass(frozen=True)
class NewCall:
    key: TurnKey
    server: str
    tool: str
    digest: str
    """Identifies the call by its very arguments (`tool_servers.call_digest`)."""
    is_open: bool
    asks: bool
    """It needs a person's yes to exactly this call, which it uses up."""


@dataclass(frozen=True)
class CallCount(Record):
    """The calls of one tool in a turn."""

    turn: int
    server: str
    tool: str
    calls: int
    failed: int


_INSERT = """
INSERT INTO tool_calls (id, session_id, turn, server, tool, approval_id, state, began_at)
VALUES (:id, :session, :turn, :server, :tool, :approval, :state, :at)
"""
_YESES = """
SELECT id, matter FROM approvals WHERE session_id = :session AND turn = :turn AND kind = 'tool' AND state = 'approved'
  AND late = 0 AND id NOT IN (SELECT approval_id FROM tool_calls WHERE approval_id IS NOT NULL
    AND session_id = :session AND turn = :turn)
ORDER BY asked_at, id
"""
_COUNTED = """
SELECT turn, server, tool, COUNT(*) AS calls, SUM(CASE WHEN state = 'ok' THEN 0 ELSE 1 END) AS failed
FROM tool_calls WHERE session_id = :session AND state <> 'open' GROUP BY turn, server, tool ORDER BY turn, server, tool
"""


async def begin(store: Store, call: NewCall, most: int) -> tuple[str, CallVerdict]:
    """Note a call before it is made, and decide whether it may be. Return its id and the verdict."""
    call_id, at = uuid.uuid4().hex, store.now()

    def work(db: Database) -> CallVerdict:
        turn = {"session": call.key.session, "turn": call.key.n}
        counted = one(
            db, "SELECT COUNT(*) AS calls FROM tool_calls WHERE session_id = :session AND turn = :turn", **turn
        )
        if counted is not None and counted["calls"] >= most:
            return CallVerdict.TOO_MANY
        yeses = many(db, _YESES, **turn) if call.is_open and call.asks else ()
        exact = (one["id"] for one in yeses if msgspec.json.decode(one["matter"]).get("exact") == call.digest)
        approval = next(exact, None)
        verdict = CallVerdict.BEGUN if call.is_open else CallVerdict.NOT_OPEN
        if call.is_open and call.asks and approval is None:
            verdict = CallVerdict.NO_YES
        state = "open" if verdict is CallVerdict.BEGUN else "refused"
        told = {"server": call.server, "tool": call.tool, "approval": approval, "state": state}
        run(db, _INSERT, id=call_id, at=at, **turn, **told)
        detail = f"turn {call.key.n}: {call.tool} of {call.server}, arguments {call.digest[:12]}"
        allowed = f", as {approval} allows" if approval else ""
        refused = "" if verdict is CallVerdict.BEGUN else f"; refused: {verdict}"
        audit.put(db, at, ACTOR, "mcp tool called", call.key.session, detail + allowed + refused)
        return verdict

    return call_id, await store.write(work)


async def end(store: Store, call_id: str, *, ok: bool, size: int) -> None:
    sql = "UPDATE tool_calls SET state = :state, ended_at = :at, bytes = :size WHERE id = :id"
    await store.run(sql, id=call_id, state="ok" if ok else "failed", at=store.now(), size=size)


async def counted(store: Store, session: str) -> list[CallCount]:
    return await CallCount.many(store, _COUNTED, session=session)
