"""How often comments may be edited, and in which order they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.live.allowance import DEPTH, PER_SECOND, RESERVED_FOR_FINALS, Allowance
from bot.live.due import DueList
from bot.models import SessionId, TurnKey

NOW = 10_000.0
ONE, OTHER = TurnKey(SessionId("aaaaaaaa"), 1), TurnKey(SessionId("bbbbbbbb"), 1)


@given(st.lists(st.floats(0, 30), max_size=300))
def test_no_more_goes_out_than_a_burst_and_the_refill(pauses: list[float]) -> None:
    allowance, now, written = Allowance.full(NOW), NOW, 0
    for pause in pauses:
        now += pause
        if allowance.wait_seconds(now, final=True) == 0:
            allowance = allowance.spent(now)
            written += 1
    assert written <= DEPTH + (now - NOW) * PER_SECOND + 1


def test_the_last_of_the_bucket_is_kept_for_finals() -> None:
    low = Allowance(RESERVED_FOR_FINALS, NOW)
    assert low.wait_seconds(NOW, final=True) == 0
    assert low.wait_seconds(NOW, final=False) > 0


def test_a_refusal_stops_everything_for_as_long_as_github_said() -> None:
    refused = Allowance.full(NOW).refused(NOW, 120.0)
    assert refused.wait_seconds(NOW, final=True) == 120.0
    assert refused.wait_seconds(NOW + 120, final=True) == 0
    assert Allowance.full(NOW).refused(NOW, None).wait_seconds(NOW, final=True) == 75.0


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    assert Allowance(50, NOW).at(NOW - 3600).tokens == 50


def test_edits_come_slower_as_the_bucket_empties() -> None:
    spacing = [Allowance(tokens, NOW).spacing_seconds(NOW) for tokens in (140, 100, 60, 20, 0)]
    assert spacing == sorted(spacing)
    assert spacing[0] == 1.0
    assert spacing[-1] == 10.0


def test_a_pause_that_a_jump_of_the_clock_made_longer_than_any_is_not_kept() -> None:
    refused = Allowance.full(NOW).refused(NOW, 3600.0)
    assert refused.wait_seconds(NOW, final=True) == 3600.0
    assert refused.wait_seconds(NOW - 86_400, final=True) == 0.0


def test_a_final_state_goes_before_an_older_running_one() -> None:
    due = DueList()
    due.add(ONE, final=False)
    due.add(OTHER, final=True)
    key, pause = due.next(NOW, Allowance.full(NOW))
    assert (key, pause) == (OTHER, 0.0)


def test_the_same_comment_rests_between_two_edits_and_then_shows_the_latest() -> None:
    here = [100.0]
    due = DueList(lambda: here[0])
    due.add(ONE, final=False)
    due.take(ONE)
    due.written(ONE)
    due.add(ONE, final=False)
    due.add(ONE, final=True)
    here[0] += 0.25
    key, pause = due.next(NOW - 86_400, Allowance.full(NOW))
    assert key == ONE
    assert pause == 0.75


def test_what_could_not_be_written_comes_later_and_later() -> None:
    due = DueList(lambda: 100.0)
    due.add(ONE, final=True)
    pauses = []
    for _ in range(10):
        due.put_back(ONE, due.take(ONE))
        pauses.append(due.next(NOW, Allowance.full(NOW))[1])
    assert pauses == sorted(pauses)
    assert pauses[0] == 1.0
    assert pauses[-1] == 60.0
