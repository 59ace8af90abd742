"""More sessions than the plan has room for: they wait for a sandbox, in their order, and all of them finish."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.models import SessionId, TurnKey
from bot.simulation.anthropic import Call, Say, Script
from bot.store import sessions
from bot.store.base import Store
from tests.e2b_stand_in import E2BStandIn, Limits
from tests.faults.test_endurance import issues
from tests.world import World
from tests.world.e2b import e2b_spine

PER_SECOND = 2
WORK = Script([Call("Bash", {"command": "echo 1 >> work.txt", "description": "Work"}), Say("Done.")])


@pytest.mark.acceptance("C09")
@pytest.mark.parametrize(
    ("count", "room"),
    [
        pytest.param(5, 2, marks=pytest.mark.timeout(300)),
        pytest.param(20, 5, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
async def test_sessions_wait_for_sandboxes_in_their_order_and_all_finish(
    tmp_path: Path, count: int, room: int, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {
        "FORGEHAND_KEEP_MINUTES": "0",
        "FORGEHAND_E2B_SNAPSHOT_AFTER": "0",  # which a busy machine would take for more sandboxes
        "FORGEHAND_E2B_SANDBOXES": str(room),
        "FORGEHAND_E2B_CREATIONS": str(PER_SECOND),
        "FORGEHAND_MAX_SESSIONS": str(count),
        "FORGEHAND_REPO_SESSIONS": str(count),
    }
    plan = Limits(concurrent=room, creations_per_second=PER_SECOND)
    async with e2b_spine(tmp_path, plan, **settings) as (world, e2b):
        world.model.default(WORK)
        asked = issues(world, count)
        async with world.bot():
            for issue in asked:
                world.say("/claude work", on=issue)
            ended = await asyncio.gather(*(world.outcome(on=issue, timeout=600) for issue in asked))
        assert ended == ["pull_request"] * count
        refused = [str(one) for one in e2b.registry.refusals if one.status == 429]
        assert not [one for one in refused if "concurrent" in one]
        assert len(refused) < count, "on a busy machine two creations come closer together than they were sent"
        assert len(e2b.sandboxes) == count
        assert e2b.most_at_once == room, "all the room there is was used"
        waits = await _waits(world, e2b)
    with capsys.disabled():
        told = f"seconds until a sandbox {[round(one, 1) for one in waits]}; refused for now: {len(refused)}"
        print(f"\n{count} sessions in {room} sandboxes: {told}")
    # Who came first was served first; one place off where two came at once.
    served = sorted(range(count), key=lambda n: waits[n])
    assert all(abs(place - n) <= 1 for place, n in enumerate(served)), waits


async def _waits(world: World, e2b: E2BStandIn) -> list[float]:
    """From the wish for a sandbox to its creation, in the order of the wishes."""
    store = await Store.open_reader(world.database)
    try:
        found = []
        for sandbox in e2b.sandboxes:
            key = TurnKey(SessionId(sandbox.metadata["session"]), 1)
            wished = (await sessions.turn(store, key)).step_times["furnish"]
            found.append((wished, sandbox.created_at))
    finally:
        await store.close()
    began = min(wished for wished, _ in found)
    return [made - began for _, made in sorted(found)]
