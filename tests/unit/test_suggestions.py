"""Changes told as suggestions: applied at their lines, all together make the very file that was wanted."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent import diffs
from bot.agent.diffs import FileDiff, Suggested

LINES = st.lists(
    st.sampled_from(["a", "b", "", "  c", "@@ -1 +1 @@", "--- x", "+++ y", "diff --git a/x b/x"]), max_size=12
)
HEAD = "diff --git a/x b/x\nindex 1..2 100644\n"


def patch(old: list[str], new: list[str]) -> str:
    rows = difflib.unified_diff([f"{one}\n" for one in old], [f"{one}\n" for one in new], "a/x", "b/x", n=3)
    return HEAD + "".join(rows)


def shown(*hunks: tuple[int, int]) -> dict[str, FileDiff]:
    return {"x": FileDiff("", ("x",), "x", hunks)}


def applied(old: list[str], found: list[Suggested]) -> list[str]:
    """As clicks do it, from the end backwards."""
    lines = list(old)
    for one in sorted(found, key=lambda each: each.first, reverse=True):
        lines[one.first - 1 : one.last] = one.lines
    return lines


@given(old=LINES.filter(bool), new=LINES)
def test_all_of_them_applied_make_the_new_file(old: list[str], new: list[str]) -> None:
    found, many = diffs.suggestions_for(patch(old, new), shown((1, 1000)))
    if old == new:
        return
    assert len(found) == many and applied(old, found) == new


def test_what_is_put_in_takes_the_place_of_its_neighbour_and_of_itself() -> None:
    found, _ = diffs.suggestions_for(patch(["a", "b"], ["a", "c", "b"]), shown((1, 2)))
    assert found == [Suggested("x", 1, 1, ("a", "c"))]
    found, _ = diffs.suggestions_for(patch(["a", "b"], ["c", "a", "b"]), shown((1, 2)))
    assert found == [Suggested("x", 1, 1, ("c", "a"))]


def test_only_what_the_diff_shows_fits() -> None:
    old = [str(n) for n in range(40)]
    new = [*old[:5], "five", *old[6:30], "thirty", *old[31:]]
    found, many = diffs.suggestions_for(patch(old, new), shown((1, 10)))
    assert [(one.first, one.lines) for one in found] == [(6, ("five",))] and many == 2
    assert diffs.suggestions_for(patch(old, new), {}) == ([], 2)


@pytest.mark.parametrize(
    "head",
    ["new file mode 100644", "deleted file mode 100644", "old mode 100644\nnew mode 100755", "Binary files differ"],
)
def test_what_is_no_change_of_lines_fits_nowhere(head: str) -> None:
    text = f"diff --git a/x b/x\n{head}\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    assert diffs.suggestions_for(text, shown((1, 9))) == ([], 1)


@pytest.mark.parametrize(
    "change", ["-a\n+b\r", "-a\n\\ No newline at end of file\n+b", "-a\n+b\n\\ No newline at end of file"]
)
def test_line_ends_that_a_suggestion_cannot_tell_fit_nowhere(change: str) -> None:
    text = f"{HEAD}--- a/x\n+++ b/x\n@@ -1 +1 @@\n{change}\n"
    assert diffs.suggestions_for(text, shown((1, 9))) == ([], 1)


def test_too_many_are_none() -> None:
    old = [str(n) for n in range(400)]
    new = [f"{one}!" if n % 10 == 0 else one for n, one in enumerate(old)]
    assert diffs.suggestions_for(patch(old, new), shown((1, 400))) == ([], 40)
