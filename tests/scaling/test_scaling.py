"""No text of others takes longer than it is long: a small part of `python -m tests.scaling`, always the same."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot import commands
from bot.outbound import neutralise
from bot.text.visible import visible
from tests.scaling.growth import Growth, measured, slowest
from tests.scaling.readers import READERS
from tests.scaling.units import UNITS, Recipe, sample

SIZES = (4_096, 16_384)
KNOWN = (
    Recipe((">#\na\n",), in_turn=True),
    Recipe(("> ```\nfix \n",), in_turn=True),
    Recipe(("a", "\n", "- ", ">"), in_turn=False),
    Recipe(("`", "``", "```"), in_turn=False),
    Recipe(("x_",), in_turn=True, end="!"),
    Recipe(("a\nb\n", "c\na\n"), in_turn=False),
    Recipe(("- [x] a", " "), in_turn=False, end="!"),
    Recipe((" ",), in_turn=True, begin="a <a", end=">"),
    Recipe(("b ",), in_turn=True, begin="<div a=b /c=' x=\"", end="'>"),
)
"""Texts for which something took the square of their length, or worse."""


@pytest.mark.review("security-1")
@pytest.mark.parametrize("name", READERS)
def test_twice_the_text_takes_no_more_than_two_and_a_half_times_as_long(name: str) -> None:
    reader = READERS[name]
    recipes = [*KNOWN, *slowest(reader, sample(60), 1_024, 1)]
    for one in recipes:
        found = measured(reader, one, SIZES)
        assert found.is_linear, f"{one}: {found.seconds}"


@pytest.mark.review("security-1")
@settings(max_examples=5, deadline=None)
@given(st.lists(st.sampled_from(UNITS), min_size=1, max_size=3), st.booleans())
@example(parts=["/claude \n", "+a\n", "1. "], in_turn=False)  # taken for too deep until that is cut off
@example(parts=["a\n", "+a\n", "1. "], in_turn=False)
def test_whatever_the_units_are(parts: list[str], in_turn: bool) -> None:
    recipe = Recipe(tuple(parts), in_turn=in_turn)
    for reader in (visible, neutralise.whole, lambda text: commands.named(text, app_slug="forge")):
        found = measured(reader, recipe, SIZES)
        assert found.is_linear, f"{recipe}: {found.seconds}"


def test_the_judge_knows_a_square_from_a_line() -> None:
    """A check that lets everything pass would be none."""

    def square(text: str) -> int:
        return sum(text.count("b") for _ in range(0, len(text), 4))

    assert not measured(square, Recipe(("a",), in_turn=True), SIZES).is_linear
    assert measured(str.split, Recipe(("a ",), in_turn=True), SIZES).is_linear
    assert not measured(lambda text: square(text[:20_000]), Recipe(("a",), in_turn=True), SIZES).is_linear
    assert measured(
        lambda text: [text.split() * (1 + 9 * (len(text) > 9_000))], Recipe(("a ",), in_turn=True), SIZES
    ).is_linear
    assert not Growth(KNOWN[0], (0.1, 0.7), SIZES).is_linear
    assert Growth(KNOWN[0], (0.1, 0.6), SIZES).is_linear
