"""What a sandbox uses and costs, from E2B's (stand-in's) own figures to what people read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.models import SessionId, TurnKey
from bot.sessions.environments.meter import MachineWitness
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.store import machines
from bot.store.base import Store
from sandbox.e2b.provider import INSTANCE, KEY
from sandbox.errors import EnvironmentGone
from sandbox.primitives import EnvironmentSpec
from tests.e2b_stand_in import E2BStandIn, Fault
from tests.e2b_stand_in.usage import CPUS, MEMORY_MB
from tests.world import World, stored
from tests.world.command_line import forgehand
from tests.world.e2b import E2BWorld, e2b_spine, e2b_world
from tests.world.environments import short_folder, small_agent

SECOND_USD = CPUS * 0.01 + MEMORY_MB / 1024 * 0.02
WORK = Script([Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"}), Wait("go"), Say("Done.")])
QUICK = Script([Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"}), Say("Done.")])
SLACK_SECONDS = 5.0
"""Between what the cloud did and what we could see of it, on a busy machine."""


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[tuple[World, E2BStandIn]]:
    """Where nothing is kept, unless a test says otherwise."""
    dear = {"FORGEHAND_E2B_CPU_PRICE": "0.01", "FORGEHAND_E2B_MEMORY_PRICE": "0.02"}
    async with e2b_spine(tmp_path, FORGEHAND_KEEP_MINUTES="0", **dear) as (world, e2b):
        world.model.default(WORK)
        yield world, e2b


def key_of(world: World) -> TurnKey:
    state = world.states()[0]
    return TurnKey(SessionId(str(state["session"])), 1)


async def seconds(world: World, e2b: E2BStandIn) -> float:
    store = await Store.open_reader(world.database, clock=e2b.clock.now)
    try:
        found = await stored.session_machines(store, key_of(world).session)
    finally:
        await store.close()
    assert found.usd == pytest.approx(found.seconds * SECOND_USD)
    return found.seconds


async def test_the_sandbox_s_cost_stands_beside_the_model_s(cloud: tuple[World, E2BStandIn]) -> None:
    world, e2b = cloud
    async with world.bot(e2b.clock.now):
        world.say("/claude add a line")
        await world.model.reached("go", timeout=60)
        world.model.release("go")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        world.say("/claude cost")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
    [sandbox] = e2b.sandboxes
    assert sandbox.ended_at is not None
    ran = sandbox.ended_at - sandbox.created_at
    counted = await seconds(world, e2b)
    assert ran - 0.1 <= counted <= ran + SLACK_SECONDS
    usd = counted * SECOND_USD
    assert f" + ${usd:.2f} sandbox" in world.replies()[0].body
    assert f"Its sandboxes cost **${usd:.2f}** on top of that." in world.replies()[1].body
    session = key_of(world).session
    [spent] = (await forgehand(world.environment, "spend", "--by", "session", "--json")).json
    assert (spent["session"], spent["sandbox_usd"]) == (session, pytest.approx(usd, abs=1e-6))
    assert spent["cost_usd"] > 0
    assert f"+ {usd:.4f} sandboxes" in (await forgehand(world.environment, "spend")).out
    shown = await forgehand(world.environment, "sessions", "show", session)
    assert f" + ${usd:.4f} sandbox" in shown.out
    [row] = (await forgehand(world.environment, "sandbox", "cost", "--json")).json
    assert (row["session"], row["usd"], row["seconds"]) == (
        session,
        pytest.approx(usd, abs=1e-6),
        pytest.approx(counted),
    )
    assert f"{usd:.4f} dollars" in (await forgehand(world.environment, "sandbox", "cost", "--by", "day")).out


async def test_a_kept_sandbox_is_counted_until_it_is_paused(
    cloud: tuple[World, E2BStandIn],
) -> None:
    """A pause that takes long costs, the time that it lies there does not."""
    world, e2b = cloud
    slow = e2b.faults.add(Fault("POST /sandboxes/*/pause", "hold"))
    world.model.default(QUICK)
    async with world.bot(e2b.clock.now, FORGEHAND_KEEP_MINUTES="30"):
        world.say("/claude add a line")
        assert await world.outcome() == "pull_request", world.replies()[-1].body
        await asyncio.wait_for(slow.reached.wait(), 20)
        await e2b.clock.advance(20)
        slow.release.set()
        [sandbox] = e2b.live
        for _ in range(1000):
            before = await seconds(world, e2b)
            if sandbox.paused and before == await seconds(world, e2b):
                break
        ran = e2b.clock.now() - sandbox.started_at
    assert ran > 20
    assert ran - SLACK_SECONDS <= await seconds(world, e2b) <= ran


async def test_the_live_comment_shows_what_the_environment_uses(cloud: tuple[World, E2BStandIn]) -> None:
    world, e2b = cloud
    async with world.bot(e2b.clock.now):
        world.say("/claude add a line")
        await world.model.reached("go", timeout=60)
        await world.github.changed(lambda: "sandbox: CPU" in world.replies()[0].body, 20)
        world.model.release("go")
        assert await world.outcome() == "pull_request"
    store = await Store.open_reader(world.database)
    found = await machines.latest_sample(store, key_of(world))
    await store.close()
    assert found is not None
    assert found.peak_memory_bytes >= found.memory_bytes > 1_000_000


async def test_a_restarted_bot_counts_the_same_machine_once(cloud: tuple[World, E2BStandIn]) -> None:
    world, e2b = cloud
    async with world.bot(e2b.clock.now):
        world.say("/claude add a line")
        await world.model.reached("go", timeout=60)
    await e2b.clock.advance(100)
    async with world.bot(e2b.clock.now):
        world.model.release("go")
        await world.outcome()
    [sandbox] = e2b.sandboxes
    assert sandbox.ended_at is not None
    ran = sandbox.ended_at - sandbox.created_at
    assert ran > 100
    assert ran - 0.1 <= await seconds(world, e2b) <= ran + SLACK_SECONDS


async def test_what_ran_unseen_is_bounded_by_when_it_paused_and_the_pause_costs_nothing(
    cloud: tuple[World, E2BStandIn],
) -> None:
    world, e2b = cloud
    async with world.bot(e2b.clock.now):
        world.say("/claude add a line")
        await world.model.reached("go", timeout=60)
    for _ in range(60):
        await e2b.clock.advance(600)
    [sandbox] = e2b.live
    assert sandbox.paused
    async with world.bot(e2b.clock.now):
        await world.outcome()
    assert 600 <= await seconds(world, e2b) <= 600 + 900 + 60 + 2 * SLACK_SECONDS


LOOK = "GET /sandboxes/{}"


async def test_a_sandbox_that_was_ended_before_the_first_look_at_it_is_counted(
    cloud: tuple[World, E2BStandIn],
) -> None:
    """The bot goes away between the making of the second one, for the checks, and the look that would note it."""
    world, e2b = cloud
    world.github.commit(world.repo, "main", {".github/forgehand.yml": "checks: ['true']\n"})
    world.model.default(QUICK)
    async with world.bot(e2b.clock.now):
        world.say("/claude add a line")
        async with asyncio.timeout(60):
            while len(e2b.sandboxes) < 2:
                await asyncio.sleep(0.01)
        held = e2b.faults.add(Fault(LOOK.format(e2b.sandboxes[1].id), "hold"))
        await asyncio.wait_for(held.reached.wait(), 20)
        await e2b.clock.advance(100)
    async with world.bot(e2b.clock.now):
        assert await world.outcome() == "pull_request", world.replies()[-1].body
    assert len(e2b.sandboxes) == 3, "what an earlier try has left is not used again"
    ran = [(one.ended_at or one.end_at) - one.created_at for one in e2b.sandboxes]
    assert ran[1] > 100
    assert sum(ran) - 0.3 <= await seconds(world, e2b) <= sum(ran) + SLACK_SECONDS


async def test_a_sandbox_that_paused_before_the_first_look_at_it_is_counted_until_then(
    cloud: tuple[World, E2BStandIn],
) -> None:
    world, e2b = cloud
    world.model.default(QUICK)
    held = e2b.faults.add(Fault(LOOK.format("*"), "hold"))
    async with world.bot(e2b.clock.now):
        world.say("/claude add a line")
        await asyncio.wait_for(held.reached.wait(), 60)
    [sandbox] = e2b.live
    first = sandbox.end_at - sandbox.created_at
    for _ in range(10):
        await e2b.clock.advance(600)
    assert sandbox.paused
    async with world.bot(e2b.clock.now):
        assert await world.outcome() == "pull_request", world.replies()[-1].body
    assert sandbox.ended_at is not None
    ran = first + sandbox.ended_at - sandbox.started_at
    assert ran - 0.1 <= await seconds(world, e2b) <= ran + SLACK_SECONDS


async def test_a_sandbox_that_vanished_is_counted_at_most_until_it_would_have_ended_by_itself(
    cloud: tuple[World, E2BStandIn],
) -> None:
    world, e2b = cloud
    async with world.bot(e2b.clock.now):
        world.say("/claude add a line")
        await world.model.reached("go", timeout=60)
        await e2b.kill(e2b.live[0].id)
        await world.outcome()
        world.model.release("go")
    sandbox = e2b.sandboxes[0]
    assert sandbox.ended_at is not None
    assert sandbox.ended_at - sandbox.created_at - 0.1 <= await seconds(world, e2b) <= 600 + 900 + SLACK_SECONDS


async def test_samples_that_fail_keep_nobody_from_working(cloud: tuple[World, E2BStandIn]) -> None:
    world, e2b = cloud
    e2b.faults.add(Fault("GET /sandboxes/*/metrics", "fail", times=None))
    async with world.bot(e2b.clock.now):
        world.say("/claude add a line")
        await world.model.reached("go", timeout=60)
        world.model.release("go")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert any("/metrics" in call.path for call in e2b.calls)


async def test_a_sandbox_on_this_host_is_sampled_and_costs_nothing(world: World) -> None:
    world.model.default(WORK)
    async with world.bot():
        world.say("/claude add a line")
        await world.model.reached("go", timeout=60)
        await world.github.changed(lambda: "sandbox: CPU" in world.replies()[0].body, 20)
        world.model.release("go")
        assert await world.outcome() == "pull_request"
        world.say("/claude cost")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
    assert not [reply.body for reply in world.replies() if "sandbox" in reply.body]
    spent, cost = await asyncio.gather(
        forgehand(world.environment, "spend"), forgehand(world.environment, "sandbox", "cost", "--json")
    )
    assert "sandbox" not in spent.out
    assert cost.json == []


SPEC = EnvironmentSpec({"app": "forgehand"}, public_repository=False)
KEY_OF_FIRST = "abcd1234-1"


@asynccontextmanager
async def bare_cloud(root: Path) -> AsyncIterator[tuple[E2BWorld, Store]]:
    """Without a bot: what its provider does by itself."""
    with short_folder() as folder:
        async with e2b_world(folder, small_agent(folder)) as world:
            store = await Store.open(root / "state.db", clock=world.e2b.clock.now)
            try:
                yield world, store
            finally:
                await store.close()


async def machine_seconds(store: Store) -> float:
    return (await stored.session_machines(store, SessionId("abcd1234"))).seconds


async def test_a_twin_that_the_provider_ends_is_counted_until_then(tmp_path: Path) -> None:
    """A create that was carried out late: what asked for it has another machine by then."""
    async with bare_cloud(tmp_path) as (world, store):
        provider = world.provider(MachineWitness(store))
        env = await provider.create(KEY_OF_FIRST, SPEC)
        await env.write(f"{env.layout.work}/mine", b"1")
        await world.e2b.clock.advance(50)
        marks = {**SPEC.labels, KEY: KEY_OF_FIRST, INSTANCE: "test"}
        await provider._cloud.create("late", marks, world.settings.network(), "base")
        await world.e2b.clock.advance(100)
        assert await machine_seconds(store) == 0
        await provider.attach(KEY_OF_FIRST)
        [twin] = [one for one in world.e2b.sandboxes if one.ended_at is not None]
        await world.e2b.clock.advance(100)
        assert 100 <= await machine_seconds(store) <= 100 + SLACK_SECONDS
        [lease] = await provider.leases(KEY_OF_FIRST)
        assert lease.since < twin.created_at
        await provider.close()


async def test_a_machine_that_came_back_without_its_files_is_counted_until_it_was_ended(tmp_path: Path) -> None:
    async with bare_cloud(tmp_path) as (world, store):
        provider = world.provider(MachineWitness(store))
        env = await provider.create(KEY_OF_FIRST, SPEC)
        await env.pause()
        [sandbox] = world.e2b.live
        (sandbox.folder / "var-lib" / "forgehand" / "marker").unlink()
        with pytest.raises(EnvironmentGone, match="without its files"):
            await provider.attach(KEY_OF_FIRST)
        assert sandbox.ended_at is not None
        ran = sandbox.ended_at - sandbox.started_at
        await world.e2b.clock.advance(100)
        assert ran - 0.1 <= await machine_seconds(store) <= ran + SLACK_SECONDS
        assert await machine_seconds(store) > 0
        await provider.close()
