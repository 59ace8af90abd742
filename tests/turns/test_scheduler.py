"""Live comments share an allowance: nobody is refused, ends are seen at once, nobody waits for somebody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.live.edit_quota import EditPace, EditQuota, EditQuotas
from bot.models import InstallationId
from bot.simulation.anthropic import Say, Script
from bot.simulation.github import Fault
from bot.store.base import Store
from tests.bench import scheduler
from tests.bench.finals import measure, rig
from tests.bench.scheduler import EPOCH, HOUR, bound, share, strict
from tests.world import World


@pytest.mark.acceptance("C03")
@pytest.mark.parametrize("sessions", [1, 10, 50])
@pytest.mark.parametrize("edits_count", [True, False])
def test_an_hour_of_sessions_is_refused_nothing_and_shows_its_ends_within_a_second(
    sessions: int, edits_count: bool
) -> None:
    allowance = strict() if edits_count else EditQuota.full(EPOCH, EditPace.LENIENT)
    world = scheduler.World(sessions, HOUR, edits_count, allowance).run()
    assert world.refusals == 0
    assert share(world.finals, 0.95) <= 1.0
    assert share(world.creations, 0.95) <= 1.0
    if sessions == 10:
        least = bound(sessions, allowance.rule.per_second)
        for part, limit in zip((0.5, 0.95), least, strict=True):
            assert share(world.stale, part) <= 1.1 * limit, "near the least that the allowance admits"


@pytest.mark.acceptance("C03")
async def test_an_end_is_seen_within_a_second_while_others_have_news(tmp_path: Path) -> None:
    """Over the wire, by the real board: a slice of `python -m tests.bench.finals`."""
    async with rig(tmp_path, 3) as found:
        seen = await measure(found, EditPace.LENIENT)
        assert found.edits > len(seen), "there was other news"
    assert share(seen, 0.5) <= 1.0


async def test_what_was_made_is_taken_off_the_allowance_once(tmp_path: Path) -> None:
    """Else the news of all comments would wait for as long as nothing more pressing is written."""
    now = [EPOCH]
    store = await Store.open(tmp_path / "state.db")
    purse, at = EditQuotas(store, lambda: now[0]), InstallationId(1)
    for _ in range(3):
        purse.note(at)
    assert (await purse.look(at)).wait_seconds(now[0], first=False) > 0
    now[0] += 5
    assert (await purse.look(at)).wait_seconds(now[0], first=False) == 0
    await store.close()


@pytest.mark.acceptance("C03")
async def test_a_comment_that_github_keeps_waiting_holds_up_no_other_thread(world: World) -> None:
    world.model.default(Script([Say("Done.")]))
    other = world.github.open_issue(world.repo, title="Another", by="alice")
    async with world.bot():
        held = world.github.faults.add(Fault(f"POST /repos/*/issues/{world.issue.number}/comments", "hold"))
        world.say("/claude look")
        async with asyncio.timeout(10):
            await held.reached.wait()
        world.say("/claude look", on=other)
        await world.github.changed(lambda: bool(world.replies(other)), 10)
        assert await world.outcome(on=other, timeout=20) == "no_change", "its comment is written to its end"
        assert not world.replies(), "the first waits still"
        held.release.set()
        assert await world.outcome() == "no_change"
    assert len(world.replies()) == len(world.replies(other)) == 1
