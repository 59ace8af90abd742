"""What goes wrong in E2B's cloud, over the real SDK: lost answers, broken and silent lines, pauses, ends, limits."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from sandbox.e2b import faults
from sandbox.e2b.provider import INSTANCE, KEY, E2BProvider
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError
from sandbox.primitives import EnvironmentPrimitives, EnvironmentSpec, Liveness
from tests.e2b_stand_in import Fault
from tests.world.e2b import E2BWorld
from tests.world.environments import shell, until, until_size

SPEC = EnvironmentSpec(labels={"app": "forgehand", "session": "abcd1234"}, public_repository=True)
CREATE = "POST /v2/sandboxes"
START = "POST /process.Process/Start"


# --- creating


@pytest.mark.acceptance("C02")
@pytest.mark.acceptance("C09")
@pytest.mark.parametrize("kind", ["fail_after", "lose"])
@pytest.mark.quick("sandbox.e2b", "sandbox.e2b.inside")
async def test_a_create_whose_answer_was_lost_leaves_one_sandbox(
    world: E2BWorld, provider: E2BProvider, kind: str
) -> None:
    world.e2b.faults.add(Fault(CREATE, kind))  # type: ignore[arg-type]
    env = await provider.create("one", SPEC)
    assert (await env.exec(["pwd"])).exit_code == 0
    assert len(world.e2b.sandboxes) == 1


@pytest.mark.acceptance("C09")
async def test_a_create_that_failed_is_told_as_passing_and_can_be_repeated(
    world: E2BWorld, provider: E2BProvider
) -> None:
    world.e2b.faults.add(Fault(CREATE, "fail"))
    with pytest.raises(EnvironmentBusy):
        await provider.create("one", SPEC)
    assert not world.e2b.sandboxes
    await provider.create("one", SPEC)
    assert len(world.e2b.sandboxes) == 1


@pytest.mark.acceptance("C09")
async def test_of_two_sandboxes_with_one_key_the_furnished_one_stays(world: E2BWorld, provider: E2BProvider) -> None:
    """A create that E2B carried out only after we had stopped looking."""
    cloud = provider._cloud
    late = await cloud.create("late", {**SPEC.labels, KEY: "one", INSTANCE: "test"}, world.settings.network(), "base")
    other = world.provider(instance="other")
    env = await other.create("one", SPEC)
    world.e2b.sandbox(world.e2b.live[-1].id).metadata[INSTANCE] = "test"
    await env.write(f"{env.layout.work}/mine", b"1")
    found = await provider.attach("one")
    assert await found.read(f"{env.layout.work}/mine") == b"1"
    assert world.e2b.sandbox(late.sandbox_id).state == "killed"
    assert len(world.e2b.live) == 1
    await other.close()


async def test_what_a_sandbox_is_given(world: E2BWorld, provider: E2BProvider) -> None:
    await world.provider(egress=frozenset({"packages.example"})).create("one", SPEC)
    [sandbox] = world.e2b.sandboxes
    assert sandbox.metadata == {**SPEC.labels, KEY: "one", INSTANCE: "test"}
    assert sandbox.network["allowOut"] == ["127.0.0.1", "packages.example"]
    assert sandbox.network["denyOut"] == ["0.0.0.0/0"]
    assert sandbox.network["allowPublicTraffic"] is False
    assert sandbox.lifecycle.pause
    assert not sandbox.lifecycle.auto_resume
    assert not sandbox.env


async def test_what_one_sandbox_is_given_beside_the_others(world: E2BWorld, provider: E2BProvider) -> None:
    wish = replace(SPEC, egress=("*.mirror.example", "files.example"), template="special")
    await provider.create("one", wish)
    [sandbox] = world.e2b.sandboxes
    assert sandbox.template == "special"
    assert sandbox.network["allowOut"] == ["*.mirror.example", "127.0.0.1", "files.example"]
    ask = "import os, socket, urllib.parse as u; p = u.urlsplit(os.environ['HTTPS_PROXY'])\n"
    ask += "s = socket.create_connection((p.hostname, p.port)); s.sendall(b'CONNECT HOST:443 HTTP/1.1\\r\\n\\r\\n')\n"
    ask += "print(s.recv(99)[:12])"
    found = await provider.attach("one")
    for host, denied in (("a.mirror.example", False), ("mirror.example", True), ("other.example", True)):
        said = await found.exec(["python3", "-c", ask.replace("HOST", host)], network=True)
        assert (b"403" in said.stdout) is denied, (host, said)


async def test_the_repositorys_hosts_are_open_to_its_sandbox_alone(world: E2BWorld, provider: E2BProvider) -> None:
    """In the firewall and in the proxy with words, also for a process that finds the sandbox later."""
    spec = replace(SPEC, egress=("Packages.example",), template="ours")
    await provider.create("one", spec)
    await provider.create("two", SPEC)
    first, second = world.e2b.sandboxes
    assert first.template == "ours"
    assert first.network["allowOut"] == ["127.0.0.1", "packages.example"]
    assert second.network["allowOut"] == ["127.0.0.1"]
    found = await world.provider().attach("one")
    await found.launch("run", ["true"])
    sent = b"".join(call.body for call in world.e2b.calls if call.path == "/files" and call.sandbox == first.id)
    assert b"127.0.0.1,packages.example" in sent


async def test_another_instances_sandboxes_are_not_seen(world: E2BWorld, provider: E2BProvider) -> None:
    await world.provider(instance="other").create("one", SPEC)
    assert await provider.find({}) == []
    with pytest.raises(EnvironmentGone):
        await provider.attach("one")


@pytest.mark.acceptance("F14")
async def test_a_wrong_key_and_a_missing_template_are_said_plainly(world: E2BWorld) -> None:
    with pytest.raises(SandboxError, match="E2B_API_KEY") as error:
        await world.provider(api_key="e2b_" + "0" * 40).create("one", SPEC)
    assert "0" * 40 not in str(error.value)
    world.e2b.registry.templates = {"base"}
    with pytest.raises(SandboxError, match="template build"):
        await world.provider().create("one", SPEC)


@pytest.mark.acceptance("F17")
async def test_an_agent_below_the_floor_is_refused(world: E2BWorld) -> None:
    with pytest.raises(SandboxError, match=r"unknown version, and 2\.1\.300 is needed"):
        await world.provider(floor=(2, 1, 300)).create("one", SPEC)


@pytest.mark.acceptance("C09")
async def test_more_than_the_plan_allows_wait_in_line(world: E2BWorld) -> None:
    provider = world.provider(sandboxes=2)
    most = 0
    done: list[int] = []

    async def one(number: int) -> None:
        nonlocal most
        env = await provider.create(f"k-{number}", SPEC)
        most = max(most, len(world.e2b.live))
        await env.terminate()
        done.append(number)

    async with asyncio.timeout(60):
        await asyncio.gather(*(one(number) for number in range(7)))
    assert most == 2
    assert sorted(done) == list(range(7))


async def _looked_for(world: E2BWorld, key: str) -> bool:
    """And not found, so that it gets in line."""
    return any(key in one.query and one.status is not None for one in world.e2b.calls)


async def test_who_goes_ahead_is_served_before_those_that_came_earlier(world: E2BWorld) -> None:
    provider, done = world.provider(sandboxes=1), list[str]()
    first = await provider.create("first", SPEC)

    async def one(key: str, spec: EnvironmentSpec) -> None:
        env = await provider.create(key, spec)
        done.append(key)
        await env.terminate()

    async with asyncio.timeout(60), asyncio.TaskGroup() as waiting:
        for key in ("early", "late", "checks"):
            waiting.create_task(one(key, replace(SPEC, ahead=key == "checks")))
            await until(partial(_looked_for, world, key), 20)
        await first.terminate()
    assert done == ["checks", "early", "late"]


# --- lines that break


@pytest.mark.acceptance("C10")
@pytest.mark.parametrize("kind", ["cut", "rst", "garbage", "no_end", "fail", "reset", "lose", "stall"])
async def test_a_command_runs_once_whatever_happens_to_its_line(
    world: E2BWorld, provider: E2BProvider, kind: str
) -> None:
    env = await provider.create("one", SPEC)
    world.e2b.faults.add(Fault(START, kind, status=502))  # type: ignore[arg-type]
    result = await env.exec(shell("echo once >> log; cat log"))
    assert (result.exit_code, result.stdout) == (0, b"once\n")


@pytest.mark.parametrize("kind", ["cut", "rst", "lose", "fail_after"])
async def test_a_launch_whose_answer_was_lost_started_once(world: E2BWorld, provider: E2BProvider, kind: str) -> None:
    env = await provider.create("one", SPEC)
    world.e2b.faults.add(Fault(START, kind))  # type: ignore[arg-type]
    await env.launch("run", shell("echo once >> log; exec sleep 60"))
    await until_size(env, f"{env.layout.work}/log", 5)
    assert await env.read(f"{env.layout.work}/log") == b"once\n"
    assert await env.liveness("run") is Liveness.RUNNING


@pytest.mark.acceptance("C10")
@pytest.mark.parametrize("kind", ["cut", "rst", "stall", "garbage", "no_end", "fail"])
async def test_no_line_is_lost_or_doubled_when_streams_break(world: E2BWorld, provider: E2BProvider, kind: str) -> None:
    env = await provider.create("one", SPEC)
    script = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo line-$i >> out; sleep 0.01; done"
    await env.launch("run", shell(script))
    for skip in (0, 2, 5):
        world.e2b.faults.add(Fault(START, kind, after=2, skip=skip))  # type: ignore[arg-type]
    data = b""
    async with asyncio.timeout(60):
        async with aclosing(env.watch(f"{env.layout.work}/out", 0)) as sizes:
            async for size in sizes:
                while len(data) < size and (part := await env.read(f"{env.layout.work}/out", offset=len(data))):
                    data += part
                if data.endswith(b"line-150\n"):
                    break
    assert data.decode().split() == [f"line-{number}" for number in range(1, 151)]


@pytest.mark.acceptance("C10")
async def test_a_download_that_breaks_is_begun_anew(world: E2BWorld, provider: E2BProvider, tmp_path: Path) -> None:
    env = await provider.create("one", SPEC)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(1 << 20))
    await env.upload(source, f"{env.layout.work}/blob")
    world.e2b.faults.add(Fault("GET /files", "rst", after=1))
    world.e2b.faults.add(Fault("GET /files", "cut", after=1))
    assert await env.download(f"{env.layout.work}/blob", target, max_bytes=1 << 20) == 1 << 20
    assert target.read_bytes() == source.read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["source", "target"]


async def test_an_upload_that_breaks_is_done_again(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    world.e2b.faults.add(Fault("POST /files", "reset"))
    world.e2b.faults.add(Fault("POST /files", "lose"))
    await env.write(f"{env.layout.work}/a", b"whole")
    assert await env.read(f"{env.layout.work}/a") == b"whole"


# --- ends and pauses


@pytest.mark.acceptance("C10")
async def test_a_sandbox_that_vanishes_is_gone_for_every_call_under_way(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    await env.write(f"{env.layout.work}/out", b"x")
    watching = asyncio.ensure_future(_to_the_end(env))
    running = asyncio.ensure_future(env.exec(["sleep", "60"]))
    await until(lambda: _started(world, b" run "))
    await world.e2b.kill(world.e2b.live[0].id)
    for task in (watching, running):
        with pytest.raises(EnvironmentGone):
            await asyncio.wait_for(task, 20)
    assert not await env.is_running()


async def test_an_unused_sandbox_pauses_and_its_frozen_run_is_ended_on_return(
    world: E2BWorld, provider: E2BProvider
) -> None:
    env = await provider.create("one", SPEC)
    await env.launch("run", ["sleep", "600"])
    await world.e2b.clock.advance(301)
    await world.e2b.clock.advance(301)
    [sandbox] = world.e2b.live
    assert sandbox.paused
    with pytest.raises(EnvironmentBusy):
        await env.liveness("run")
    back = await provider.attach("one")
    assert await back.liveness("run") is Liveness.EXITED
    assert sandbox.state == "running"


async def test_whoever_uses_a_sandbox_keeps_it_alive(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    [sandbox] = world.e2b.live
    for _ in range(12):
        await world.e2b.clock.advance(120)
        began = sandbox.end_at
        await env.stat(env.layout.work)
        await until(lambda before=began: _later(sandbox, before))  # type: ignore[misc]
    assert sandbox.state == "running"


async def test_a_long_command_is_given_the_life_that_it_needs(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    [sandbox] = world.e2b.live
    await env.exec(["true"], timeout=1500)
    assert sandbox.end_at - world.e2b.clock.now() > 1500


async def test_a_sandbox_that_lost_its_files_in_a_pause_is_ended(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    await env.pause()
    [sandbox] = world.e2b.live
    (sandbox.folder / "var-lib" / "forgehand" / "marker").unlink()
    with pytest.raises(EnvironmentGone, match="without its files"):
        await provider.attach("one")
    assert not world.e2b.live


async def test_a_pause_closes_the_watch_and_another_follows(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    await env.write(f"{env.layout.work}/out", b"")
    async with asyncio.timeout(20), aclosing(env.watch(f"{env.layout.work}/out", 0)) as sizes:
        assert await anext(sizes) == 0
        await env.pause()
        await env.resume()
        await env.write(f"{env.layout.work}/out", b"abc")
        async for size in sizes:
            if size == 3:
                break


async def test_what_a_watch_said_before_a_kill_counts_no_more_after_it(provider: E2BProvider) -> None:
    """It tells of every change, and so also while the kill is under way."""
    env = await provider.create("one", SPEC)
    ticks = f"{env.layout.out}/ticks"
    names = [f"run-{number}" for number in range(5)]
    for name in names:
        await env.launch(name, shell(f"while :; do echo . >> {ticks}; done"))
    async with aclosing(env.watch(ticks, 0)) as sizes:
        while await anext(sizes) < 100:
            pass
        for name in names:
            await env.kill(name)
            assert await env.liveness(name) is Liveness.EXITED


async def test_a_kill_that_fails_at_first_is_repeated_until_nothing_is_left(
    world: E2BWorld, provider: E2BProvider
) -> None:
    env = await provider.create("one", SPEC)
    world.e2b.faults.add(Fault("DELETE /sandboxes/*", "fail"))
    with pytest.raises(EnvironmentBusy):
        await env.terminate()
    await env.terminate()
    assert not world.e2b.live


# --- what must not be seen


async def test_what_commands_are_given_is_in_no_command_line(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    secret = "canary-secret-value"
    await env.exec(["true"], env={"TOKEN": secret}, stdin=secret.encode())
    await env.launch("run", ["true"], env={"TOKEN": secret})
    starts = [call for call in world.e2b.calls if str(call) == START]
    assert starts
    assert not any(secret.encode() in call.body for call in starts)
    assert not any(secret in call.query for call in world.e2b.calls)


async def _to_the_end(env: EnvironmentPrimitives) -> None:
    async for _ in env.watch(f"{env.layout.work}/out", 0):
        pass


async def _started(world: E2BWorld, mark: bytes) -> bool:
    return any(mark in call.body for call in world.e2b.calls)


async def _later(sandbox: object, before: float) -> bool:
    return bool(getattr(sandbox, "end_at", 0.0) > before)


async def test_a_cancellation_that_the_client_makes_an_error_of_is_still_one() -> None:
    waiting = asyncio.Event()

    async def client() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("the stream was reset") from None

    async def ask() -> None:
        try:
            await client()
        except Exception as error:
            raise faults.of_service(error, "asking") from error

    task = asyncio.create_task(ask())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
