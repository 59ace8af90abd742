"""A backup of an hour ago put back: what happened since is found where it happened, and is not done again."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.faults import Fault
from bot.store import operations
from bot.store.base import Store
from tests.world import World

WORK = Call("Bash", {"command": "echo more >> shop.py", "description": "Add"})


async def backup(world: World, target: Path) -> None:
    store = await Store.open_reader(world.database)
    await operations.backup(store, target)
    await store.close()


def restore(world: World, saved: Path) -> None:
    """As README says: the service is stopped, and the file takes the place of the other and its log."""
    for left in (world.root / "data").glob("state.db-*"):
        left.unlink()
    shutil.copyfile(saved, world.root / "data" / "state.db")


@pytest.mark.acceptance("F09")
async def test_work_that_has_come_home_since_the_backup_is_not_published_twice(world: World) -> None:
    world.model.default(Script([WORK, Wait("saved"), Say("Added a line.")]))
    world.environment["FORGEHAND_KEEP_MINUTES"] = "0"
    async with world.bot():
        world.say("/claude add a line")
        await world.model.reached("saved", timeout=60)
        await backup(world, world.root / "backup.db")
        world.model.release("saved")
        assert await world.outcome() == "pull_request"
    assert await taken_up_again(world) == "killed", "its environment is gone"


@pytest.mark.acceptance("F09")
async def test_a_pull_request_that_was_opened_since_the_backup_is_found_again(world: World) -> None:
    world.model.default(Script([WORK, Say("Added a line.")]))
    opening = world.github.faults.add(Fault("POST /repos/*/*/pulls", "hold"))
    async with world.bot():
        world.say("/claude add a line")
        async with asyncio.timeout(30):
            await opening.reached.wait()
        await backup(world, world.root / "backup.db")
        opening.release.set()
        assert await world.outcome() == "pull_request"
    assert await taken_up_again(world) in ("pull_request", "pushed"), "it is on the branch, and told as that"


async def taken_up_again(world: World) -> str:
    """The outcome of the turn that the backup knows as under way; its effects are what they were."""
    branches, [pull] = world.repo.branches(), world.pulls()
    await asyncio.to_thread(restore, world, world.root / "backup.db")
    edits = len(world.replies()[0].history)
    async with world.bot():
        await world.github.changed(lambda: len(world.replies()[0].history) > edits, 30)
        outcome = await world.outcome()
    assert world.repo.branches() == branches
    assert world.pulls() == [pull]
    assert len(world.replies()) == 1
    return outcome
