"""The App is installed, taken away, suspended and given back: rows stay true, runs end, nothing is held in vain."""

from __future__ import annotations

import pytest

from bot.models import InstallationId
from bot.simulation.anthropic import Say, Script
from bot.store import audit, repos, sessions
from bot.store.base import Store
from bot.store.repos import InstallationState
from bot.store.rows import many
from tests.unit.parsed import parse
from tests.webhooks.test_delivery_log import until
from tests.world import World, work_under_way
from tests.world.work_under_way import WRITE


async def reader(world: World) -> Store:
    return await Store.open_reader(world.database)


async def states(world: World) -> dict[InstallationId, InstallationState]:
    store = await reader(world)
    try:
        return {row.id: row.state for row in await repos.installations(store)}
    finally:
        await store.close()


async def is_state(world: World, state: InstallationState) -> None:
    async def reached() -> bool:
        return (await states(world)).get(InstallationId(world.installation.id)) is state

    await until(reached)


async def test_installations_from_before_our_time_are_found_at_the_start(world: World) -> None:
    async with world.bot():
        await is_state(world, InstallationState.ACTIVE)


async def test_suspended_and_back_is_followed_and_ends_what_runs(world: World) -> None:
    async with world.bot():
        await work_under_way.begun(world)
        world.github.suspend(world.installation)
        await is_state(world, InstallationState.SUSPENDED)

        async def ended() -> bool:
            store = await reader(world)
            try:
                return not await sessions.running(store)
            finally:
                await store.close()

        await until(ended, 30)
        world.github.unsuspend(world.installation)
        assert await world.outcome() == "stopped"
    assert "suspended on this account" in world.replies()[0].body
    assert list((world.root / "data" / "kept").iterdir()), "what was done until then is kept here"


async def test_a_repository_that_is_taken_away_is_forgotten_and_may_come_back(world: World) -> None:
    world.declare_checks()
    world.model.default(Script([WRITE, Say("Done.")]))
    data = world.root / "data"
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        assert list((data / "checks").iterdir())
        assert list((data / "transcripts").iterdir()) and list((data / "repositories").glob("*.git"))
        world.github.remove_repos(world.installation, world.repo)
        await world.github.idle()

        async def removed() -> bool:
            store = await reader(world)
            try:
                return bool(await store.read(lambda db: many(db, "SELECT id FROM repos WHERE removed_at > 0")))
            finally:
                await store.close()

        await until(removed)
    async with world.bot():

        async def forgotten() -> bool:
            store = await reader(world)
            try:  # noted last, when all is gone
                return "repository forgotten" in [one.action for one in await audit.listing(store)]
            finally:
                await store.close()

        await until(forgotten)
    assert not list((data / "checks").iterdir())
    assert not list((data / "transcripts").iterdir()) and not list((data / "repositories").glob("*.git"))
    store = await reader(world)
    assert not await store.read(lambda db: many(db, "SELECT seq FROM events"))
    [listed] = await sessions.listing(store)
    assert listed.cost_usd > 0, "what it cost is still known"
    await store.close()
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.github.add_repos(world.installation, world.repo)
        await world.github.idle()
        world.say("/claude ask and now?")
        assert await world.outcome(2) == "answered"


async def test_uninstalled_ends_what_runs_and_keeps_its_work_here(world: World) -> None:
    async with world.bot():
        await work_under_way.begun(world)
        world.github.uninstall(world.installation)
        await is_state(world, InstallationState.DELETED)
        kept = world.root / "data" / "kept"

        async def saved() -> bool:
            return any(kept.glob("*.bundle"))

        await until(saved, 30)
    [bundle] = kept.iterdir()
    assert bundle.read_bytes().startswith(b"# v2 git bundle")


@pytest.mark.parametrize("words", ["/claude init the database", "/claude initialise"])
def test_init_with_more_words_is_work(words: str) -> None:
    command = parse(words)
    assert command is not None and command.word == "run"
