"""What an agent says of the discussions it was asked about, and when one is settled."""

from __future__ import annotations

import pytest

from bot.agent.material import (
    DiscussionAnswer,
    DiscussionState,
    answers_to_discussions,
    discussion_place,
    distinct_places,
    is_settled,
)
from bot.models import Spot

SPOT = Spot(7, "calc.py", 3, None, "")


def test_each_discussion_has_its_paragraph() -> None:
    said = answers_to_discussions(
        "All.\n\nD1: renamed it,\nin both places.\n\nNot of it.\n- **D2** (open): needs a decision\nD3 (done): see b.py"
    )
    assert said == {
        1: DiscussionAnswer("renamed it,\nin both places.", DiscussionState.UNSAID),
        2: DiscussionAnswer("needs a decision", DiscussionState.OPEN),
        3: DiscussionAnswer("see b.py", DiscussionState.DONE),
    }


@pytest.mark.parametrize("line", ["D1: x", "**D1:** x", "`D1`: x", "> D1: x", "### D1: x", "* **D1**: x"])
def test_markdown_around_the_name_does_not_matter(line: str) -> None:
    assert answers_to_discussions(line) == {1: DiscussionAnswer("x", DiscussionState.UNSAID)}


@pytest.mark.parametrize("line", ["", "3D1: x", "AD1: x", "D1 says x", "D1234: x", "about D1: x"])
def test_other_lines_are_none(line: str) -> None:
    assert answers_to_discussions(line) == {}


@pytest.mark.parametrize(
    ("answer", "changed", "settled"),
    [
        (None, ["calc.py"], True),
        (None, ["other.py"], False),
        (DiscussionAnswer("", DiscussionState.UNSAID), ["calc.py"], True),
        (DiscussionAnswer("", DiscussionState.OPEN), ["calc.py"], False),
        (DiscussionAnswer("", DiscussionState.DONE), ["other.py"], True),
    ],
)
def test_it_is_settled_by_the_change_or_by_the_agents_word(
    answer: DiscussionAnswer | None, changed: list[str], settled: bool
) -> None:
    assert is_settled(SPOT, answer, changed) == settled


def test_a_discussion_is_counted_once_and_named_by_its_place() -> None:
    again, other = Spot(7, "calc.py", 9, None, ""), Spot(8, "b.py", 4, 2, "")
    assert distinct_places([SPOT, again, other]) == [SPOT, other]
    assert [
        discussion_place(one)
        for one in (SPOT, other, Spot(9, "c.py", None, None, ""), Spot(9, "d.py", 2, None, "", older=True))
    ] == [
        "line 3 of calc.py",
        "lines 2 to 4 of b.py",
        "c.py",
        "line 2 of d.py as it was before",
    ]
