"""A text that is too long is cut where nothing stays open, and says that it was cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.outbound.prose import NOTE, size, title, truncate

GITHUB = MarkdownIt("commonmark").enable("table")


@pytest.mark.acceptance("D12")
@pytest.mark.parametrize("length", [65_535, 65_536])
def test_what_fits_is_left_alone(length: int) -> None:
    assert truncate("x" * length) == "x" * length


@pytest.mark.acceptance("D12")
@pytest.mark.parametrize(
    "text",
    ["x" * 200_000, "word " * 40_000, "a line\n" * 30_000, "😀" * 40_000, "\n" * 70_000],
    ids=["word", "words", "lines", "emoji", "empty"],
)
def test_what_is_too_long_is_cut_and_says_so(text: str) -> None:
    cut = truncate(text)
    assert size(cut) <= 65_536
    assert cut.endswith(NOTE)
    assert len(cut) > 30_000 or not text.strip()


def test_a_cut_falls_between_lines() -> None:
    assert truncate("one line\n" * 20, 100).startswith("one line\none line\n")
    assert all(line in ("one line", "", NOTE) for line in truncate("one line\n" * 20, 100).split("\n"))


@pytest.mark.acceptance("D07")
@pytest.mark.parametrize("fence", ["```", "~~~~", "`" * 200])
def test_a_fence_is_closed(fence: str) -> None:
    cut = truncate(f"before\n{fence}py\n" + "code\n" * 500 + f"{fence}\nafter", 1000)
    assert size(cut) <= 1000
    tokens = GITHUB.parse(cut)
    assert next(token for token in tokens if token.type == "fence").content.startswith("code\n")
    assert NOTE.strip("*") in tokens[-2].content


@pytest.mark.acceptance("D07")
def test_folds_are_closed_outside_code_only() -> None:
    text = (
        "<details>\n<summary>a</summary>\n\n<details>\n\n```\n<details>\n"
        + "code\n" * 500
        + "```\n</details></details>"
    )
    cut = truncate(text, 1000)
    assert size(cut) <= 1000
    assert cut.endswith(f"\n```\n\n</details>\n\n</details>\n\n{NOTE}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\n b\t c", "a b c"), ("x" * 256, "x" * 256), ("x" * 257, "x" * 255 + "…"), ("😀" * 200, "😀" * 127 + "…")],
)
def test_a_title_is_one_line(text: str, expected: str) -> None:
    assert title(text) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["```", "~~~", "<details>", "</details>", "> x", "- ```", "😀 word", "", "y" * 90])))
def test_any_text_fits(lines: list[str]) -> None:
    cut = truncate("\n".join(lines * 3), 200)
    assert size(cut) <= 200
