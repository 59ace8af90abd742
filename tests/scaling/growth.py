"""Measures how the time of a function grows with its text. It judges the growth, and no clock."""

from __future__ import annotations

import contextlib
import gc
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import log2

from tests.scaling.units import Recipe

Reader = Callable[[str], object]
SIZES = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
MOST = 2.5
"""Times as long for a text that is twice as long."""
LEAST = 1.6
"""Times as long where no limit has cut in."""
UNHEARD = 0.001
"""Seconds under which a clock tells more of the machine than of the text."""
TRIES = 4
GLANCE = 0.005
"""Seconds for which a function is called again and again. Linux counts a processor's time in nanoseconds."""
ENOUGH = 0.03
"""The same where the first look seems too steep."""
ENDLESS = 5.0
"""Seconds of the processor after which nobody waits any longer."""


@dataclass(frozen=True)
class Growth:
    recipe: Recipe
    seconds: tuple[float, ...]
    """For each of the sizes."""
    sizes: Sequence[int] = SIZES

    @property
    def worst(self) -> float:
        """How many times as long a text takes that is twice as long: over any two doublings, since a limit that is
        passed, or a step more that is taken, is no growth."""
        sizes = [len(self.recipe.text(size)) for size in self.sizes]
        found = [
            (later / max(sooner, UNHEARD)) ** (1 / log2(big / small))
            for small, sooner, big, later in self._pairs(sizes)
            if later > UNHEARD
        ]
        return max(found, default=0.0)

    def _pairs(self, sizes: Sequence[int]) -> Iterator[tuple[int, float, int, float]]:
        timed = list(zip(sizes, self.seconds, strict=True))
        for at, (small, sooner) in enumerate(timed):
            later = next((one for one in timed[at + 1 :] if one[0] >= 3 * small), None)
            if later is not None:
                yield small, sooner, *later

    @property
    def is_linear(self) -> bool:
        return self.worst <= MOST


class _TooLong(BaseException):
    pass


def _give_up(*_: object) -> None:
    raise _TooLong


@contextmanager
def _patience() -> Iterator[None]:
    before = signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS)
    gc.disable()
    try:
        with contextlib.suppress(_TooLong):
            yield
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds(reader: Reader, text: str, enough: float = ENOUGH) -> float:
    """Of the processor, on average of so many calls as its clock needs; without end where a text takes longer than
    anything could."""
    calls, took = 0, float("inf")
    began = time.process_time()
    with _patience():
        while not calls or took < enough:
            reader(text)
            calls += 1
            took = time.process_time() - began
    return took / max(1, calls)


def measured(reader: Reader, recipe: Recipe, sizes: Sequence[int] = SIZES) -> Growth:
    """Again where it looks too steep: another process may have been in the way of one of them."""
    growth = Growth(recipe, tuple(seconds(reader, recipe.text(size), GLANCE) for size in sizes), sizes)
    for _ in range(TRIES):
        if growth.is_linear or growth.seconds[-1] == float("inf"):
            break
        again = tuple(seconds(reader, recipe.text(size)) for size in sizes)
        growth = Growth(recipe, tuple(map(min, growth.seconds, again)), sizes)
    return growth if growth.is_linear else _beyond(reader, growth)


def _beyond(reader: Reader, growth: Growth) -> Growth:
    """Where a text is read in full that was not while it was shorter, that is a step up and no growth: from there on
    the time grows as the text does, neither faster nor, as behind a limit, hardly any more."""
    sizes = tuple(growth.sizes[-1] * steps // 2 for steps in (2, 3, 4))
    if sizes[-1] > SIZES[-1]:
        return growth
    texts = [growth.recipe.text(size) for size in sizes]
    timed = [min(seconds(reader, text) for _ in range(TRIES)) for text in texts]
    steady = all(
        LEAST <= (later / sooner) ** (1 / log2(len(big) / len(small))) <= MOST
        for (sooner, small), (later, big) in pairwise(zip(timed, texts, strict=True))
    )
    return Growth(growth.recipe, (timed[0], timed[-1]), (sizes[0], sizes[-1])) if steady else growth


def _roughly(reader: Reader, text: str) -> float:
    began = time.perf_counter()
    with _patience():
        reader(text)
    return time.perf_counter() - began


def slowest(reader: Reader, recipes: Iterable[Recipe], size: int, many: int) -> list[Recipe]:
    """Those that take the longest at this size, the worst first."""
    timed = [(_roughly(reader, recipe.text(size)), at, recipe) for at, recipe in enumerate(recipes)]
    return [recipe for _, _, recipe in sorted(timed, reverse=True)[:many]]
