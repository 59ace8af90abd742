"""GitHub's own log of deliveries as a way in: without webhooks, and for what webhooks have not brought."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bot.models import DeliveryId
from bot.simulation.anthropic import Say, Script
from bot.simulation.github import Fault
from bot.simulation.github.threads import Issue
from bot.store import deliveries
from bot.store.base import Store
from bot.store.deliveries import DeliveryState, StoredDelivery
from tests.world import World, stored

NOWHERE = "https://forgehand.invalid/webhook"
LIST = "GET /app/hook/deliveries"
POLL = {"FORGEHAND_POLL_SECONDS": "0.1", "FORGEHAND_WEBHOOK_SECRET": ""}


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)


async def ledger(world: World) -> list[StoredDelivery]:
    """Oldest first."""
    store = await Store.open_reader(world.database)
    try:
        return (await stored.newest_deliveries(store, 1000))[::-1]
    finally:
        await store.close()


async def read_once(world: World) -> None:
    """Until the log was looked at for the first time."""

    async def marked() -> bool:
        store = await Store.open_reader(world.database)
        try:
            return await deliveries.log_mark(store, world.app.id) is not None
        finally:
            await store.close()

    await until(marked)


async def settled(world: World, count: int) -> list[StoredDelivery]:
    async def done() -> bool:
        rows = await ledger(world)
        return len(rows) >= count and all(row.state is not DeliveryState.RECEIVED for row in rows)

    await until(done)
    return await ledger(world)


def lists(world: World) -> int:
    return sum(str(call).startswith(LIST) and call.path == "/app/hook/deliveries" for call in world.github.calls)


async def miss(world: World, *say: str, on: Issue | None = None) -> None:
    """Comments whose webhooks nobody receives."""
    world.app.webhook_url = NOWHERE
    for words in say:
        world.say(words, on=on)
    await world.github.idle()


async def test_a_session_without_any_webhook(world: World) -> None:
    async with world.bot(**POLL):
        world.app.webhook_url = NOWHERE
        await read_once(world)
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
    [asked] = [row for row in await ledger(world) if row.sender == "alice"]
    assert asked.state is DeliveryState.ACTED
    assert all(one.status_code == 502 for one in world.app.deliveries if one.guid == asked.guid)


async def test_who_has_just_started_it_is_about_to_try_it(world: World) -> None:
    async with world.bot(**POLL | {"FORGEHAND_POLL_SECONDS": "1"}):
        await read_once(world)
        before = lists(world)

        async def read_again() -> bool:
            return lists(world) > before

        await until(read_again, 3)


async def test_the_first_start_ever_acts_upon_nothing_that_was_said_before(world: World) -> None:
    await miss(world, "/claude help", "/claude help")
    async with world.bot(**POLL):
        world.app.webhook_url = NOWHERE
        await read_once(world)
        await miss(world, "/claude cost")
        await world.github.changed(lambda: len(world.replies()) == 1, 10)
    assert "cost nothing" in world.replies()[0].body
    assert len([row for row in await ledger(world) if row.sender == "alice"]) == 1


async def test_what_is_said_while_the_first_start_ever_is_under_way_is_acted_upon(world: World) -> None:
    """The log is looked at for the first time only some seconds after the process answers."""
    await miss(world, "/claude help")
    async with world.bot(lambda: time.time() - 5, **POLL):
        await world.github.changed(lambda: len(world.replies()) == 1, 10)


@pytest.mark.acceptance("A14")
async def test_what_was_missed_is_done_once_and_in_order_on_each_thread(world: World) -> None:
    other = world.github.open_issue(world.repo, title="Another", body="", by="alice")
    async with world.bot():
        await read_once(world)
    await miss(world, "/claude help", *["no command"] * 16, "/claude cost")
    await miss(world, "/claude why", *["nothing"] * 18, "/claude status", on=other)
    missed = [one.guid for one in world.app.deliveries if one.event == "issue_comment"]
    assert len(missed) == 38
    for guid in (missed[0], missed[-1]):
        world.github.redeliver(guid)
    await world.github.idle()
    async with world.bot():
        await world.github.changed(lambda: len(world.replies()) == 2 and len(world.replies(other)) == 2, 20)
        rows = [row for row in await settled(world, 38) if row.guid in missed]
    assert [row.guid for row in rows if row.number == world.issue.number] == missed[:18]
    assert [row.guid for row in rows if row.number == other.number] == missed[18:]
    assert all(row.attempts == 1 for row in rows)
    assert "| comment | what happens |" in world.replies()[0].body and "cost nothing" in world.replies()[1].body


async def test_a_delivery_that_came_by_the_log_may_still_come_by_webhook(world: World) -> None:
    async with world.bot():
        await read_once(world)
    await miss(world, "/claude help")
    async with world.bot():
        await world.github.changed(lambda: len(world.replies()) == 1, 10)
        again = world.github.redeliver(world.app.deliveries[0].guid)
        await world.github.idle()
        assert again.status_code == 202 and again.response_body == '{"status":"duplicate"}'
    assert len(world.replies()) == 1


@pytest.mark.acceptance("A15")
async def test_a_log_that_fails_and_goes_in_circles_is_left_and_read_again(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = f'<{world.github.api_url}/app/hook/deliveries?cursor=v1_7>; rel="next"'
    async with world.bot(**{**POLL, "FORGEHAND_POLL_SECONDS": "0.02"}):
        await read_once(world)
        world.app.webhook_url = NOWHERE
        broken = world.github.faults.add(Fault(LIST, "fail", status=500, times=4))
        loop = world.github.faults.add(Fault(LIST, "fail", status=200, headers={"Link": circle}, body="[]", times=102))
        gone = world.github.faults.add(Fault(f"{LIST}/*", "fail", status=500, times=3))
        world.say("/claude help")
        await world.github.changed(lambda: len(world.replies()) == 1, 20)
        assert (broken.hits, loop.hits, gone.hits) == (4, 102, 3)
    assert len(world.replies()) == 1
    assert "too long to read at once" not in capsys.readouterr().err, "a circle has no hundred pages"


@pytest.mark.acceptance("A15")
async def test_what_one_of_several_attempts_has_delivered_is_not_done_again(world: World) -> None:
    """Also where the store has forgotten it: a backup was restored."""
    async with world.bot():
        await read_once(world)
        world.say("/claude help")
        await world.github.changed(lambda: len(world.replies()) == 1, 10)
        await world.github.idle()
    world.app.webhook_url = NOWHERE
    world.github.redeliver(world.app.deliveries[0].guid)
    await world.github.idle()
    store = await Store.open(world.database)
    await store.write(lambda db: db.execute("DELETE FROM deliveries").rowcount)
    await store.close()
    await miss(world, "/claude cost")
    async with world.bot():
        await world.github.changed(lambda: len(world.replies()) == 2, 10)
        asked = [row.guid for row in await settled(world, 1) if row.sender == "alice"]
    assert "cost nothing" in world.replies()[1].body
    assert len(asked) == 1 and asked[0] not in (one.guid for one in world.app.deliveries[:1])


@pytest.mark.acceptance("A13")
async def test_a_payload_that_is_gone_does_not_hold_up_the_later_ones(world: World) -> None:
    async with world.bot():
        await read_once(world)
    await miss(world, "/claude help", "/claude cost")
    lost = world.app.deliveries[0]
    world.github.faults.add(Fault(f"{LIST}/{lost.id}", "fail", status=404, times=None))
    async with world.bot():
        await world.github.changed(lambda: len(world.replies()) == 1, 10)
        rows = {row.guid: row for row in await settled(world, 2)}
    row = rows[DeliveryId(lost.guid)]
    assert row.state is DeliveryState.FAILED and "missed" in (row.reason or "")


async def test_a_rate_limit_is_waited_for(tmp_path: Path) -> None:
    async with World.running(tmp_path) as world:
        world.model.default(Script([Say("Done.")]))
        async with world.bot(**POLL):
            await read_once(world)
            limited = world.github.faults.add(Fault(LIST, "fail", status=429, headers={"Retry-After": "2"}, times=1))
            world.app.webhook_url = NOWHERE
            await limited.reached.wait()
            before = lists(world)
            world.say("/claude help")
            await world.github.changed(lambda: len(world.replies()) == 1, 10)
            assert lists(world) - before < 10
