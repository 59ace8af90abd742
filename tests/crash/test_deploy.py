"""Five sessions at once over a deploy, and yesterday's backup put back: what runs goes on, nothing is there twice."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.store import operations
from bot.store.base import Store
from tests.crash.process import Service
from tests.world import World

HALF = Call("Bash", {"command": "echo half > half.txt", "description": "Write half of it"})
COUNT = 5


@pytest.mark.slow
@pytest.mark.acceptance("F02")
async def test_five_sessions_survive_a_deploy_and_what_is_said_meanwhile_is_found(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_REPO_SESSIONS="5") as world:
        world.model.default(Script([HALF, Wait("on"), Say("Done.")]))
        issues = [world.github.open_issue(world.repo, title=f"Nr. {n}", body="", by="alice") for n in range(COUNT)]
        first = await Service.start(world)
        assert first is not None
        for issue in issues:
            world.say("/claude add a line", on=issue)
        await world.model.until(lambda model: sum(bool(one.tool_results) for one in model.requests) >= COUNT, 90)
        await first.stop()
        world.say("/claude help")
        await world.github.idle()
        second = await Service.start(world)
        assert second is not None
        try:
            world.model.release("on")
            outcomes = [await world.outcome(on=issue, timeout=90) for issue in issues]
            await world.github.changed(lambda: len(world.replies()) == 1, 30)
        finally:
            await second.stop()
        assert outcomes == ["pull_request"] * COUNT
        assert len(world.pulls()) == COUNT == len(world.repo.branches()) - 1
        assert sum(not one.tool_results for one in world.model.requests if one.has_tools) == COUNT, "each begun once"


@pytest.mark.acceptance("F09")
async def test_yesterdays_backup_makes_nothing_twice(world: World) -> None:
    """One session was under way when the backup was made, another began after it; both had ended at GitHub."""
    world.model.default(Script([HALF, Wait("on"), Say("Done.")]))
    other = world.github.open_issue(world.repo, title="Later", body="", by="alice")
    backup = world.root / "backup.db"
    first = await Service.start(world)
    assert first is not None
    world.say("/claude add a line")
    await world.model.reached("on", timeout=60)
    store = await Store.open_reader(world.database)
    await operations.backup(store, backup)
    await store.close()
    world.model.release("on")
    assert await world.outcome() == "pull_request"
    world.say("/claude add another line", on=other)
    assert await world.outcome(on=other) == "pull_request"
    await world.github.idle()
    await first.stop()
    await asyncio.to_thread(_restore, backup, world.root / "data")
    said = [len(world.replies(one)) for one in (world.issue, other)]
    branches, pulls = world.repo.branches(), len(world.pulls())
    before = len(world.github.calls)
    second = await Service.start(world)
    assert second is not None
    try:
        await world.github.changed(lambda: _edited(world, before), 60)
        await world.github.changed(lambda: world.states()[0]["state"] == "done", 60)
    finally:
        await second.stop()
    assert [len(world.replies(one)) for one in (world.issue, other)] == said
    assert world.repo.branches() == branches and len(world.pulls()) == pulls == 2
    again = await Service.start(world)
    assert again is not None
    print(world.replies()[0].body)
    assert await world.outcome() is not None
    await again.stop()


def _edited(world: World, since: int) -> bool:
    """The session that the backup shows under way has come to an end again."""
    calls = world.github.calls[since:]
    return any(re.match(r"PATCH .*/issues/comments/\d+", str(one)) for one in calls)


def _restore(backup: Path, data: Path) -> None:
    for left in data.glob("state.db-*"):
        left.unlink()
    shutil.copyfile(backup, data / "state.db")
    (data / "state.db").chmod(0o600)
