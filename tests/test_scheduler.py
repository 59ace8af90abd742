"""A slice of the scheduler's bench: nobody is refused, ends are seen at once, and news is fresh."""

from __future__ import annotations

import pytest

from bot.live.allowance import Allowance, Pace
from tests.bench.scheduler import EPOCH, HOUR, World, share, strict


@pytest.mark.acceptance("C03")
@pytest.mark.parametrize("sessions", [1, 10, 50])
@pytest.mark.parametrize("edits_count", [True, False])
def test_an_hour_of_sessions_is_refused_nothing_and_shows_its_ends_within_a_second(
    sessions: int, edits_count: bool
) -> None:
    allowance = strict() if edits_count else Allowance.full(EPOCH, Pace.LENIENT)
    world = World(sessions, HOUR, edits_count, allowance).run()
    assert world.refusals == 0
    assert share(world.finals, 0.95) <= 1.0
    assert share(world.creations, 0.95) <= 1.0
    if sessions == 10 and not edits_count:
        assert share(world.stale, 0.5) <= 6.0
