"""Several replicas on one account of E2B: they share its limits, and each can go on in a sandbox of another."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.e2b_stand_in import Limits
from tests.faults.test_endurance import issues
from tests.world.e2b import e2b_spine
from tests.world.postgres import PostgresServer
from tests.world.replicas import ReplicaSet

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(300)]
ROOM, PER_SECOND, TURNS = 2, 2, 4
SETTINGS = {
    "FORGEHAND_PUBLIC_URL": "",
    "FORGEHAND_PORT": "0",
    "FORGEHAND_KEEP_MINUTES": "0",
    "FORGEHAND_E2B_SNAPSHOT_AFTER": "0",
    "FORGEHAND_E2B_SANDBOXES": str(ROOM),
    "FORGEHAND_E2B_CREATIONS": str(PER_SECOND),
    "FORGEHAND_MAX_SESSIONS": str(TURNS),
    "FORGEHAND_REPO_SESSIONS": str(TURNS),
    "FORGEHAND_REPLICA_SESSIONS": str(TURNS // 2),
}
WRITE = Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add a line"})


async def test_they_keep_within_the_plan_together(tmp_path: Path, postgres: PostgresServer) -> None:
    plan = Limits(concurrent=ROOM, creations_per_second=PER_SECOND)
    async with (
        e2b_spine(tmp_path, plan, **SETTINGS) as (world, e2b),
        ReplicaSet.running(world, postgres, 2) as two,
    ):
        world.model.default(Script([WRITE, Say("Added a line.")]))
        asked = issues(world, TURNS)
        for issue in asked:
            world.say("/claude add a line", on=issue)
        ended = await asyncio.gather(*(world.outcome(on=issue, timeout=200) for issue in asked))
        assert ended == ["pull_request"] * TURNS
        ran = await two.store.many("SELECT DISTINCT replica FROM turns")
        assert len(ran) == 2, "each of them has run some"
        assert not [one for one in e2b.registry.refusals if one.status == 429 and "concurrent" in str(one)]
        assert e2b.most_at_once == ROOM, "all the room there is was used"
        made = sorted(one.created_at for one in e2b.sandboxes)
        assert len(made) == TURNS
        assert all(later - earlier > 0.5 / PER_SECOND for earlier, later in itertools.pairwise(made)), made


async def test_another_goes_on_in_the_sandbox_of_a_dead_one(tmp_path: Path, postgres: PostgresServer) -> None:
    async with (
        e2b_spine(tmp_path, **SETTINGS) as (world, e2b),
        ReplicaSet.running(world, postgres, 2) as two,
    ):
        world.model.default(Script([WRITE, Wait("on"), Say("Added a line.")]))
        world.say("/claude add a line")
        await world.model.reached("on", timeout=60)
        runner = await two.runner()
        await runner.end()
        await two.left(1)
        assert await two.runner() is not runner
        world.model.release("on")
        assert await world.outcome(timeout=120) == "pull_request", world.replies()[0].body
        assert len(world.pulls()) == len(world.replies()) == 1
        assert len(e2b.sandboxes) == 1, "no second sandbox was needed"
