"""Made, found, kept, paused, measured, copied, ended."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from e2b import AsyncSandbox, SandboxQuery, SandboxState
from e2b.exceptions import SandboxException

from tests.e2b_stand_in import E2BStandIn


async def listed(query: SandboxQuery, limit: int | None = None, **more: str) -> list[str]:
    pages = AsyncSandbox.list(query=query, limit=limit, **more)  # type: ignore[arg-type]
    found: list[str] = []
    while pages.has_next:
        found += [one.sandbox_id for one in await pages.next_items()]
    return found


async def made(count: int, **more: object) -> list[AsyncSandbox]:
    return [
        await AsyncSandbox.create("base", timeout=600, metadata={"test": "one"}, **more)  # type: ignore[arg-type]
        for _ in range(count)
    ]


async def test_one_that_was_made_runs_and_is_what_was_asked_for(e2b: E2BStandIn) -> None:
    box = await AsyncSandbox.create("base", timeout=180, metadata={"test-key": "test value"})
    assert await box.is_running()
    info = await box.get_info()
    assert info.metadata == {"test-key": "test value"}
    assert info.state is SandboxState.RUNNING
    assert info.end_at.tzinfo is not None
    assert 175 < (info.end_at - info.started_at).total_seconds() <= 181


async def test_lists_by_metadata_state_and_template(e2b: E2BStandIn) -> None:
    first, second = await made(2)
    await AsyncSandbox.create("other", timeout=600, metadata={"test": "two"})
    await second.pause()
    mine = {"test": "one"}
    assert set(await listed(SandboxQuery(metadata=mine))) == {first.sandbox_id, second.sandbox_id}
    assert await listed(SandboxQuery(metadata=mine, state=[SandboxState.RUNNING])) == [first.sandbox_id]
    assert await listed(SandboxQuery(metadata=mine, state=[SandboxState.PAUSED])) == [second.sandbox_id]
    assert len(await listed(SandboxQuery(template="other"))) == 1
    assert await listed(SandboxQuery(template="none")) == []


async def test_pages_come_the_newest_first_or_in_the_order_asked_for(e2b: E2BStandIn) -> None:
    boxes = await made(3)
    pages = AsyncSandbox.list(query=SandboxQuery(metadata={"test": "one"}), limit=2)
    assert [one.sandbox_id for one in await pages.next_items()] == [boxes[2].sandbox_id, boxes[1].sandbox_id]
    assert pages.next_token
    assert [one.sandbox_id for one in await pages.next_items()] == [boxes[0].sandbox_id]
    with pytest.raises(Exception, match="No more items"):
        await pages.next_items()
    old_first = await listed(SandboxQuery(metadata={"test": "one"}), limit=1, order="asc")
    assert old_first == [one.sandbox_id for one in boxes]


async def test_a_list_begins_after_a_time(e2b: E2BStandIn) -> None:
    [first] = await made(1)
    await asyncio.sleep(0.01)
    between = datetime.now(UTC)
    [second] = await made(1)
    for when in (between, between.astimezone(tz=datetime.now().astimezone().tzinfo)):
        assert await listed(SandboxQuery(metadata={"test": "one"}, started_after=when)) == [second.sandbox_id]
    both = SandboxQuery(metadata={"test": "one"}, started_after=between - timedelta(minutes=1))
    assert set(await listed(both)) == {first.sandbox_id, second.sandbox_id}


async def test_killed_is_gone_and_what_is_not_there_is_no_error(e2b: E2BStandIn) -> None:
    [box] = await made(1)
    assert await AsyncSandbox.kill(box.sandbox_id)
    assert not await box.is_running()
    assert await listed(SandboxQuery(metadata={"test": "one"})) == []
    assert not await AsyncSandbox.kill(box.sandbox_id)
    assert not await AsyncSandbox.kill("nonexistentsandbox")


async def test_a_shortened_life_ends_and_a_lengthened_one_goes_on(e2b: E2BStandIn) -> None:
    short, long = await made(2)
    await short.set_timeout(5)
    await long.set_timeout(5)
    await e2b.clock.advance(1)
    await long.set_timeout(10)
    await e2b.clock.advance(5)
    assert not await short.is_running()
    assert await long.is_running()


async def test_connect_finds_prolongs_and_never_shortens(e2b: E2BStandIn) -> None:
    [box] = await made(1)
    before = await box.get_info()
    again = await AsyncSandbox.connect(box.sandbox_id, timeout=10)
    assert await again.is_running()
    assert (await box.get_info()).end_at == before.end_at
    await AsyncSandbox.connect(box.sandbox_id, timeout=1200)
    assert (await box.get_info()).end_at > before.end_at
    await again.files.make_dir("folder")
    assert await again.files.list("folder") == []


async def test_paused_it_does_not_run_and_connecting_resumes(e2b: E2BStandIn) -> None:
    [box] = await made(1)
    assert await box.pause()
    assert not await box.is_running()
    assert not await box.pause(), "it is paused already"
    again = await AsyncSandbox.connect(box.sandbox_id)
    assert await again.is_running()
    assert await box.is_running()


async def test_a_pause_of_the_disk_alone_boots_again(e2b: E2BStandIn) -> None:
    [box] = await made(1)
    await box.files.write("kept", "here")
    await box.commands.run("sleep 300 >/dev/null 2>&1 & echo $! > pid")
    await box.pause(keep_memory=False)
    again = await AsyncSandbox.connect(box.sandbox_id)
    assert await again.files.read("kept") == "here"
    assert (await again.commands.run("pgrep -x sleep || echo none")).stdout == "none\n"


async def test_of_one_that_pauses_without_waking_traffic_hears_nothing(e2b: E2BStandIn) -> None:
    box = await AsyncSandbox.create("base", timeout=5, lifecycle={"on_timeout": "pause", "auto_resume": False})
    await e2b.clock.advance(6)
    assert (await box.get_info()).state is SandboxState.PAUSED
    assert not await box.is_running()
    assert (await box.get_info()).state is SandboxState.PAUSED
    await AsyncSandbox.connect(box.sandbox_id)
    assert await box.is_running()


async def test_metrics_are_of_the_time_that_was_asked_for(e2b: E2BStandIn) -> None:
    [box] = await made(1)
    now = datetime.now(UTC)
    [found] = await box.get_metrics(start=now - timedelta(seconds=10), end=now + timedelta(seconds=10))
    assert min(found.cpu_count, found.mem_total, found.disk_total) > 0
    assert min(found.cpu_used_pct, found.mem_used, found.disk_used) >= 0
    assert abs((found.timestamp - now).total_seconds()) < 10
    assert await box.get_metrics(start=now - timedelta(hours=1), end=now - timedelta(minutes=30)) == []


async def test_network_rules_are_replaced_as_a_whole(e2b: E2BStandIn) -> None:
    closed = {"deny_out": ["0.0.0.0/0"], "allow_out": ["1.1.1.1"], "allow_public_traffic": False}
    [box] = await made(1, network=closed)
    assert box.traffic_access_token
    sandbox = e2b.sandbox(box.sandbox_id)
    assert sandbox.reaches == ["1.1.1.1"]
    await box.update_network({"deny_out": ["0.0.0.0/0"], "allow_out": ["packages.example"]})
    assert sandbox.reaches == ["packages.example", "8.8.8.8"], "a name server beside any name"
    assert sandbox.network["allowPublicTraffic"] is False


async def test_a_snapshot_begins_others_that_go_their_own_ways(e2b: E2BStandIn) -> None:
    [box] = await made(1)
    await box.files.write("shared", "once")
    snapshot = await box.create_snapshot(name="first")
    assert snapshot.snapshot_id and any("first" in name for name in snapshot.names)
    assert await box.is_running(), "what it was made of goes on"
    one, two = [await AsyncSandbox.create(snapshot.snapshot_id) for _ in range(2)]
    await one.files.write("shared", "changed")
    assert await two.files.read("shared") == "once"
    owner = (await two.commands.run("stat -c '%U %a' shared")).stdout
    assert owner == "user 644\n"


async def test_snapshots_are_listed_by_name_and_sandbox(e2b: E2BStandIn) -> None:
    first, second = await made(2)
    of_first = await first.create_snapshot(name="of-first")
    of_second = await second.create_snapshot()
    ids = [one.snapshot_id for one in await AsyncSandbox.list_snapshots().next_items()]
    assert {of_first.snapshot_id, of_second.snapshot_id} <= set(ids)
    by_name = await AsyncSandbox.list_snapshots(name="of-first").next_items()
    assert [one.snapshot_id for one in by_name] == [of_first.snapshot_id]
    by_sandbox = await AsyncSandbox.list_snapshots(sandbox_id=second.sandbox_id).next_items()
    assert [one.snapshot_id for one in by_sandbox] == [of_second.snapshot_id]
    assert await AsyncSandbox.list_snapshots(name="none").next_items() == []


async def test_a_snapshot_is_deleted_once_and_not_while_it_is_used(e2b: E2BStandIn) -> None:
    [box] = await made(1)
    snapshot = await box.create_snapshot()
    other = await AsyncSandbox.create(snapshot.snapshot_id)
    for _ in range(2):
        with pytest.raises(SandboxException, match="using it"):
            await AsyncSandbox.delete_snapshot(snapshot.snapshot_id)
        if await other.is_running():
            await other.pause()
    await other.kill()
    assert await AsyncSandbox.delete_snapshot(snapshot.snapshot_id)
    assert not await AsyncSandbox.delete_snapshot(snapshot.snapshot_id)
    again = await box.create_snapshot()
    assert again.snapshot_id
    await (await AsyncSandbox.create(again.snapshot_id)).kill()
