"""Visits of the pages end, or show less, the moment GitHub tells that somebody may see less: also open streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.world import World
from tests.world.visitor import Heard, Visitor, hear, visitor

SECONDS = 15.0


@dataclass
class Watcher:
    """Somebody who looks at a session while it runs."""

    who: Visitor
    path: str
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    heard: list[Heard] = field(default_factory=list)

    async def watch(self) -> None:
        """Until the service ends the stream."""
        async with self.who.client.stream("GET", f"{self.path}/events") as stream:
            async for one in hear(stream):
                self.heard.append(one)
                self.opened.set()


@asynccontextmanager
async def watching(world: World, login: str) -> AsyncIterator[tuple[Watcher, asyncio.Task[None]]]:
    world.model.default(
        Script([Call("Bash", {"command": "echo one", "description": "Echo"}, "Words."), Wait("stuck"), Say("Done.")])
    )
    async with world.bot() as service, visitor(world, service.url) as who:
        world.say("/claude talk")
        await world.model.reached("stuck", timeout=60)
        await who.sign_in(login)
        watcher = Watcher(who, f"/sessions/{world.states()[0]['session']}")
        task = asyncio.create_task(watcher.watch())
        try:
            async with asyncio.timeout(SECONDS):
                await watcher.opened.wait()
            assert (await who.get(watcher.path)).status_code == 200
            yield watcher, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            world.model.release("stuck")


async def ended(task: asyncio.Task[None]) -> None:
    """Well before the minute for which an answer of GitHub's holds."""
    async with asyncio.timeout(SECONDS):
        await task


def revoke(world: World) -> None:
    world.github.revoke_authorization(world.app, world.github.user("alice"))


def leave(world: World) -> None:
    world.github.leave_organization(world.repo.owner, world.github.user("alice"))


@pytest.mark.parametrize("depart", [revoke, leave])
async def test_whoever_leaves_is_signed_out_everywhere(world: World, depart: Callable[[World], None]) -> None:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    async with (
        watching(world, "alice") as (watcher, stream),
        visitor(world, str(watcher.who.client.base_url), "olga") as olga,
    ):
        depart(world)
        await ended(stream)
        assert watcher.heard[-1].name == "gone"
        for path in (watcher.path, "/", "/deliveries"):
            assert (await watcher.who.get(path)).status_code == 401, path
        assert (await watcher.who.get(f"{watcher.path}/log")).status_code == 401
        assert (await olga.get("/")).status_code == 200, "nobody else is"


async def test_whoever_loses_a_repository_stays_and_sees_no_more_of_it(world: World) -> None:
    async with watching(world, "alice") as (watcher, stream):
        session = watcher.path.rpartition("/")[2]
        world.github.remove_collaborator(world.repo, world.github.user("alice"))
        await ended(stream)
        assert watcher.heard[-1].name == "gone"
        assert (await watcher.who.get(watcher.path)).status_code == 404
        assert (await watcher.who.get(f"{watcher.path}/log")).status_code == 404
        home = await watcher.who.get("/")
        assert home.status_code == 200 and session not in home.text


def suspend(world: World) -> None:
    world.github.suspend(world.installation)


def uninstall(world: World) -> None:
    world.github.uninstall(world.installation)


def take_away(world: World) -> None:
    world.github.remove_repos(world.installation, world.repo)


@pytest.mark.parametrize("change", [suspend, uninstall, take_away])
async def test_an_app_that_is_taken_away_closes_the_pages_to_everybody(
    world: World, change: Callable[[World], None]
) -> None:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    async with watching(world, "olga") as (watcher, stream):
        settings = f"/installations/{world.installation.id}"
        assert (await watcher.who.get(settings)).status_code == 200
        change(world)
        await ended(stream)
        assert watcher.heard[-1].name == "gone"
        assert (await watcher.who.get(watcher.path)).status_code == 404
        assert watcher.path not in (await watcher.who.get("/")).text
        expected = 200 if change is take_away else 404
        assert (await watcher.who.get(settings)).status_code == expected
        assert (await watcher.who.send(f"{settings}/limits", version="0")).status_code == expected
