"""What operators and people on the pages see of several replicas."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from bot.service import GIVEN_UP
from tests.replicas.test_replicas import WAITING
from tests.world import World
from tests.world.command_line import forgehand
from tests.world.plain_http import plain_client
from tests.world.postgres import PostgresServer
from tests.world.replicas import ReplicaProcess, ReplicaSet
from tests.world.visitor import visitor

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(240)]
TOKEN = "scrape-me"


@pytest.fixture
async def two(world: World, postgres: PostgresServer) -> AsyncIterator[ReplicaSet]:
    async with ReplicaSet.running(world, postgres, 2, FORGEHAND_METRICS_TOKEN=TOKEN) as found:
        yield found


async def asked(one: ReplicaProcess, path: str) -> httpx.Response:
    async with plain_client(base_url=one.url, timeout=20) as client:
        return await client.get(path, headers={"Authorization": f"Bearer {TOKEN}"})


async def figures(one: ReplicaProcess) -> dict[str, float]:
    """The figures without a label."""
    text = (await asked(one, "/metrics")).text
    return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}


async def told(one: ReplicaProcess, *arguments: str) -> Any:
    ran = await forgehand(one.environment, *arguments, "--json")
    assert ran.code == 0, ran.text
    return ran.json


async def test_each_way_to_look_says_which_replica_runs_the_turn(two: ReplicaSet) -> None:
    world, host = two.world, socket.gethostname()
    world.model.default(WAITING)
    world.say("/claude add a line")
    await world.model.reached("on", timeout=60)
    runner, leader = await two.runner(), await two.leader()
    [other] = [one for one in two.all if one is not runner]
    session = str(world.states()[0]["session"])

    rows = await told(runner, "replicas")
    assert [row["leads"] for row in rows] == [one is leader for one in two.all]
    assert [row["turns"] for row in rows] == [int(one is runner) for one in two.all]
    assert all(row["host"] == host and row["beat_seconds_ago"] < 10 for row in rows)
    header, *lines = (await forgehand(runner.environment, "replicas")).out.splitlines()
    assert header.split() == ["ID", "HOST", "VERSION", "SINCE", "TURNS", "LAST", "BEAT", "ROLE"]
    turns_end = header.index("TURNS") + len("TURNS")
    assert [(line.endswith("leads"), line[:turns_end].endswith(" 1")) for line in lines] == [
        (one is leader, one is runner) for one in two.all
    ]
    [running] = [row["id"] for row in rows if row["turns"]]
    assert (await told(other, "sessions", "list"))[0]["replica"] == running
    assert f"running on {host}" in (await forgehand(other.environment, "sessions", "list")).out
    assert (await told(other, "sessions", "show", session))["turns"][0]["host"] == host
    async with visitor(world, other.url, "alice") as person:
        page = (await person.get(f"/sessions/{session}")).text
        assert f"It runs on replica <code>{running}</code>" in page
        assert f"<code>{host}</code>" not in page

    for one in two.all:
        found = await figures(one)
        assert found["forgehand_turns_here"] == int(one is runner)
        assert found["forgehand_replica_leads"] == int(one is leader)
        assert found["forgehand_replicas"] == 2
        assert 0 < found["forgehand_database_round_trip_seconds"] < 2
        assert found["forgehand_replica_beat_lag_seconds"] < 10
    world.model.release("on")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    assert f"on {host}" not in (await forgehand(other.environment, "sessions", "list")).out
    waits = [(await figures(one))["forgehand_queue_wait_seconds_count"] for one in two.all]
    assert sum(waits) == 1, "a turn counts where it ran"


async def test_doctor_looks_at_the_server_and_at_every_beat(world: World, postgres: PostgresServer) -> None:
    async with ReplicaSet.running(world, postgres, 2, FORGEHAND_REPLICA_SECONDS="30") as two:
        first, second = two.all
        found = {one["name"]: one for one in (await forgehand(first.environment, "doctor", "--json")).json}
        second.send(signal.SIGSTOP)
        halted = {one["name"]: one for one in (await forgehand(first.environment, "doctor", "--json")).json}
    assert {found[name]["level"] for name in ("database server", "database clock", "replicas")} == {"good"}, found
    assert "2 live" in found["replicas"]["words"]
    assert "PostgreSQL" in found["database server"]["words"]
    assert "beat" not in found
    assert halted["beat"]["level"] == "warning"
    assert "no sign of life" in halted["beat"]["words"]


async def test_a_replica_says_that_it_is_out_of_touch(two: ReplicaSet) -> None:
    first = two.all[0]
    assert (await asked(first, "/readyz")).status_code == 200
    for one in two.all:
        one.wire.refusing = True
        one.wire.cut()
    async with asyncio.timeout(30):
        while "beat" not in (troubles := (await asked(first, "/readyz")).json()["troubles"]):
            await asyncio.sleep(0.2)
    assert "confirmed no beat" in troubles["beat"]
    assert (await asked(first, "/healthz")).status_code == 200
    away = await figures(first)
    assert away["forgehand_replica_beat_lag_seconds"] > 4
    assert "forgehand_paused" not in away, "the store cannot say"
    for one in two.all:
        one.wire.refusing = False
    async with asyncio.timeout(30):
        while (await asked(first, "/readyz")).status_code != 200:
            await asyncio.sleep(0.2)
        while (back := await figures(first))["forgehand_notice_reconnects_total"] < 1:
            await asyncio.sleep(0.2)
    assert back["forgehand_replicas"] == 2
    assert back["forgehand_paused"] == 0


async def test_one_that_has_nothing_to_write_learns_that_it_was_given_up(two: ReplicaSet) -> None:
    leader = await two.leader()
    [idle] = [one for one in two.all if one is not leader]
    idle.send(signal.SIGSTOP)
    await two.left(1)
    idle.send(signal.SIGCONT)
    assert await idle.ended() == GIVEN_UP, idle.log()[-2000:]
