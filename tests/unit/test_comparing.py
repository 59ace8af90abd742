"""Two texts line by line: what is the same, in bounded time."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from bot.web.pages import conversation
from sandbox.agents import comparing
from sandbox.agents.claude_edits import edit

SAME = ["a"] * 1_999
OTHER = ["a", "x"] * 999
SECONDS = 0.25
"""Of computing; a line of the agent's that takes longer than that keeps everybody waiting."""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("a b c", "a b c", [(0, 0, 3)]),
        ("a b c", "a x c", [(0, 0, 1), (2, 2, 1)]),
        ("a b c d e", "a c x e", [(0, 0, 1), (2, 1, 1), (4, 3, 1)]),
        ("a", "", []),
        ("", "", []),
        ("a a", "a a a", [(0, 0, 2)]),
    ],
)
def test_runs_of_the_same_lines(old: str, new: str, found: list[comparing.Block]) -> None:
    assert comparing.blocks(old.split(), new.split()) == found


def test_what_takes_too_long_is_not_compared_in_order_and_counted_all_the_same() -> None:
    assert comparing.blocks(SAME, OTHER) is None
    assert comparing.same(SAME, OTHER) == 999
    numbered = [str(n) for n in range(1_000)]
    assert comparing.same(numbered, numbered[::-1]) == 1_000
    assert comparing.same(numbered, [*numbered[:500], "more", *numbered[500:]]) == 1_000


@pytest.mark.parametrize("lines", [100, 200, 400, 1_999])
@pytest.mark.parametrize(
    ("old", "new"), [(["a"], ["a", "x"]), (["a", "b"], ["a", "x", "b"]), (["a", "b", "c"], ["b", "a", "y"])]
)
def test_no_call_takes_long_whatever_it_edits(old: Sequence[str], new: Sequence[str], lines: int) -> None:
    before, after = "\n".join(list(old) * (lines // len(old))), "\n".join(list(new) * (lines // len(new)))
    given = {"file_path": "a", "edits": [{"old_string": before, "new_string": after}] * 20}
    for look in (lambda: edit("Edit", given, "/"), lambda: conversation.changes(given)):
        began = time.process_time()
        look()
        assert time.process_time() - began < SECONDS


def test_hunks_of_a_diff_show_what_is_around_a_change_and_no_more() -> None:
    old = [str(n) for n in range(30)]
    new = [*old[:5], "new", *old[6:20], *old[21:]]
    shown = conversation.changes({"old_string": "\n".join(old), "new_string": "\n".join(new)})
    assert shown == [
        *(("same", str(n)) for n in (2, 3, 4)),
        ("del", "5"),
        ("add", "new"),
        *(("same", str(n)) for n in (6, 7, 8)),
        ("hunk", "@ -18 +18 @@"),
        *(("same", str(n)) for n in (17, 18, 19)),
        ("del", "20"),
        *(("same", str(n)) for n in (21, 22, 23)),
    ]
