"""`python -m tests.bench replicas [--json]`: what one, two and three replicas on PostgreSQL do beside one service on
SQLite, all in one run on one machine: webhooks, turns, events, the engine, and the cost of doing nothing."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from bot.engine.durable import DurableEngine
from bot.models import InstallationId, Repo, RepoId, SessionId, Thread, TurnKey
from bot.settings import Address, Secret
from bot.simulation.anthropic import Say, Script
from bot.store import conversation, sessions
from bot.store.base import Store
from bot.store.replicas import Joining
from bot.store.sessions import NewTurn
from tests.bench.streams import cpu_seconds
from tests.crash.process import ALONE, Service
from tests.world import World
from tests.world.postgres import PostgresServer
from tests.world.replicas import ReplicaSet

WEBHOOKS, AT_ONCE = 600, 24
TURNS = 12
EVENT_SECONDS, LINES = 3.0, 20
SUBMITTED = 60
IDLE_SECONDS = 20.0
READY_SECONDS = 2.0
"""Between two questions whether a replica is ready, as `deploy/Caddyfile` asks them."""
SETTINGS = {"FORGEHAND_MAX_SESSIONS": "32", "FORGEHAND_REPO_SESSIONS": "32", "FORGEHAND_DAY_BUDGET": "1000"}
Figures = dict[str, Any]


@dataclass
class Party:
    """The service, as one process or several."""

    world: World
    urls: list[str]
    pids: list[int]
    where: Address
    wires: Sequence[Any] = ()


@asynccontextmanager
async def on_sqlite() -> AsyncIterator[Party]:
    with tempfile.TemporaryDirectory() as folder:
        async with World.running(Path(folder), **SETTINGS) as world:
            service = await Service.start(world, module=ALONE)
            assert service is not None
            try:
                yield Party(world, [service.url], [service.process.pid], world.database)
            finally:
                await service.kill()


@asynccontextmanager
async def on_postgres(server: PostgresServer, count: int) -> AsyncIterator[Party]:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            World.running(Path(folder), **SETTINGS) as world,
            ReplicaSet.running(world, server, count, is_forked=False, FORGEHAND_REPLICA_SECONDS="30") as found,
        ):
            processes = [one.process for one in found.all if one.process is not None]
            found.balancer.every_seconds = READY_SECONDS
            wires = [one.wire for one in found.all]
            yield Party(world, [one.url for one in found.all], [one.pid for one in processes], found.store.where, wires)


async def webhooks(party: Party) -> Figures:
    """Deliver comments without a command, to all in turn, and count the answers a second."""
    world, took = party.world, list[float]()
    issue = {"number": world.issue.number, "title": "t", "body": "", "state": "open", "user": {"id": 1, "login": "a"}}
    hooks = [
        world.github.webhook(world.app, "issue_comment", {"action": "created", "issue": issue, "nothing": n})
        for n in range(WEBHOOKS)
    ]

    async def deliver(client: httpx.AsyncClient, mine: Sequence[int]) -> None:
        for n in mine:
            began = time.monotonic()
            answer = await client.post(
                f"{party.urls[n % len(party.urls)]}/webhook", headers=hooks[n].headers, content=hooks[n].body
            )
            assert answer.status_code == 202, answer.text
            took.append(time.monotonic() - began)

    async with httpx.AsyncClient(timeout=60) as client:
        began = time.monotonic()
        await asyncio.gather(*(deliver(client, range(at, WEBHOOKS, AT_ONCE)) for at in range(AT_ONCE)))
        seconds = time.monotonic() - began
    return {"webhook_acks_per_second": round(WEBHOOKS / seconds, 1), "webhook_p99_ms": _milliseconds(took, 0.99)}


async def turns(party: Party) -> Figures:
    """Ask for turns on as many issues, and count how many a second begin and end."""
    world = party.world
    world.model.default(Script([Say("Done.")]))
    issues = [
        world.github.open_issue(world.repo, title=f"Question {n}", body="What?", by="alice") for n in range(TURNS)
    ]
    before, began = _carried(party), time.monotonic()
    for issue in issues:
        world.say("/claude ask what is this?", on=issue)
    await asyncio.gather(*(world.outcome(on=issue) for issue in issues))
    seconds = time.monotonic() - began
    store = await Store.open_reader(party.where)
    rows = await store.many("SELECT created_at, started_at FROM turns")
    await store.close()
    waits = [row["started_at"] - row["created_at"] for row in rows]
    started = max(row["started_at"] for row in rows) - min(row["created_at"] for row in rows)
    figures = {
        "turns_started_per_second": round(len(rows) / started, 2),
        "turns_ended_per_second": round(len(rows) / seconds, 2),
        "asked_to_started_p50_ms": _milliseconds(waits, 0.5),
        "asked_to_started_p99_ms": _milliseconds(waits, 0.99),
    }
    if party.wires:
        sent, got, statements = (after - there for after, there in zip(_carried(party), before, strict=True))
        figures |= {"turn_kb_sent": round(sent / TURNS / 1000, 1), "turn_kb_received": round(got / TURNS / 1000, 1)}
        figures["turn_statements"] = round(statements / TURNS)
    return figures


def _carried(party: Party) -> tuple[int, int, int]:
    return (
        sum(one.bytes_asked for one in party.wires),
        sum(one.bytes_answered for one in party.wires),
        sum(one.statements for one in party.wires),
    )


async def idle(party: Party) -> Figures:
    """Do nothing for a while; of several replicas, the busiest counts."""
    before = [cpu_seconds(pid) for pid in party.pids]
    statements = _carried(party)[2]
    await asyncio.sleep(IDLE_SECONDS)
    used = [cpu_seconds(pid) - at for pid, at in zip(party.pids, before, strict=True)]
    figures = {"idle_core_percent": round(100 * max(used) / IDLE_SECONDS, 2)}
    if party.wires:
        each = (_carried(party)[2] - statements) / len(party.pids) / IDLE_SECONDS
        figures["idle_statements_per_second"] = round(each, 1)
    return figures


async def engine(where: Address) -> Figures:
    """Submit turns one by one to an engine that has nothing else to do."""
    began: dict[TurnKey, float] = {}
    there: dict[TurnKey, float] = {}

    async def advance(key: TurnKey) -> None:
        there[key] = time.monotonic()

    one = DurableEngine(where, advance)
    await one.start()
    for n in range(SUBMITTED):
        key = TurnKey(SessionId(f"s{n:07}"), 1)
        began[key] = time.monotonic()
        await one.submit(key, f"1#{n}")
        await asyncio.sleep(0.03)
    async with asyncio.timeout(60):
        while len(there) < SUBMITTED:
            await asyncio.sleep(0.05)
    await one.drain()
    took = [there[key] - at for key, at in began.items()]
    return {"engine_to_start_p50_ms": _milliseconds(took, 0.5), "engine_to_start_p99_ms": _milliseconds(took, 0.99)}


def events(where: Address, count: int) -> Figures:
    """Store agents' lines from as many processes as replicas, each in transactions of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(count) as pool:
        address = str(where) if isinstance(where, Path) else where.reveal()
        jobs = [(address, isinstance(where, Path), f"home{n}") for n in range(count)]
        written = pool.starmap(_write_events, jobs)
    return {"events_per_second": round(sum(written) / EVENT_SECONDS)}


def _write_events(address: str, is_file: bool, home: str) -> int:
    return asyncio.run(_append(Path(address) if is_file else Secret(address), home))


async def _append(where: Address, home: str) -> int:
    store = await Store.open(where)
    line = json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "x" * 200}]}})
    written = 0
    async with store.joined(Joining(home, lambda _: None, lambda: None)):

        async def one(n: int) -> None:
            nonlocal written
            thread = Thread(Repo(RepoId(7), "octo", "shop", True, "main"), InstallationId(1), number(home, n), False)
            wish = NewTurn(thread, "run", "fix it", "alice", 11, f"{home}:{n}", "claude-sonnet-5-5", 5.0, 3600.0)
            key, offset = await sessions.begin_turn(store, wish), 0
            assert key is not None
            while time.monotonic() < ends:
                stored = await conversation.append_events(
                    store, key, [("stream", line)] * LINES, expected_offset=offset, new_offset=offset + 1
                )
                assert stored
                written += LINES
                offset += 1

        ends = time.monotonic() + EVENT_SECONDS
        await asyncio.gather(*(one(n) for n in range(8)))
    await store.close()
    return written


def number(home: str, n: int) -> int:
    return 100 * int(home[-1]) + n + 1


def _milliseconds(found: Sequence[float], share: float) -> float:
    ordered = sorted(found)
    value = median(ordered) if share == 0.5 else ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return round(1000 * value, 1)


async def measure(counts: Sequence[int]) -> dict[str, Figures]:
    table: dict[str, Figures] = {}
    with PostgresServer.started(durable=True) as server, tempfile.TemporaryDirectory() as folder:
        parties = [("sqlite", on_sqlite), *((f"{n} on postgres", lambda n=n: on_postgres(server, n)) for n in counts)]
        for name, opened in parties:
            async with AsyncExitStack() as stack:
                party: Party = await stack.enter_async_context(opened())
                await asyncio.sleep(IDLE_SECONDS / 2)  # until the start has done its last
                table[name] = {**await idle(party), **await webhooks(party), **await turns(party)}
            print(name, table[name], file=sys.stderr)
        table["sqlite"] |= await engine(Path(folder) / "engine.db")
        table["1 on postgres"] |= await engine(server.fresh())
        file = Path(folder) / "state.db"
        await (await Store.open(file)).close()
        table["sqlite"] |= await asyncio.to_thread(events, file, 1)
        for n in counts:
            address = server.fresh()
            await (await Store.open(address)).close()
            table[f"{n} on postgres"] |= await asyncio.to_thread(events, address, n)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    table = asyncio.run(measure((1, 2, 3)))
    if given.json:
        print(json.dumps({"cores": os.cpu_count(), "figures": table}))
        return
    rows = list(dict.fromkeys(name for figures in table.values() for name in figures))
    print(f"{'':32}" + "".join(f"{name:>16}" for name in table))
    for row in rows:
        print(f"{row:32}" + "".join(f"{figures.get(row, ''):>16}" for figures in table.values()))


if __name__ == "__main__":
    main()
