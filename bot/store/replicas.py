"""The replicas that share a database: each has a row while it lives, and one of them leads.

Whoever's row is gone writes nothing more: the writer looks for it in each transaction (`store/postgres/connections`).
A file has one service, which needs no row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from bot.errors import StoreError
from bot.store.rows import Database, Row, many, run

if TYPE_CHECKING:
    from bot.store.base import Store

REPLACED = "The other replicas have given this one up. It writes nothing more, and ends."


class Replaced(StoreError):
    """This process was declared dead; others do its work by now."""

    def __init__(self) -> None:
        super().__init__(REPLACED)


@dataclass(frozen=True)
class Joining:
    """What a process brings when it joins the replicas."""

    home: str
    """Its data directory, which only one process at a time can hold."""
    hear: Callable[[list[str] | None], None]
    """Gets the notices of others, from another thread; None if some may have been missed."""
    on_replaced: Callable[[], None]
    """Ends this process, once it was given up."""


@dataclass(frozen=True)
class Replica:
    id: str
    """New at each start."""
    home: str
    host: str
    version: str
    started_at: float
    beat: int
    """Counts up while it lives."""
    beat_at: float
    """By the database's clock; to show, never to judge."""
    leads: bool

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(**{**row, "leads": bool(row["leads"])})


@dataclass(frozen=True)
class DatabaseServer:
    """What the server that the replicas share says of itself."""

    version: str
    now: float
    round_trip_seconds: float
    most_connections: int
    """Those open to ordinary users."""
    connections: int
    """Those open now, of all its users."""
    each_needs: int
    """The connections that one service opens to the store, at most."""
    is_pooled: bool
    """A connection pooler stands before it."""


class Membership(Protocol):
    """The place of this process among the replicas."""

    @property
    def id(self) -> str: ...

    @property
    def reconnects(self) -> int:
        """Count how often the wire for notices was lost and came back."""

    async def beat(self) -> list[Replica]:
        """Show that we live, and return all; Replaced if we were given up."""

    def send(self, notices: list[str]) -> None:
        """Send to all others, soon and perhaps never; does not block."""


def hosts(db: Database) -> dict[str, str]:
    """Return the host of each replica, if there are several: nobody asks where the only one runs."""
    found = many(db, "SELECT id, host FROM replicas")
    return {row["id"]: row["host"] for row in found} if len(found) > 1 else {}


async def turns(store: Store) -> dict[str, int]:
    """Count the turns that each replica runs."""
    counted = (
        "SELECT replica, COUNT(*) AS n FROM turns WHERE state = 'running' AND replica IS NOT NULL GROUP BY replica"
    )
    return {row["replica"]: int(row["n"]) for row in await store.many(counted)}


async def living(store: Store) -> list[Replica]:
    return [Replica.of(row) for row in await store.many("SELECT * FROM replicas ORDER BY started_at, id")]


@dataclass(frozen=True)
class ReplicaAtWork(Replica):
    """A replica with what it does now."""

    turns: int
    beat_seconds_ago: float


async def at_work(store: Store) -> list[ReplicaAtWork]:
    server, running = await store.server(), await turns(store)
    now = server.now if server is not None else store.now()
    return [
        ReplicaAtWork(**vars(one), turns=running.get(one.id, 0), beat_seconds_ago=max(0.0, now - one.beat_at))
        for one in await living(store)
    ]


async def give_up(store: Store, dead: Replica) -> bool:
    """Declare it dead, unless its beat has moved; True if we did it. Requests to the model that it had open are
    settled by whoever leads."""
    return await store.run("DELETE FROM replicas WHERE id = :id AND beat = :beat", id=dead.id, beat=dead.beat) > 0


async def lead(store: Store, replica: str) -> bool:
    """Let it lead if nobody does; return whether it does."""

    def work(db: Database) -> bool:
        leaders = {row["id"] for row in many(db, "SELECT id FROM replicas WHERE leads = 1")}
        if not leaders:
            return run(db, "UPDATE replicas SET leads = 1 WHERE id = :id", id=replica) > 0
        return leaders == {replica}

    return await store.write(work)


async def resign(store: Store, replica: str) -> None:
    """Let another lead, before this one ends."""
    await store.run("UPDATE replicas SET leads = 0 WHERE id = :id", id=replica)
