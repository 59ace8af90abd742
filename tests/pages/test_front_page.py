"""The front page while it is open: what begins and ends stands there without a reload, and for nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from bot.simulation.anthropic import Say, Script, Wait
from tests.world import World
from tests.world.visitor import Heard, hear, visitor


async def test_what_begins_and_ends_is_told_to_who_may_see_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.web.pages.front.LOOK_SECONDS", 0.1)
    world.github.user("mallory")
    world.model.default(Script([Wait("stuck"), Say("Done.")]))
    async with (
        world.bot() as service,
        visitor(world, service.url, "alice") as alice,
        visitor(world, service.url, "mallory") as mallory,
        alice.client.stream("GET", "/events") as open_to_her,
        mallory.client.stream("GET", "/events") as open_to_him,
    ):
        hers, his = hear(open_to_her), hear(open_to_him)
        assert "Nothing is running." in (await anext(hers)).data and "No sessions yet" in (await anext(his)).data
        world.say("/claude look around")
        await world.model.reached("stuck", timeout=60)
        session = str(world.states()[0]["session"])
        begun = (await anext(hers)).data
        assert session in begun and "Nothing is running." not in begun
        world.model.release("stuck")
        ended = await _until(hers, "Nothing was changed")
        assert session in ended.data and "Nothing is running." in ended.data
        page = await alice.get("/")
        assert ended.data.strip() in page.text, "a reload shows the same"
        await mallory.send("/sign-out")
        last = await _until(his, "")
        assert (last.name, last.data) == ("gone", "You are no longer signed in."), "and of hers he heard nothing"


async def test_an_open_page_is_told_to_come_back_when_the_service_ends(world: World) -> None:
    async with AsyncExitStack() as bot:
        service = await bot.enter_async_context(world.bot())
        async with visitor(world, service.url, "alice") as alice, alice.client.stream("GET", "/events") as page:
            heard = hear(page)
            await anext(heard)
            await bot.aclose()
            assert [one async for one in heard] == [], "ended, not cut off"


async def test_a_stream_is_for_who_is_signed_in_and_of_a_list_that_there_is(world: World) -> None:
    async with world.bot() as service, visitor(world, service.url) as anybody:
        assert (await anybody.get("/events")).status_code == 401
        await anybody.sign_in("alice")
        wrong = await anybody.get("/events?state=nonsense")
        assert wrong.status_code == 422 and "is not a page of the list" in wrong.text


async def test_nobody_opens_more_streams_by_opening_them_at_once(world: World) -> None:
    async with world.bot() as service, visitor(world, service.url, "alice") as alice, AsyncExitStack() as pages:

        async def opened() -> bool:
            page = await pages.enter_async_context(alice.client.stream("GET", "/events"))
            return page.status_code == 200 and await anext(hear(page), None) is not None

        async with asyncio.timeout(30):
            found = await asyncio.gather(*(opened() for _ in range(30)))
        assert sum(found) == 10


async def _until(heard: AsyncIterator[Heard], words: str) -> Heard:
    """The next one that holds these words."""
    async with asyncio.timeout(30):
        async for one in heard:
            if words in one.data:
                return one
    raise AssertionError(f"it ended without {words!r}")
