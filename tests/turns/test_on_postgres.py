"""The whole way with the store on PostgreSQL. `FORGEHAND_TESTS_ON=postgres` runs any test of a world there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.world import World
from tests.world.command_line import forgehand
from tests.world.plain_http import plain_client
from tests.world.postgres import PostgresServer
from tests.world.wire_cutter import WireCutter

pytestmark = pytest.mark.postgres


async def test_from_a_comment_to_a_pull_request_and_on_after_a_restart(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    address = postgres.fresh().reveal().replace("postgres@", "postgres:hunter2@")
    async with World.running(tmp_path, FORGEHAND_DATABASE_URL=address) as world:
        before = await forgehand(world.environment, "sessions", "list")
        assert before.code != 0
        assert "forgehand serve" in before.text
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        async with world.bot():
            world.say("/claude ask what did you change?")
            assert await world.outcome(2) == "answered"
            listed = await forgehand(world.environment, "sessions", "list", "--json")
        assert [one["turns"] for one in listed.json] == [2]
        assert not (tmp_path / "data" / "state.db").exists()
        checked = await forgehand(world.environment, "doctor")
        assert "PostgreSQL's database" in checked.text
        assert "hunter2" not in before.text + listed.text + checked.text


async def test_a_session_goes_on_after_its_store_was_moved_there_and_back(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    address = postgres.fresh().reveal()
    there = {"FORGEHAND_DATABASE_URL": address}
    async with World.running(tmp_path) as world:
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
            refused = await forgehand(world.environment, "db", "migrate", "--to", address)
        assert refused.code != 0
        assert "already running" in refused.text
        told = await forgehand(
            world.environment, "db", "migrate", "--to", address.replace("postgres@", "postgres:word@")
        )
        assert told.code != 0
        assert "FORGEHAND_DATABASE_PASSWORD" in told.text
        moved = await forgehand(world.environment, "db", "migrate", "--to", address, "--json")
        assert moved.json["tables"]["turns"]["rows"] == 1, moved.text
        forgotten = await forgehand(world.environment, "serve")
        assert forgotten.code != 0
        assert "moved to PostgreSQL" in forgotten.text
        async with world.bot(**there):
            world.say("/claude ask what did you change?")
            assert await world.outcome(2) == "answered"
            backup = await forgehand({**world.environment, **there}, "db", "backup", str(tmp_path / "backup.db"))
        assert backup.code == 0, backup.text
        back = await forgehand({**world.environment, **there}, "db", "migrate", "--to", "file")
        assert back.code == 0, back.text
        async with world.bot():
            world.say("/claude ask and now?")
            assert await world.outcome(3) == "answered"
        elsewhere = {**world.environment, "FORGEHAND_DATABASE_URL": postgres.fresh().reveal()}
        restored = await forgehand(elsewhere, "db", "restore", str(tmp_path / "backup.db"))
        assert restored.code == 0, restored.text
        listed = await forgehand(elsewhere, "sessions", "list", "--json")
        assert [one["turns"] for one in listed.json] == [2]


async def test_a_machine_that_is_lost_takes_no_memory_with_it(tmp_path: Path, postgres: PostgresServer) -> None:
    async with World.running(tmp_path, FORGEHAND_DATABASE_URL=postgres.fresh().reveal()) as world:
        world.declare_checks()
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        elsewhere = {**world.environment, "FORGEHAND_DATA_DIR": str(tmp_path / "elsewhere")}
        session = str(world.states()[0]["session"])
        printed = await forgehand(elsewhere, "sessions", "logs", session, "--checks")
        assert "[exit 0" in printed.out, printed.text
        async with world.bot(FORGEHAND_DATA_DIR=elsewhere["FORGEHAND_DATA_DIR"]):
            world.say("/claude ask what did you change?")
            assert await world.outcome(2) == "answered", world.replies()[-1].body
        assert "never goes below zero" in str(world.model.requests[-1].body["messages"])


async def test_work_goes_on_after_the_database_was_away(tmp_path: Path, postgres: PostgresServer) -> None:
    write = Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"})
    async with WireCutter.running(postgres.port) as wire:
        address = postgres.fresh().reveal().replace(str(postgres.port), str(wire.port))
        async with World.running(tmp_path, FORGEHAND_DATABASE_URL=address) as world, world.bot() as running:
            world.model.default(Script([write, Wait("on"), Say("Added a line.")]))
            world.say("/claude add a line")
            await world.model.reached("on", timeout=60)
            wire.refusing = True
            wire.cut()
            world.model.release("on")
            async with plain_client(base_url=running.url, timeout=30) as client:
                assert (await client.get("/readyz")).status_code == 503
                assert (await client.get("/healthz")).status_code == 200, "a restart would not bring it back"
                hook = world.github.webhook(world.app, "ping", {"zen": "Keep it logically awesome."})
                answer = await client.post("/webhook", headers=hook.headers, content=hook.body)
                assert answer.status_code == 503, "GitHub keeps it for redelivery"
                wire.refusing = False
                async with asyncio.timeout(30):
                    while (await client.get("/readyz")).status_code != 200:
                        await asyncio.sleep(0.2)
            assert await world.outcome() == "pull_request", world.replies()[0].body
        assert len(world.pulls()) == 1
        assert len(world.replies()) == 1
