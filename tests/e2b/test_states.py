"""What E2B answers while a sandbox is between two states, hangs, or is lost: wait, reboot, or go on without it."""

from __future__ import annotations

import time
from urllib.parse import parse_qs

import pytest

from sandbox.e2b import faults
from sandbox.e2b.provider import E2BProvider
from sandbox.errors import EnvironmentBusy, KeyRefused
from sandbox.primitives import EnvironmentSpec, Liveness
from tests.e2b_stand_in import Fault
from tests.world.e2b import E2BWorld
from tests.world.environments import shell

SPEC = EnvironmentSpec(labels={"app": "forgehand", "session": "abcd1234"}, public_repository=True)
BUSY = '{"code": 409, "message": "Sandbox \'x\' cannot be reached while in \'snapshotting\' state"}'
UNKNOWN = '{"code": 401, "message": "not initialized"}'


@pytest.mark.review("e2b-4")
@pytest.mark.parametrize("what", ["connect", "timeout"])
async def test_between_two_states_one_waits(world: E2BWorld, provider: E2BProvider, what: str) -> None:
    env = await provider.create("one", SPEC)
    path = "POST /v2/sandboxes/*/connect" if what == "connect" else "POST /sandboxes/*/timeout"
    world.e2b.faults.add(Fault(path, "fail", status=409, body=BUSY))
    with pytest.raises(EnvironmentBusy, match="tries again"):
        await (provider.attach("one") if what == "connect" else env.extend(60))
    if what == "connect":
        await provider.attach("one")
    else:
        await env.extend(60)


@pytest.mark.review("e2b-4")
async def test_what_has_run_for_too_long_is_about_to_be_paused(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    [sandbox] = world.e2b.live
    sandbox.started_at -= world.e2b.limits.hours * 3600
    with pytest.raises(faults.Paused):
        await env.extend(60)
    with pytest.raises(faults.Paused):
        await provider.attach("one")
    await world.e2b.registry.pause(sandbox.id)
    assert await (await provider.attach("one")).is_running()


@pytest.mark.review("e2b-4")
async def test_a_guest_that_hung_is_booted_from_its_disk(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    await env.launch("run", shell("exec sleep 300"))
    await env.write(f"{env.layout.work}/kept", b"1")
    [sandbox] = world.e2b.live
    sandbox.hung = True
    await world.e2b.registry.pause(sandbox.id)
    again = await provider.attach("one")
    assert await again.read(f"{again.layout.work}/kept") == b"1"
    assert await again.liveness("run") is Liveness.EXITED


@pytest.mark.review("e2b-3")
async def test_a_lost_node_is_ended_though_e2b_fails_at_it(world: E2BWorld, provider: E2BProvider) -> None:
    await provider.create("one", SPEC)
    [sandbox] = world.e2b.live
    await world.e2b.registry.lose(sandbox.id)
    with pytest.raises(EnvironmentBusy):
        await provider.attach("one")
    await provider.end("one")
    assert not world.e2b.live
    again = await provider.create("one", SPEC)
    assert await again.is_running()


@pytest.mark.review("e2b-8")
async def test_a_machine_that_does_not_know_itself_yet_is_no_bad_key(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    for _ in range(8):
        world.e2b.faults.add(Fault("POST /process.Process/Start", "fail", status=401, body=UNKNOWN))
    with pytest.raises(EnvironmentBusy):
        await env.stat(env.layout.work)
    world.e2b.faults.clear()
    assert await env.stat(env.layout.work) is not None
    with pytest.raises(KeyRefused):
        await world.provider(api_key="e2b_" + "0" * 40).create("two", SPEC)


@pytest.mark.review("e2b-8")
async def test_of_metrics_the_last_minute_is_asked_for(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    before = time.time()
    assert (await env.metrics()).memory_bytes > 0
    [asked] = [call.query for call in world.e2b.calls if call.path.endswith("/metrics")]
    [since] = parse_qs(asked)["start"]
    assert before - 61 <= int(since) <= time.time() - 59
