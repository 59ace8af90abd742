"""What `sandbox.primitives` promises of an environment's life, kept by every provider."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sandbox.errors import EnvironmentBusy, EnvironmentGone
from sandbox.primitives import EnvironmentPrimitives, EnvironmentProvider, EnvironmentSpec, EnvironmentState, Liveness
from tests.contract.makers import SPEC
from tests.world.environments import shell, until, until_size


async def test_create_finds_what_the_key_made_before(provider: EnvironmentProvider) -> None:
    first = await provider.create("same", SPEC)
    await first.write(f"{first.layout.work}/kept", b"1")
    second = await provider.create("same", SPEC)
    assert second.id == first.id
    assert await second.read(f"{second.layout.work}/kept") == b"1"


async def test_concurrent_creates_of_one_key_make_one(provider: EnvironmentProvider) -> None:
    made = await asyncio.gather(*(provider.create("same", SPEC) for _ in range(5)))
    assert len({one.id for one in made}) == 1
    assert len(await provider.find({})) == 1


async def test_find_by_labels(provider: EnvironmentProvider) -> None:
    one = await provider.create("one", SPEC)
    await provider.create("two", EnvironmentSpec({"session": "other"}, False))
    assert [found.id for found in await provider.find({"session": "abcd1234"})] == [one.id]
    assert await provider.find({"session": "abcd1234", "kind": "no"}) == []
    assert len(await provider.find({})) == 2


async def test_a_new_client_finds_environment_files_and_processes(
    make: Callable[[], EnvironmentProvider], provider: EnvironmentProvider
) -> None:
    env = await provider.create("one", SPEC)
    await env.launch("run", shell("exec sleep 60"))
    await env.write(f"{env.layout.home}/note", b"here")
    again = make()
    found = await again.attach(env.id)
    assert await found.liveness("run") is Liveness.RUNNING
    assert await found.read(f"{found.layout.home}/note") == b"here"
    await found.kill("run")
    assert await env.liveness("run") is Liveness.EXITED
    await again.close()


async def test_attach_to_what_is_not_there(provider: EnvironmentProvider) -> None:
    with pytest.raises(EnvironmentGone):
        await provider.attach("nothing")


async def test_at_rest_nothing_runs_and_the_files_stay(provider: EnvironmentProvider) -> None:
    env = await provider.create("one", SPEC)
    await env.launch("run", shell("setsid sleep 300 & exec sleep 300"))
    await env.write(f"{env.layout.work}/built", b"here")
    await provider.rest("one")
    await provider.rest("one")
    again = await provider.attach("one")
    assert await again.liveness("run") is Liveness.EXITED
    assert await again.read(f"{again.layout.work}/built") == b"here"
    with pytest.raises(EnvironmentGone):
        await provider.rest("nothing")


async def test_end_also_what_is_at_rest_and_what_is_gone(provider: EnvironmentProvider) -> None:
    await provider.create("one", SPEC)
    await provider.create("two", SPEC)
    await provider.rest("one")
    for name in ("one", "two", "two", "nothing"):
        await provider.end(name)
    assert await provider.find({}) == []
    with pytest.raises(EnvironmentGone):
        await provider.attach("one")


async def test_how_long_it_may_still_run(env: EnvironmentPrimitives) -> None:
    left = await env.left()
    assert left is None or 3500 < left <= 3600


async def test_pause_and_resume(env: EnvironmentPrimitives) -> None:
    ticks = f"{env.layout.out}/ticks"
    await env.launch("run", shell(f"while :; do echo . >> {ticks}; sleep 0.01; done"))
    await until_size(env, ticks, 6)
    await env.pause()
    try:
        before = len(await env.read(ticks))
        # Longer than many ticks, and not a sleep: one look of the watch.
        assert await anext(env.watch(ticks, before)) == before
    except EnvironmentBusy:
        before = 6  # a machine that is frozen as a whole does not answer
        assert not await env.is_running()
    await env.resume()
    await until_size(env, ticks, before + 10)
    assert await env.is_running()


async def test_an_overview_tells_who_is_paused_and_wakes_nobody(provider: EnvironmentProvider) -> None:
    began = time.time()
    for name in ("one", "two"):
        env = await provider.create(name, SPEC)
        await env.launch("run", shell("exec sleep 60"))
    await env.pause()
    for _ in range(2):
        found = await provider.overview({"session": "abcd1234"})
        assert [(one.id, one.state) for one in found] == [
            ("one", EnvironmentState.RUNNING),
            ("two", EnvironmentState.PAUSED),
        ]
    assert all(dict(one.labels) == dict(SPEC.labels) for one in found)
    assert all(began - 5 < one.since < time.time() + 5 for one in found)
    assert len({one.kind for one in found}) == 1
    assert await provider.overview({"session": "other"}) == []


async def test_who_was_busy_has_stopped_when_the_pause_is_over(provider: EnvironmentProvider) -> None:
    """More than there are processors: many of them are told to stop while they wait for one."""
    env = await provider.create("one", SPEC)
    crowd = "while :; do :; done &" * 12
    await env.launch("run", shell(f"{crowd} echo up > {env.layout.out}/up; wait"))
    await until_size(env, f"{env.layout.out}/up", 3)
    for _ in range(3):
        await env.pause()
        assert [one.state for one in await provider.overview({})] == [EnvironmentState.PAUSED]
        await env.resume()
        assert [one.state for one in await provider.overview({})] == [EnvironmentState.RUNNING]


async def test_a_lease_is_told_while_what_is_paid_for_runs(
    provider: EnvironmentProvider, env: EnvironmentPrimitives
) -> None:
    first = await env.lease()
    told = [await provider.leases(env.id)]
    await env.pause()
    told.append(await provider.leases(env.id))
    assert await env.lease() is None, "and nothing has woken it"
    await env.resume()
    second = await env.lease()
    told.append(await provider.leases(env.id))
    if first is None:
        assert (second, told) == (None, [[], [], []])
        return
    assert second is not None
    assert [[one.since for one in each] for each in told] == [[first.since], [first.since], [second.since]]
    assert first.since < first.until
    assert second.since > first.since, "another run of it"
    assert first.cpus > 0
    assert first.memory_gib > 0
    assert (first.cpu_usd, first.gib_usd) == (0.000014, 0.0000045)


async def test_metrics(env: EnvironmentPrimitives) -> None:
    await env.write(f"{env.layout.work}/blob", os.urandom(2 << 20))
    await env.launch("run", shell("while :; do :; done"))

    async def busy() -> bool:
        return (await env.metrics()).cpu_percent > 10

    await until(busy)
    found = await env.metrics()
    assert found.memory_bytes > 100_000
    assert found.disk_bytes >= 2 << 20


async def test_expose_reaches_a_port_inside(env: EnvironmentPrimitives) -> None:
    serve = (
        "import http.server,sys;"
        "s=http.server.HTTPServer(('127.0.0.1',0),http.server.SimpleHTTPRequestHandler);"
        f"open('{env.layout.out}/port','w').write('%05d'%s.server_port);s.serve_forever()"
    )
    await env.write(f"{env.layout.work}/page", b"from inside")
    await env.launch("web", [env.layout.python, "-c", serve], cwd=env.layout.work)
    await until_size(env, f"{env.layout.out}/port", 5)
    address = await env.expose(int(await env.read(f"{env.layout.out}/port")))
    host, port = address.removeprefix("http://").rsplit(":", 1)
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /page HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    assert b"from inside" in answer


async def test_extend_is_accepted(env: EnvironmentPrimitives) -> None:
    await env.extend(3600)
    assert await env.is_running()


async def test_terminate_ends_everything_and_can_be_repeated(
    provider: EnvironmentProvider, env: EnvironmentPrimitives, root: Path
) -> None:
    await env.launch("run", shell("setsid sleep 60 & exec sleep 60"))
    await env.exec(shell(f"mkdir -p {env.layout.work}/a/b && chmod 000 {env.layout.work}/a"))
    await env.terminate()
    await env.terminate()
    assert not await env.is_running()
    assert await provider.find(SPEC.labels) == []
    with pytest.raises(EnvironmentGone):
        await provider.attach(env.id)
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: env.exec(["true"]),
        lambda: env.launch("x", ["true"]),
        lambda: env.read(f"{env.layout.out}/x"),
        lambda: env.write(f"{env.layout.out}/x", b""),
        lambda: env.liveness("run"),
    )
    for call in calls:
        with pytest.raises(EnvironmentGone):
            await call()
    again = await provider.create("one", SPEC)
    assert await again.list(again.layout.work) == []
    assert await again.liveness("run") is Liveness.ABSENT


async def test_close_leaves_environments(
    make: Callable[[], EnvironmentProvider], provider: EnvironmentProvider
) -> None:
    other = make()
    env = await other.create("kept", SPEC)
    await env.launch("run", ["sleep", "60"])
    await other.close()
    assert await (await provider.attach(env.id)).liveness("run") is Liveness.RUNNING
