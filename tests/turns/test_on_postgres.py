"""The whole way with the store on PostgreSQL. `FORGEHAND_TESTS_ON=postgres` runs any test of a world there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.world import World
from tests.world.command_line import forgehand
from tests.world.postgres import PostgresServer

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
            second = await forgehand({**world.environment, "FORGEHAND_DATA_DIR": str(tmp_path / "other")}, "serve")
        assert [one["turns"] for one in listed.json] == [2]
        assert second.code != 0
        assert "already running" in second.text
        assert not (tmp_path / "data" / "state.db").exists()
        checked = await forgehand(world.environment, "doctor")
        assert "PostgreSQL's database" in checked.text
        assert "hunter2" not in before.text + listed.text + second.text + checked.text
