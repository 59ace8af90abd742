"""Numbers as shapes: within their box, with their peaks, and in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.web.pages import drawing

SERIES = st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=1000).map(sorted)


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


def test_sums_begin_with_nothing() -> None:
    assert drawing.summed([(5.0, 1.0), (7.0, 2.0)]) == [(5.0, 0.0), (5.0, 1.0), (7.0, 3.0)]
    assert drawing.summed([]) == []


def test_bars_are_parts_of_the_longest() -> None:
    assert [bar.width for bar in drawing.bars([("a", 2.0), ("b", 1.0), ("c", 0.0)])] == [100.0, 50.0, 0.0]
    assert [bar.width for bar in drawing.bars([("a", 0.0)])] == [0.0]
