"""Bulletins: what receivers hear of turns. Each is written in the transaction of what it tells, and waits until it was
taken."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from bot import repo_config
from bot.models import InstallationId, Outcome, TurnKey
from bot.repo_config.notify import BulletinEvent
from bot.store.accounts import OPERATOR
from bot.store.base import Store
from bot.store.outside_services import Purpose
from bot.store.records import OfTurn, Record
from bot.store.rows import Database, many, run

ON: Final = "on"
"""The option of a receiver with the events that it hears of from all repositories."""
LATELY_SECONDS = 3 * 86_400.0
MOST_RECEIVERS = 64
"""At one look."""


class BulletinState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given_up"


@dataclass(frozen=True)
class Bulletin(OfTurn):
    id: str
    """Follows from receiver and event: a receiver that gets it twice can tell."""
    installation_id: InstallationId
    """Of the receiver; 0: the operator's."""
    receiver: str
    event: BulletinEvent
    asks: str | None
    """The kind of approval that waits."""
    body: str | None
    """The JSON of the first try, which each further try repeats."""
    tries: int
    at: float


@dataclass(frozen=True)
class BulletinFacts(Record):
    """The facts of a turn that a bulletin may tell: no words of people or of the agent, and no code."""

    owner: str
    name: str
    number: int
    kind: str
    outcome: str | None
    usd: float


@dataclass(frozen=True)
class ReceiverStanding(Record):
    """How a receiver has taken its bulletins of the last days."""

    installation_id: InstallationId
    receiver: str
    waiting: int
    given_up: int
    tries: int
    """The failed tries of the waiting bulletin that has most."""
    problem: str | None
    sent_at: float
    given_up_at: float

    @property
    def fails(self) -> bool:
        return self.tries > 1 or self.given_up_at > self.sent_at


_HEARERS = """
SELECT outside_services.installation_id, outside_services.name, outside_services.options, turns.config
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id
JOIN outside_services ON outside_services.installation_id IN (0, repos.installation_id)
WHERE outside_services.purpose = :purpose AND turns.session_id = :session AND turns.n = :n
"""
_PUT = """
INSERT INTO bulletins (id, installation_id, receiver, event, session_id, turn, asks, state, at, next_at)
VALUES (:id, :installation, :receiver, :event, :session, :n, :asks, 'waiting', :at, :at) ON CONFLICT (id) DO NOTHING
"""
_DUE = """
SELECT installation_id, receiver FROM bulletins WHERE state = 'waiting' GROUP BY installation_id, receiver
HAVING MAX(CASE WHEN tries > 0 THEN next_at ELSE 0 END) <= :now ORDER BY MAX(tries), MIN(at) LIMIT :most
"""
_OLDEST = """
SELECT * FROM bulletins WHERE state = 'waiting' AND installation_id = :installation AND receiver = :receiver
ORDER BY at, id LIMIT 1
"""
_FACTS = """
SELECT repos.owner, repos.name, turns.number, turns.kind, turns.outcome,
    (SELECT COALESCE(SUM(cost_usd), 0.0) FROM spend WHERE spend.session_id = turns.session_id AND spend.turn = turns.n)
    AS usd
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id WHERE turns.session_id = :session AND turns.n = :n
"""
_STANDINGS = """
SELECT installation_id, receiver, SUM(CASE WHEN state = 'waiting' THEN 1 ELSE 0 END) AS waiting,
       SUM(CASE WHEN state = 'given_up' THEN 1 ELSE 0 END) AS given_up,
       MAX(CASE WHEN state = 'waiting' THEN tries ELSE 0 END) AS tries, MAX(problem) AS problem,
       MAX(CASE WHEN state = 'sent' THEN at ELSE 0.0 END) AS sent_at,
       MAX(CASE WHEN state = 'given_up' THEN at ELSE 0.0 END) AS given_up_at
FROM bulletins WHERE at >= :since AND EXISTS (
    SELECT 1 FROM outside_services WHERE purpose = 'receiver' AND name = bulletins.receiver
    AND installation_id = bulletins.installation_id)
GROUP BY installation_id, receiver ORDER BY receiver, installation_id
"""


def words(text: str) -> tuple[str, ...]:
    return tuple(one for one in re.split(r"[\s,]+", text) if one)


def put_ended(db: Database, key: TurnKey, outcome: Outcome, at: float) -> None:
    """Tell that a turn has ended, in the transaction that ends it; safe to repeat."""
    over = outcome is Outcome.OVER_BUDGET
    _put(db, key, BulletinEvent.OVER_BUDGET if over else BulletinEvent.ENDED, f"{key.session}-{key.n}", None, at)


def put_asked(db: Database, key: TurnKey, approval_id: str, kind: str, at: float) -> None:
    """Tell that somebody is asked, in the transaction that asks; safe to repeat."""
    _put(db, key, BulletinEvent.ASKS, approval_id, kind, at)


def _put(db: Database, key: TurnKey, event: BulletinEvent, subject: str, asks: str | None, at: float) -> None:
    for installation, receiver in _hearers(db, key, event):
        named = f"{installation}/{receiver}/{event}/{subject}"
        made = f"msg_{hashlib.sha256(named.encode()).hexdigest()[:32]}"
        run(db, _PUT, id=made, installation=installation, receiver=receiver, event=event, session=key.session,
            n=key.n, asks=asks, at=at)  # fmt: skip


def _hearers(db: Database, key: TurnKey, event: BulletinEvent) -> list[tuple[InstallationId, str]]:
    """Return the receivers that hear of everything in the account, and those that the turn's config names: the
    account's own, else the operator's."""
    rows = many(db, _HEARERS, purpose=Purpose.RECEIVER, session=key.session, n=key.n)
    config = repo_config.load(rows[0]["config"] if rows else None)
    named = {one.to: one.on for one in config.notify}
    own = {row["name"] for row in rows if row["installation_id"] != OPERATOR}
    found = []
    for row in rows:
        name, installation = row["name"], InstallationId(row["installation_id"])
        on = {*words(msgspec.json.decode(row["options"]).get(ON, ""))}
        if installation != OPERATOR or name not in own:
            on |= {*named.get(name, ())}
        if event in on or (event is BulletinEvent.OVER_BUDGET and BulletinEvent.ENDED in on):
            found.append((installation, name))
    return found


async def due(store: Store, now: float) -> list[tuple[InstallationId, str]]:
    """Return the receivers that have something to hear, those that take it well first. One whose oldest bulletin has
    failed hears nothing before its pause is over."""
    rows = await store.many(_DUE, now=now, most=MOST_RECEIVERS)
    return [(InstallationId(row["installation_id"]), row["receiver"]) for row in rows]


async def oldest(store: Store, installation: InstallationId, receiver: str) -> Bulletin | None:
    return await Bulletin.one(store, _OLDEST, installation=installation, receiver=receiver)


async def facts(store: Store, key: TurnKey) -> BulletinFacts | None:
    return await BulletinFacts.one(store, _FACTS, session=key.session, n=key.n)


async def fix_body(store: Store, bulletin: Bulletin, body: str) -> None:
    """Store what is about to be sent, so that every try sends the same."""
    await store.run("UPDATE bulletins SET body = :body WHERE id = :id AND body IS NULL", id=bulletin.id, body=body)


async def taken(store: Store, bulletin: Bulletin) -> None:
    await store.run("UPDATE bulletins SET state = 'sent', problem = NULL WHERE id = :id", id=bulletin.id)


async def failed(store: Store, bulletin: Bulletin, problem: str, next_at: float) -> None:
    sql = "UPDATE bulletins SET tries = tries + 1, problem = :problem, next_at = :next_at WHERE id = :id"
    await store.run(sql, id=bulletin.id, problem=problem, next_at=next_at)


async def give_up(
    store: Store, installation: InstallationId, receiver: str, *, problem: str, before: float = math.inf
) -> int:
    """Give up what waits for a receiver since `before`; return how many."""
    sql = """
    UPDATE bulletins SET state = 'given_up', problem = :problem
    WHERE state = 'waiting' AND installation_id = :installation AND receiver = :receiver AND at <= :before
    """
    return await store.run(sql, installation=installation, receiver=receiver, problem=problem, before=before)


async def standings(store: Store) -> list[ReceiverStanding]:
    return await ReceiverStanding.many(store, _STANDINGS, since=store.now() - LATELY_SECONDS)
