"""Numbers over time as shapes of an SVG, and in words for people who do not see it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

WIDTH, HEIGHT = 600, 100
MOST_CORNERS = 240
Series = Sequence[tuple[float, float]]  # (when, how much), oldest first


@dataclass(frozen=True)
class Axis:
    """Working time, one span after another; the time between spans is left out."""

    spans: Sequence[tuple[float, float]]  # (from, to), in their order

    @property
    def seconds(self) -> float:
        return sum(end - begin for begin, end in self.spans)

    @property
    def seams(self) -> list[float]:
        """List the places where one span ends and the next begins."""
        return [self.across(end) for (_, end), _ in pairwise(self.spans)]

    def across(self, at: float) -> float:
        """Return the place from 0 to WIDTH; a moment between two spans is at their seam."""
        gone = sum(min(max(at - begin, 0.0), end - begin) for begin, end in self.spans)
        return gone / self.seconds * WIDTH if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class DrawnLine:
    """`corners` as a polyline of WIDTH × HEIGHT, its top at `most`."""

    name: str
    corners: str
    last: str
    most: str
    seams: Sequence[float] = ()
    seconds: float = 0.0  # the time from left to right


@dataclass(frozen=True)
class Bar:
    name: str
    words: str
    width: float  # from 0 to 100


def line(name: str, series: Series, words: str, axis: Axis | None = None, *, steps: bool = False) -> DrawnLine | None:
    """Draw on the axis, or on the series' own times; `words` formats a number, as in `{:.0f} %`."""
    if len(series) < 2:
        return None
    thin = _thinned(series)
    axis = axis or Axis([(thin[0][0], thin[-1][0])])
    top = max(value for _, value in series) or 1.0
    places = [(axis.across(at), HEIGHT - value / top * HEIGHT) for at, value in thin]
    if steps:
        rises = [((x, low), (x, high)) for (_, low), (x, high) in pairwise(places)]
        places = [places[0], *(corner for rise in rises for corner in rise)]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    last, most = words.format(series[-1][1]), words.format(max(value for _, value in series))
    return DrawnLine(name, corners, last, most, axis.seams, axis.seconds)


def summed(series: Series) -> list[tuple[float, float]]:
    """Add up: the total at each moment, beginning with zero."""
    totals = accumulate(value for _, value in series)
    return [*((at, 0.0) for at, _ in series[:1]), *((at, total) for (at, _), total in zip(series, totals, strict=True))]


def bars(rows: Sequence[tuple[str, float]], least: float = 0.0) -> list[Bar]:
    """Draw each as a share of the longest, or of `least` if all are shorter."""
    top = max([value for _, value in rows] + [least]) or 1.0
    return [Bar(name, f"${value:.2f}", round(value / top * 100, 2)) for name, value in rows]


def _thinned(series: Series) -> Series:
    """Keep the highest of each stretch, so that a short peak stays visible."""
    stretch = -(-len(series) // MOST_CORNERS)
    if stretch < 2:
        return series
    parts = (series[start : start + stretch] for start in range(0, len(series), stretch))
    return [series[0], *(max(part, key=lambda one: one[1]) for part in parts), series[-1]]
