"""`stop` at each step, each held by something real: heard at once, however long the step would take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import Fault
from bot.simulation.github.gitstore import refs
from sandbox.local.folders import EnvironmentsFolder
from tests.e2b_stand_in import Fault as E2BFault
from tests.world import World
from tests.world.e2b import e2b_spine
from tests.world.environments import until

CONFIG = ".github/forgehand.yml"
SECONDS = 2.0
NOISE_SECONDS = 2.0
"""What a machine that runs other tests beside this one may add."""
WRITE = Call("Bash", {"command": "echo half > half.txt", "description": "Write half of it"})
SLOWLY = """mkdir -p .git/info; echo half > half.txt; echo '* filter=slow' > .git/info/attributes
git config filter.slow.clean 'touch .git/waits; until [ -e .git/go ]; do sleep 0.05; done; cat'"""
SLOW = Call("Bash", {"command": SLOWLY, "description": "Write half of it, slowly"})


@dataclass(frozen=True)
class Held:
    """A turn that stands still in a step until it is let go on."""

    release: Callable[[], None] = lambda: None


def _does(world: World, *calls: Call) -> None:
    world.model.default(Script([*calls, Say("Done.")]))


async def _shows(world: World, words: str) -> None:
    await world.github.changed(lambda: any(words in one.body for one in world.replies()), 30)


async def prepare(world: World) -> Held:
    held = world.github.faults.add(Fault("GET /repos/*/issues/1", "hold"))
    world.say("/claude fix this")
    await asyncio.wait_for(held.reached.wait(), 30)
    return Held(held.release.set)


async def furnish(world: World) -> Held:
    world.github.commit(world.repo, "main", {CONFIG: "setup: [sleep 60]\n"})
    world.say("/claude fix this")
    await _shows(world, "Setting up the sandbox")
    return Held()


async def work(world: World) -> Held:
    world.model.default(Script([WRITE, Wait("never"), Say("unreachable")]))
    world.say("/claude fix this")
    await world.model.reached("never", timeout=60)
    return Held()


async def collect(world: World) -> Held:
    """By the agent's own git: a filter that takes its time for each file."""
    _does(world, SLOW)
    world.say("/claude fix this")
    base = EnvironmentsFolder(world.root / "data" / "environments")

    def places() -> list[Path]:
        return [base.folders(one).work / ".git" for one in base.environment_ids()]

    async def waits() -> bool:
        return any((one / "waits").exists() for one in places())

    await until(waits, 30)
    [place] = places()
    return Held((place / "go").touch)


async def verify(world: World) -> Held:
    world.github.commit(world.repo, "main", {CONFIG: "checks: [sleep 60]\n"})
    _does(world, WRITE)
    world.say("/claude fix this")
    await _shows(world, "Running the checks")
    return Held()


async def publish(world: World) -> Held:
    """GitHub does not say whether the person may still write."""
    held = world.github.faults.add(Fault("GET /repos/*/collaborators/*/permission", "hold", skip=2))
    _does(world, WRITE)
    world.say("/claude fix this")
    await asyncio.wait_for(held.reached.wait(), 30)
    return Held(held.release.set)


HOLDS: dict[str, Callable[[World], Awaitable[Held]]] = {
    hold.__name__: hold for hold in (prepare, furnish, work, collect, verify, publish)
}
WITH_WORK = ("work", "collect", "verify", "publish")


def rescued(world: World) -> list[bytes | None]:
    return [world.repo.file(sha, "half.txt") for sha in refs(world.repo.path, "refs/forgehand/").values()]


async def heard(world: World, step: str) -> None:
    """Within how long people see what became of their word."""
    began = time.monotonic()
    world.say("/claude stop")
    if step == "settle":
        await _shows(world, "The work had already finished, so there was nothing left to stop.")
    else:
        assert await world.outcome(timeout=20, early=True) == "stopped"
    assert time.monotonic() - began < SECONDS + NOISE_SECONDS


@pytest.mark.acceptance("B15")
@pytest.mark.parametrize("step", HOLDS)
async def test_stop_is_heard_at_once_in_each_step(world: World, step: str) -> None:
    async with world.bot():
        held = await HOLDS[step](world)
        await heard(world, step)
        held.release()
        if step in WITH_WORK:
            await _shows(world, " as `refs/forgehand/rescue/")
    assert rescued(world) == [b"half\n"] * (step in WITH_WORK)
    assert world.repo.branches().keys() == {"main"} and len(world.states()) == 1


@pytest.mark.acceptance("B15")
@pytest.mark.parametrize("step", ["collect", "settle"])
async def test_stop_does_not_wait_for_the_cloud(tmp_path: Path, step: str) -> None:
    """For a bundle that is on its way, and for the end of a sandbox."""
    async with e2b_spine(tmp_path, FORGEHAND_KEEP_MINUTES="0") as (world, e2b), world.bot():
        world.github.commit(world.repo, "main", {CONFIG: "checks: []\n"})  # whose sandbox would be ended before
        world.model.default(Script([WRITE, Wait("on"), Say("Done.")]))
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        slow = E2BFault("GET /files", "hold", times=None) if step == "collect" else E2BFault("DELETE /sand*", "hold")
        held = e2b.faults.add(slow)
        world.model.release("on")
        await asyncio.wait_for(held.reached.wait(), 30)
        await heard(world, step)
        e2b.faults.clear()
        if step == "collect":
            await _shows(world, " as `refs/forgehand/rescue/")
        else:
            assert await world.outcome() == "pull_request"
    assert rescued(world) == [b"half\n"] * (step == "collect")
