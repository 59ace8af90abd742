"""A rolling upgrade: one replica after the other gets the next version, whose schema has more in it."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.store.migrations import ALONE
from tests.world import World
from tests.world.command_line import forgehand
from tests.world.postgres import PostgresServer
from tests.world.replicas import ROOT, ReplicaSet

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(240)]
WRITE = Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add a line"})


def next_version(folder: Path, sql: str) -> Path:
    for package in ("bot", "sandbox"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "bot/store/migrations/0002_more.sql").write_text(sql)
    return folder


async def test_a_turn_goes_on_while_all_replicas_are_upgraded(
    world: World, postgres: PostgresServer, tmp_path: Path
) -> None:
    newer = next_version(tmp_path / "newer", "CREATE TABLE more (id TEXT PRIMARY KEY);")
    async with ReplicaSet.running(world, postgres, 2) as both:
        world.model.default(Script([WRITE, Wait("on"), Say("Added a line.")]))
        world.say("/claude add a line")
        await world.model.reached("on", timeout=60)
        for one in both.all:
            assert await one.end(signal.SIGTERM) == 0
            one.code = newer
            await one.start()
            await both.left(2)
            assert await both.store.many("SELECT * FROM more") == []
        world.model.release("on")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        world.say("/claude ask what did you change?")
        assert await world.outcome(2) == "answered"
        assert len(world.pulls()) == 1
        back = await forgehand({**both.all[0].environment, "FORGEHAND_DATA_DIR": str(tmp_path / "back")}, "serve")
        assert back.code != 0
        assert "written by a newer Forgehand" in back.text


async def test_a_version_that_breaks_the_schema_waits_until_all_are_stopped(
    world: World, postgres: PostgresServer, tmp_path: Path
) -> None:
    breaks = next_version(tmp_path / "breaks", f"{ALONE}\nALTER TABLE visits RENAME TO calls;")
    async with ReplicaSet.running(world, postgres, 2) as both:
        first, second = both.all
        assert await first.end(signal.SIGTERM) == 0
        first.code = breaks
        with pytest.raises(AssertionError, match="Stop it first"):
            await first.start()
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        assert await second.end(signal.SIGTERM) == 0
        await first.start()
        assert [one.leads for one in await both.rows()] in ([True], [False])
