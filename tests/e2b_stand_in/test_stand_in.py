"""The API of the stand-in, through E2B's own SDK: sandboxes made, found, prolonged, paused, resumed and ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from e2b import AsyncSandbox, SandboxQuery, SandboxState
from e2b.exceptions import (
    AuthenticationException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
)

from tests.e2b_stand_in import E2BStandIn
from tests.e2b_stand_in.conftest import until
from tests.world.plain_http import plain_client

HOUR = 3600


async def ids(query: SandboxQuery | None = None, limit: int | None = None) -> list[str]:
    pages = AsyncSandbox.list(query=query, limit=limit)
    found = []
    while pages.has_next:
        found += [each.sandbox_id for each in await pages.next_items()]
    return found


# --- creating and finding


async def test_create_runs_in_a_home_of_its_own(e2b: E2BStandIn) -> None:
    box = await AsyncSandbox.create("claude", timeout=60, metadata={"job": "1"}, envs={"NAME": "value"})
    said = await box.commands.run('echo "$NAME $HOME $(whoami) $(id -u)"; pwd; /opt/tool; git --version')
    assert said.stdout.splitlines()[:3] == ["value /home/user user 1000", "/home/user", "a tool of the host"]
    kept = e2b.sandbox(box.sandbox_id)
    assert (kept.state, kept.template, kept.metadata, kept.paused) == ("running", "claude", {"job": "1"}, False)
    assert kept.end_at - kept.created_at == pytest.approx(60, abs=1)
    info = await box.get_info()
    assert (info.metadata, info.state, info.template_id) == ({"job": "1"}, SandboxState.RUNNING, "claude")


async def test_two_sandboxes_see_nothing_of_each_other(e2b: E2BStandIn) -> None:
    one, two = await AsyncSandbox.create("a"), await AsyncSandbox.create("b")
    await one.files.write("/tmp/secret", "x")
    assert not await two.files.exists("/tmp/secret")
    listed = (await two.commands.run("ps -e -o comm=")).stdout.split()
    assert {"bwrap", "ps", "python3"} <= set(listed) <= {"bash", "bwrap", "ps", "python3", "sshd"}


async def test_the_same_key_is_the_same_sandbox(e2b: E2BStandIn) -> None:
    made = await asyncio.gather(*(AsyncSandbox.create("claude", idempotency_key="job-1") for _ in range(4)))
    assert len({each.sandbox_id for each in made}) == len(e2b.sandboxes) == 1
    await made[0].kill()
    again = await AsyncSandbox.create("claude", idempotency_key="job-1")
    assert again.sandbox_id != made[0].sandbox_id


async def test_unknown_templates_and_keys_are_refused(e2b: E2BStandIn) -> None:
    e2b.registry.templates = {"claude"}
    with pytest.raises(SandboxException, match="404: template 'none' not found"):
        await AsyncSandbox.create("none")
    with pytest.raises(AuthenticationException, match="401"):
        await AsyncSandbox.create("claude", api_key="e2b_wrong")
    assert e2b.sandboxes == []


async def test_unknown_sandboxes_are_404(e2b: E2BStandIn) -> None:
    with pytest.raises(SandboxNotFoundException):
        await AsyncSandbox.connect("inothing")
    with pytest.raises(SandboxNotFoundException):
        await AsyncSandbox.get_info("inothing")
    with pytest.raises(SandboxNotFoundException):
        await AsyncSandbox.set_timeout("inothing", 5)
    with pytest.raises(SandboxNotFoundException):
        await AsyncSandbox.pause("inothing")
    assert await AsyncSandbox.kill("inothing") is False


async def test_list_by_metadata_state_and_page(e2b: E2BStandIn) -> None:
    for number in range(5):
        await AsyncSandbox.create("claude", metadata={"app": "a b&c", "number": str(number)})
    newest_first = [each.id for each in e2b.sandboxes][::-1]
    assert await ids() == newest_first
    assert await ids(limit=2) == newest_first
    assert await ids(SandboxQuery(metadata={"app": "a b&c", "number": "3"})) == [newest_first[1]]
    assert await ids(SandboxQuery(metadata={"app": "other"})) == []
    await AsyncSandbox.pause(newest_first[0])
    assert await ids(SandboxQuery(state=[SandboxState.PAUSED])) == [newest_first[0]]
    assert await ids(SandboxQuery(state=[SandboxState.RUNNING])) == newest_first[1:]
    await AsyncSandbox.kill(newest_first[1])
    assert newest_first[1] not in await ids()


# --- limits


async def test_the_plan_limits_how_many_and_how_fast(e2b: E2BStandIn) -> None:
    e2b.limits.concurrent = 1
    box = await AsyncSandbox.create("claude")
    with pytest.raises(RateLimitException, match="maximum number of concurrent"):
        await AsyncSandbox.create("claude", retries=0)
    await box.pause()
    other = await AsyncSandbox.create("claude")
    with pytest.raises(RateLimitException):
        await box.connect(retries=0)
    await other.kill()
    e2b.limits.creations_per_second = 1
    with pytest.raises(RateLimitException):
        await AsyncSandbox.create("claude", retries=0)
    await e2b.clock.advance(1.1)
    await AsyncSandbox.create("claude", retries=0)


async def test_the_sdk_rides_out_a_short_429(e2b: E2BStandIn) -> None:
    e2b.limits.concurrent = 1
    first = await AsyncSandbox.create("claude", idempotency_key="one")
    second = asyncio.ensure_future(AsyncSandbox.create("claude", idempotency_key="two"))

    async def refused() -> bool:
        return any(call.status == 429 for call in e2b.calls)

    await until(refused)
    await first.kill()
    assert (await second).sandbox_id == e2b.live[0].id


async def test_a_lifetime_over_the_maximum_is_refused(e2b: E2BStandIn) -> None:
    e2b.limits.hours = 1
    with pytest.raises(SandboxException, match="400: Timeout cannot be greater than 1 hours"):
        await AsyncSandbox.create("claude", timeout=HOUR + 1)
    box = await AsyncSandbox.create("claude", timeout=60)
    with pytest.raises(SandboxException, match="400"):
        await box.connect(timeout=HOUR + 1)
    await box.set_timeout(2 * HOUR)
    kept = e2b.sandbox(box.sandbox_id)
    assert kept.end_at == kept.started_at + HOUR


# --- time


async def test_time_is_up_kills(e2b: E2BStandIn) -> None:
    box = await AsyncSandbox.create("claude", timeout=60)
    await e2b.clock.advance(59)
    assert await box.is_running()
    await box.set_timeout(30)
    await e2b.clock.advance(29)
    assert await box.is_running()
    await e2b.clock.advance(1.5)
    assert not await box.is_running()
    kept = e2b.sandbox(box.sandbox_id)
    assert kept.state == "killed"
    assert kept.ended_at == pytest.approx(kept.end_at, abs=2)
    with pytest.raises(SandboxNotRunningException):
        await box.commands.run("true")
    with pytest.raises(SandboxNotFoundException):
        await box.get_info()


async def test_time_runs_by_itself(e2b: E2BStandIn) -> None:
    box = await AsyncSandbox.create("claude", timeout=1)
    await e2b.clock.advance(0.8)

    async def gone() -> bool:
        return not await box.is_running()

    await until(gone, seconds=3)


async def test_connect_only_prolongs_and_set_timeout_sets(e2b: E2BStandIn) -> None:
    box = await AsyncSandbox.create("claude", timeout=100)
    kept = e2b.sandbox(box.sandbox_id)

    def left() -> float:
        return kept.end_at - e2b.clock.now()

    await AsyncSandbox.connect(box.sandbox_id, timeout=10)
    assert left() == pytest.approx(100, abs=2)
    await AsyncSandbox.connect(box.sandbox_id, timeout=200)
    assert left() == pytest.approx(200, abs=2)
    await box.set_timeout(10)
    assert left() == pytest.approx(10, abs=2)


async def test_time_is_up_pauses_and_traffic_wakes(e2b: E2BStandIn) -> None:
    lifecycle: Any = {"on_timeout": "pause", "auto_resume": True}
    box = await AsyncSandbox.create("claude", timeout=60, lifecycle=lifecycle)
    await e2b.clock.advance(61)
    assert e2b.sandbox(box.sandbox_id).paused
    assert (await box.commands.run("echo awake")).stdout == "awake\n"
    kept = e2b.sandbox(box.sandbox_id)
    assert kept.state == "running"
    assert kept.end_at - e2b.clock.now() == pytest.approx(300, abs=2)


# --- pause, resume, kill


async def test_pause_freezes_and_resume_goes_on(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    ticks = e2b.sandbox(box.sandbox_id).home / "ticks"
    await box.commands.run("(while :; do echo . >> ticks; sleep 0.005; done) >/dev/null 2>&1 </dev/null &")

    async def ticking() -> bool:
        return ticks.exists() and ticks.stat().st_size > size

    size = 0
    await until(ticking)
    assert await box.pause() is True
    assert await box.pause() is False
    size = ticks.stat().st_size
    assert not await box.is_running()
    with pytest.raises(SandboxNotRunningException):
        await box.commands.run("true")
    with pytest.raises(SandboxNotFoundException):
        await box.set_timeout(60)
    assert (await box.get_info()).state == SandboxState.PAUSED
    assert ticks.stat().st_size == size
    again = await AsyncSandbox.connect(box.sandbox_id, timeout=60)
    assert again.sandbox_id == box.sandbox_id
    await until(ticking)
    assert await box.is_running()


async def test_a_time_that_is_up_meanwhile_is_up_when_it_goes_on(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    handle = await box.commands.run("exec sleep 61", background=True, timeout=30)
    await handle.disconnect()
    await box.pause()
    async with asyncio.timeout(10):
        await e2b.clock.advance(31)
    await box.connect(timeout=60)

    async def ended() -> bool:
        return await box.commands.list() == []

    await until(ended)


async def test_a_pause_of_the_disk_only_loses_the_processes(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.files.write("kept", "still here")
    handle = await box.commands.run("sleep 60", background=True, timeout=0)
    await box.pause(mode="filesystem")
    with pytest.raises(SandboxNotRunningException):
        await handle.wait()
    await box.connect()
    assert await box.files.read("kept") == "still here"
    assert await box.commands.list() == []


async def test_a_resumed_run_has_the_whole_maximum_again(e2b: E2BStandIn) -> None:
    e2b.limits.hours = 1
    box = await AsyncSandbox.create("claude", timeout=HOUR)
    await e2b.clock.advance(HOUR - 10)
    await box.pause()
    await e2b.clock.advance(HOUR)
    await box.connect(timeout=HOUR)
    kept = e2b.sandbox(box.sandbox_id)
    assert kept.end_at - e2b.clock.now() == pytest.approx(HOUR, abs=2)


async def test_kill_ends_every_process(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.commands.run("setsid sleep 60 >/dev/null 2>&1 </dev/null & setsid sleep 61 >/dev/null 2>&1 </dev/null &")
    machine = e2b.sandbox(box.sandbox_id).machine
    assert len(machine.pids()) >= 4
    assert await box.kill() is True
    assert await box.kill() is False
    assert machine.pids() == machine.pids()[:1]
    assert not e2b.sandbox(box.sandbox_id).folder.exists()
    assert await ids() == []


async def test_a_snapshot_is_a_template(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.files.write("deep/file", "warm")
    snapshot = await box.create_snapshot()
    e2b.registry.templates = {"claude"}
    other = await AsyncSandbox.create(snapshot.snapshot_id)
    assert await other.files.read("deep/file") == "warm"
    await other.kill()
    assert await AsyncSandbox.delete_snapshot(snapshot.snapshot_id) is True
    assert await AsyncSandbox.delete_snapshot(snapshot.snapshot_id) is False


# --- network, metrics, ports


async def test_network_rules_are_checked_and_kept(e2b: E2BStandIn) -> None:
    async def create(**network: Any) -> AsyncSandbox:
        options: Any = network
        return await AsyncSandbox.create("claude", network=options)

    wrong: tuple[dict[str, Any], ...] = (
        {"deny_out": ["example.com"]},
        {"allow_out": ["api.example.com"]},
        {"allow_out": ["api.example.com"], "deny_out": ["10.0.0.0/8"]},
        {"allow_out": ["0.0.0.0"]},
        {"rules": {f"h{n}.example.com": [] for n in range(11)}},
        {"rules": {"a.example.com": [{"transform": {"headers": {"bad name": "x"}}}]}},
    )
    for network in wrong:
        with pytest.raises(SandboxException, match="400"):
            await create(**network)
    assert e2b.sandboxes == []
    rules = {"api.example.com": [{"transform": {"headers": {"x-api-key": "k"}}}]}
    box = await create(allow_out=["api.example.com", "1.1.1.1"], deny_out=["0.0.0.0/0"], rules=rules)
    kept = e2b.sandbox(box.sandbox_id)
    assert kept.network["allowOut"] == ["api.example.com", "1.1.1.1"]
    assert kept.network["denyOut"] == ["0.0.0.0/0"]
    assert kept.network["rules"] == rules
    await box.update_network({"deny_out": ["0.0.0.0/0"]})
    assert kept.network == {"denyOut": ["0.0.0.0/0"]}


async def test_metrics_tell_of_work(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.commands.run("head -c 3000000 /dev/urandom > blob; (while :; do :; done) >/dev/null 2>&1 </dev/null &")

    async def busy() -> bool:
        samples = await box.get_metrics()
        return samples[-1].cpu_used_pct > 10

    await until(busy)
    last = (await box.get_metrics())[-1]
    assert last.mem_used > 1_000_000
    assert last.disk_used >= 3_000_000
    assert last.cpu_count == 2


async def test_a_port_is_reached_by_host_name_and_by_header(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.files.write("page", "from inside")
    serve = (
        "import http.server as h; s=h.HTTPServer(('127.0.0.1',0),h.SimpleHTTPRequestHandler);"
        "print(s.server_port, flush=True); s.serve_forever()"
    )
    said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    await box.commands.run(f'python3 -c "{serve}"', background=True, timeout=0, on_stdout=said.set_result)
    port = int(await said)
    host = box.get_host(port)
    assert host == f"{port}-{box.sandbox_id}.localhost:{e2b.sandbox_url.rpartition(':')[2]}"
    async with plain_client(base_url=e2b.sandbox_url, trust_env=False) as client:
        assert (await client.get("/page", headers={"host": host})).text == "from inside"
        headers = {"e2b-sandbox-id": box.sandbox_id, "e2b-sandbox-port": str(port)}
        assert (await client.get("/page", headers=headers)).text == "from inside"
        headers["e2b-sandbox-port"] = "1"
        closed = await client.get("/", headers=headers)
    assert (closed.status_code, closed.json()["message"]) == (502, "The sandbox is running but port is not open")
