"""Numbers as shapes: within their box, with their peaks, and in words."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bot.funds import BudgetAccount, BudgetTerms
from bot.models import TurnState
from bot.store.session_view import SessionView
from bot.web.pages import drawing
from bot.web.pages.overview import overview
from tests.unit.turns import TURN

SERIES = st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=1000).map(sorted)

_NOTHING: tuple[BudgetAccount, float, list[str], list[str], int, None] = (BudgetAccount(), 0.0, [], [], 0, None)
"""What a look holds beside that."""


@given(SERIES, st.booleans())
def test_a_line_stays_in_its_box_and_is_not_too_long(series: list[tuple[float, float]], steps: bool) -> None:
    drawn = drawing.line("x", series, "{:.0f}", steps=steps)
    if drawn is None:
        assert len(series) < 2
        return
    corners = [tuple(map(float, corner.split(","))) for corner in drawn.corners.split(" ")]
    assert all(0 <= x <= drawing.WIDTH and 0 <= y <= drawing.HEIGHT for x, y in corners)
    assert len(corners) <= 2 * drawing.MOST_CORNERS + 4


def test_a_short_peak_is_drawn() -> None:
    series = [(float(at), 99.0 if at == 777 else 1.0) for at in range(2000)]
    drawn = drawing.line("CPU", series, "{:.0f} %")
    assert drawn is not None
    assert any(corner.endswith(",0.0") for corner in drawn.corners.split(" "))
    assert (drawn.last, drawn.most) == ("1 %", "99 %")


def test_days_between_two_spans_are_left_out_and_marked() -> None:
    axis = drawing.Axis([(100.0, 110.0), (90_000.0, 90_030.0)])
    assert axis.seconds == 40.0 and axis.seams == [drawing.WIDTH / 4]
    places = [axis.across(at) for at in (100.0, 105.0, 110.0, 50_000.0, 90_000.0, 90_015.0, 90_030.0, 99_999.0)]
    assert places == [0.0, 75.0, 150.0, 150.0, 150.0, 375.0, 600.0, 600.0]
    drawn = drawing.line("x", [(105.0, 1.0), (90_015.0, 2.0)], "{:.0f}", axis)
    assert drawn is not None and drawn.corners == "75.0,50.0 375.0,0.0" and drawn.seams == [150.0]


def test_a_session_is_drawn_over_the_time_that_it_worked() -> None:
    """Without the time of now: all who watch are sent each picture that differs."""
    first = replace(TURN, state=TurnState.DONE, started_at=100.0, finished_at=130.0)
    look = SessionView([first, replace(TURN, n=2, started_at=9000.0)], [], [(110.0, 1.0), (9030.0, 2.0)], 0, *_NOTHING)
    [money] = overview(look, None, BudgetTerms(5.0, 5.0)).lines
    assert (money.seconds, money.seams) == (60.0, [300.0])
    assert money.corners.startswith("0.0,100.0 100.0,100.0 100.0,66.7 ") and money.corners.endswith("600.0,0.0")


def test_one_request_is_drawn_as_a_step_in_its_turn() -> None:
    turn = replace(TURN, state=TurnState.DONE, started_at=100.0, finished_at=200.0)
    [money] = overview(SessionView([turn], [], [(150.0, 1.0)], 0, *_NOTHING), None, BudgetTerms(5.0, 5.0)).lines
    assert money.corners == "0.0,100.0 300.0,100.0 300.0,0.0 600.0,0.0 600.0,0.0"


def test_sums_begin_with_nothing() -> None:
    assert drawing.summed([(5.0, 1.0), (7.0, 2.0)]) == [(5.0, 0.0), (5.0, 1.0), (7.0, 3.0)]
    assert drawing.summed([]) == []


def test_bars_are_parts_of_the_longest() -> None:
    assert [bar.width for bar in drawing.bars([("a", 2.0), ("b", 1.0), ("c", 0.0)])] == [100.0, 50.0, 0.0]
    assert [bar.width for bar in drawing.bars([("a", 0.0)])] == [0.0]
