"""How often comments may be edited, and in which order they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.live.edit_quota import FOR_FINALS, QUICK_DEPTH, QUICK_PER_SECOND, RULES, DueList, EditPace, EditQuota, Weight
from bot.models import SessionId, TurnKey

STRICT = RULES[EditPace.STRICT]
NOW = 10_000_000.0
ONE, OTHER = TurnKey(SessionId("aaaaaaaa"), 1), TurnKey(SessionId("bbbbbbbb"), 1)


@given(st.lists(st.floats(0, 30), max_size=300), st.booleans())
def test_no_more_goes_out_than_a_burst_and_the_refill(pauses: list[float], first: bool) -> None:
    allowance, now, written = EditQuota.full(NOW), NOW, 0
    for pause in pauses:
        now += pause
        if allowance.wait_seconds(now, first=first) == 0:
            allowance = allowance.spent(now)
            written += 1
    assert written <= STRICT.depth + (now - NOW) * STRICT.per_second + 1
    assert written <= QUICK_DEPTH + (now - NOW) * QUICK_PER_SECOND + 1


def test_the_last_of_the_bucket_is_kept_for_finals() -> None:
    low = EditQuota(FOR_FINALS, NOW)
    assert low.wait_seconds(NOW, first=True) == 0
    assert low.wait_seconds(NOW, first=False) > 0


def test_several_sessions_may_end_at_once_but_news_comes_one_a_second() -> None:
    allowance, ends = EditQuota.full(NOW), 0
    while allowance.wait_seconds(NOW, first=True) == 0:
        allowance, ends = allowance.spent(NOW), ends + 1
    assert ends == QUICK_DEPTH
    assert allowance.wait_seconds(NOW, first=False) > QUICK_PER_SECOND


def test_where_much_is_wanted_for_an_hour_a_little_more_is_tried_and_an_hour_of_that_proves_it() -> None:
    allowance, now, paces = EditQuota.full(NOW), NOW, [EditPace.STRICT]
    while now < NOW + 4 * 3600:
        now += max(allowance.wait_seconds(now, first=False), 1.0)
        allowance = allowance.spent(now)
        if allowance.pace is not paces[-1]:
            paces.append(allowance.pace)
    assert paces == [EditPace.STRICT, EditPace.PROBING, EditPace.LENIENT]


def test_where_little_is_wanted_nothing_is_tried() -> None:
    allowance, now = EditQuota.full(NOW), NOW
    for _ in range(1000):
        now += 60
        allowance = allowance.spent(now)
    assert allowance.pace is EditPace.STRICT


def test_after_a_refusal_the_strict_pace_holds_for_a_week() -> None:
    low = EditQuota(25.0, NOW, pace=EditPace.PROBING, pace_since=NOW - 10).refused(NOW, 60.0)
    assert low.pace is EditPace.STRICT
    later, now = low, NOW
    while now < NOW + 6 * 24 * 3600:
        now += 60
        later = EditQuota(21.0, now, pace_since=later.pace_since, refused_at=later.refused_at).spent(now)
    assert later.pace is EditPace.STRICT
    again = EditQuota(21.0, NOW + 8 * 24 * 3600, refused_at=NOW).spent(NOW + 8 * 24 * 3600)
    assert again.pace is EditPace.PROBING


def test_a_refusal_stops_everything_for_as_long_as_github_said() -> None:
    refused = EditQuota.full(NOW).refused(NOW, 120.0)
    assert refused.wait_seconds(NOW, first=True) == 120.0
    assert refused.wait_seconds(NOW + 120, first=True) <= 10.0
    assert EditQuota.full(NOW).refused(NOW, None).wait_seconds(NOW, first=True) == 75.0


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    assert EditQuota(50, NOW).at(NOW - 3600).tokens == 50


def test_edits_come_slower_as_the_bucket_empties() -> None:
    spacing = [EditQuota(tokens, NOW).spacing_seconds(NOW) for tokens in (140, 100, 60, 20, 0)]
    assert spacing == sorted(spacing)
    assert spacing[0] == 1.0
    assert spacing[-1] == 10.0


def test_a_pause_that_a_jump_of_the_clock_made_longer_than_any_is_not_kept() -> None:
    refused = EditQuota.full(NOW).refused(NOW, 3600.0)
    assert refused.wait_seconds(NOW, first=True) == 3600.0
    assert refused.wait_seconds(NOW - 86_400, first=True) <= 10.0


def test_a_final_state_goes_before_an_older_running_one() -> None:
    due = DueList()
    due.add(ONE)
    due.add(OTHER, Weight.FINAL)
    key, pause = due.next(NOW, EditQuota.full(NOW))
    assert (key, pause) == (OTHER, 0.0)


def test_news_rests_between_two_edits_and_an_end_does_not() -> None:
    here = [100.0]
    due = DueList(lambda: here[0])
    due.add(ONE)
    due.take(ONE)
    due.began()
    due.add(OTHER)
    here[0] += 0.25
    assert due.next(NOW - 86_400, EditQuota.full(NOW)) == (OTHER, 0.75)
    due.add(ONE, Weight.FINAL)
    assert due.next(NOW - 86_400, EditQuota.full(NOW)) == (ONE, 0.0)


def test_a_question_goes_before_news_and_after_an_end() -> None:
    due = DueList(lambda: 100.0)
    third = TurnKey(SessionId("cccccccc"), 1)
    for key, weight in ((ONE, Weight.NEWS), (OTHER, Weight.PRESSING), (third, Weight.FINAL), (OTHER, Weight.NEWS)):
        due.add(key, weight)
    order = []
    while due:
        order.append(due.next(NOW, EditQuota.full(NOW))[0])
        due.take(order[-1])
    assert order == [third, OTHER, ONE]


def test_what_could_not_be_written_comes_later_and_later() -> None:
    due = DueList(lambda: 100.0)
    due.add(ONE, Weight.FINAL)
    pauses = []
    for _ in range(10):
        due.put_back(ONE, due.take(ONE))
        pauses.append(due.next(NOW, EditQuota.full(NOW))[1])
    assert pauses == sorted(pauses)
    assert pauses[0] == 1.0
    assert pauses[-1] == 60.0
