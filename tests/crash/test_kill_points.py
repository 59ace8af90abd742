"""`kill -9` after every committed transaction, then a restart: the same end as without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.store import conversation, environments, sessions
from bot.store.base import Store
from bot.store.environments import EnvironmentUse
from sandbox.local import folders
from sandbox.local.folders import EnvironmentsFolder
from tests.crash import points
from tests.e2b_stand_in import E2BStandIn
from tests.slices import MATRIX_SECONDS
from tests.world import World, stored
from tests.world.e2b import e2b_spine

MOST_POINTS = 400
SIDE_BY_SIDE = 2
MEND = "sed -i 's/return round(/return max(0.0, round(/; s/, 2)/, 2))/' shop.py"
"""Done twice it would not be the same."""


@dataclass(frozen=True)
class Scenario:
    """`earlier` turns end in peace; the kills fall into the one after them."""

    name: str
    earlier: int
    outcome: str
    share: int
    """In CI one point in so many."""
    cloud: bool = False
    """The work is done in E2B's sandboxes."""

    @property
    def turns(self) -> int:
        return self.earlier + 1

    @asynccontextmanager
    async def world(self, root: Path) -> AsyncIterator[tuple[World, E2BStandIn | None]]:
        if self.cloud:
            async with e2b_spine(root, FORGEHAND_KEEP_MINUTES="0") as found:
                found[0].declare_checks()
                yield found
        else:
            async with World.running(root) as world:
                world.declare_checks()
                yield world, None

    async def begin(self, world: World) -> None:
        work = [Call("Bash", {"command": f"echo 0 >> turn-{n}.txt", "description": "Work"}) for n in range(self.turns)]
        world.model.default(Script([Call("Bash", {"command": MEND, "description": "Mend"}), Say("Done.")]))
        for n in range(1, self.turns):
            await points.in_peace(world, partial(world.say, "/claude fix this"), partial(world.outcome, n))
            world.model.default(Script([work[n], Say("Done.")]))


FIRST = Scenario("first turn", earlier=0, outcome="pull_request", share=24)
SECOND = Scenario("second turn", earlier=1, outcome="pushed", share=48)
CLOUD = Scenario("first turn in the cloud", earlier=0, outcome="pull_request", share=48, cloud=True)
CLOUD_SECOND = Scenario("second turn in the cloud", earlier=1, outcome="pushed", share=90, cloud=True)
UNSEEN_SECONDS = 30.0
"""Of a machine's end, at most, while the bot was being killed and started."""


async def golden(world: World, scenario: Scenario) -> int:
    """One run without a crash; how many transactions it takes."""

    async def ended() -> None:
        assert await world.outcome(scenario.turns) == scenario.outcome

    await scenario.begin(world)
    return await points.in_peace(world, partial(world.say, "/claude go on"), ended)


async def crashed(world: World, scenario: Scenario, point: int) -> None:
    """One run that dies at the point, then is started again until it ends."""
    await scenario.begin(world)
    end = partial(world.outcome, scenario.turns)
    async with points.killed(world, point, partial(world.say, "/claude go on"), end):
        assert await end() == scenario.outcome, world.replies()[-1].body
        await no_strays(world)


async def no_strays(world: World) -> None:
    """What is there is what is kept, and nothing runs in it. (What is in the cloud is asked there.)"""
    if world.environment.get("FORGEHAND_SANDBOX") == "e2b":
        return
    base = EnvironmentsFolder(world.root / "data" / "environments")
    store = await Store.open_reader(world.database)
    try:
        async with asyncio.timeout(20):
            while True:
                rows = await environments.all_of_them(store)
                there = set(base.environment_ids())
                kept = {one.id for one in rows.values() if one.state is EnvironmentUse.KEPT}
                running = any(folders.members(base.folders(one).home) for one in there)
                if there == kept == rows.keys() and len(there) == 1 and not running:
                    return
                await asyncio.sleep(0.05)
    finally:
        await store.close()


async def whole(world: World, turns: int = 1) -> None:
    """The invariants: one session, one comment a turn, one branch, one pull request, each line of output once."""
    assert len(world.replies()) == turns
    [pull] = world.pulls()
    assert world.repo.branches().keys() == {"main", pull.head}
    asked = [one for one in world.issue.comments if one.author is not world.app.bot]
    assert [[reaction.content for reaction in one.reactions] for one in asked] == [["eyes"]] * turns
    assert (world.repo.file(pull.head, "shop.py") or b"").count(b"max(0.0") == 1
    assert all(world.repo.file(pull.head, f"turn-{n}.txt") == b"0\n" for n in range(1, turns))
    store = await Store.open_reader(world.database)
    try:
        [row] = await sessions.listing(store)
        found = await sessions.turns_of(store, row.id)
        assert len(found) == turns
        for turn in found:
            lines = [one.line for one in await conversation.events_of_turn(store, turn.key, 0, 10_000)]
            assert len(lines) == len(set(lines)), "a line was stored twice"
            assert sum('"type":"result"' in line for line in lines) == 1
    finally:
        await store.close()


async def nothing_left_running(world: World, e2b: E2BStandIn) -> None:
    """No sandbox runs on, and what they ran is counted once."""
    async with asyncio.timeout(90):
        while [one for one in e2b.live if one.state == "running"]:
            await asyncio.sleep(0.1)
    ran = sum((one.ended_at or one.end_at) - one.created_at for one in e2b.sandboxes)
    store = await Store.open_reader(world.database)
    try:
        [row] = await sessions.listing(store)
        counted = (await stored.session_machines(store, row.id)).seconds
    finally:
        await store.close()
    assert ran - 1.0 <= counted <= ran + UNSEEN_SECONDS, (ran, counted)


@pytest.mark.acceptance("F01")
@pytest.mark.timeout(MATRIX_SECONDS)
@pytest.mark.parametrize(
    "scenario",
    [FIRST, pytest.param(SECOND, marks=pytest.mark.slow), CLOUD, pytest.param(CLOUD_SECOND, marks=pytest.mark.slow)],
    ids=lambda one: one.name,
)
async def test_killed_after_every_transaction_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scenario: Scenario
) -> None:
    async with scenario.world(tmp_path / "golden") as (world, _):
        found = await golden(world, scenario)
        await whole(world, scenario.turns)
    assert 20 < found < MOST_POINTS
    tried = points.chosen(found, scenario.share)
    with capsys.disabled():
        print(f"\nkill points of the {scenario.name}: {found}, tried here: {len(tried)}")
    room = asyncio.Semaphore(SIDE_BY_SIDE)

    async def attempt(point: int) -> None:
        async with room, scenario.world(tmp_path / f"at-{point}") as (world, e2b):
            try:
                await crashed(world, scenario, point)
                await whole(world, scenario.turns)
                if e2b is not None:
                    await nothing_left_running(world, e2b)
            except Exception as error:
                log = (world.root / "service.log").read_text()[-3000:]
                raise AssertionError(f"at kill point {point} of {found}: {error}\n{log}") from error

    async with asyncio.TaskGroup() as attempts:
        for point in tried:
            attempts.create_task(attempt(point))
