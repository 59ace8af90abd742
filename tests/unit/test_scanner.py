"""The one scanner of markdown divides a text as GitHub does, in time that grows no faster than the text.

`tests/data/markdown/blocks.json` holds texts and what cmark-gfm, GitHub's own engine, makes of the words in them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.text.markup import BlockMeaning, blocks
from bot.text.scanner import DEEPEST, MOST_CHARACTERS, MOST_LINES, BlockForm, content, scan

CORPUS = json.loads((Path(__file__).parents[1] / "data/markdown/blocks.json").read_text(encoding="utf-8"))
WORD = re.compile(r"w\d+x")
SEEN = {
    BlockForm.FENCE: "code",
    BlockForm.CODE: "code",
    BlockForm.ROW: "row",
    BlockForm.HEADING: "head",
    BlockForm.PARAGRAPH: "p",
}
"""The rest is drawn by nobody, or is raw HTML."""
LIBRARY = MarkdownIt("commonmark", {"maxNesting": 200})
LIBRARY.core.ruler.enableOnly(["normalize", "block"])


def scanned(text: str) -> dict[str, str]:
    """In what kind of block each of its words stands."""
    found: dict[str, str] = {}
    for leaf in scan(text):
        quoted = "+q" if leaf.quoted else ""
        for word in WORD.findall((leaf.info.split() or [""])[0]):
            found.setdefault(word, f"info{quoted}")
        for word in WORD.findall(content(text, leaf)) if leaf.form in SEEN else ():
            found.setdefault(word, f"{SEEN[leaf.form]}{quoted}")
    return found


def parsed(text: str) -> dict[str, str]:
    """The same by the library."""
    found: dict[str, str] = {}
    quotes, kind = 0, "p"
    for token in LIBRARY.parse(text):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        kind = {"heading_open": "head", "heading_close": "p"}.get(token.type, kind)
        quoted = "+q" * (quotes > 0)
        for word in WORD.findall((token.info.split() or [""])[0]):
            found.setdefault(word, f"info{quoted}")
        named = {"fence": "code", "code_block": "code", "inline": kind}.get(token.type)
        for word in WORD.findall(token.content) if named else ():
            found.setdefault(word, f"{named}{quoted}")
    return found


@pytest.mark.review("security-1")
def test_words_stand_where_githubs_engine_has_them() -> None:
    assert len(CORPUS) > 500
    for one in CORPUS:
        found = scanned(one["text"])
        if "[^" in one["text"]:  # a note is drawn at the end of the page, out of its quote
            found = {word: kind.removesuffix("+q") for word, kind in found.items()}
        assert found == one["words"], one["text"]


_AROUND = st.lists(st.sampled_from(["> ", ">", "- ", "1. ", "2) ", "* ", "  "]), max_size=3).map("".join)
_WITHIN = st.sampled_from(
    [
        *("", "", "# ", "```", "~~~", "````", "<div>", "<!--", "-->", "<pre>", "<?", "?>", "---", "===", "***", "--"),
        *("-", "=", "\\", "`", "- - -", "'", "+", "|"),
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(_AROUND, _WITHIN, st.booleans()), max_size=9))
def test_it_divides_as_the_library_does(lines: list[tuple[str, str, bool]]) -> None:
    """But for tabs and four spaces, of which the library makes something else than GitHub within quotes, and for what
    the corpus has besides: tables, definitions, notes, tags that stand alone."""
    text = "\n".join(f"{around}{sign}{f' w{at}x' * word}" for at, (around, sign, word) in enumerate(lines))
    assume("    " not in text)
    assert scanned(text) == parsed(text)


@given(st.text(alphabet="> \n\r\t-1.`~#|:[]()<a!", max_size=60))
def test_blocks_cover_the_text_without_gaps(text: str) -> None:
    found = blocks(text)
    assert "".join(text[one.start : one.end] for one in found) == text


@pytest.mark.review("security-1")
@pytest.mark.parametrize("marks", ["> ", "- ", ">", "1. ", "> - "])
def test_what_is_nested_deeper_than_anybody_writes_is_not_looked_into(marks: str) -> None:
    levels = marks.replace(" ", "").replace(".", "")
    within = marks * (DEEPEST // len(levels))
    assert [leaf.form for leaf in scan(f"{within}a")] == [BlockForm.PARAGRAPH]
    assert [leaf.form for leaf in scan(f"{within}{marks}a\nb")] == [BlockForm.DEEP]
    assert blocks(f"{within}{marks}a\n/claude fix")[-1].kind is BlockMeaning.UNSEEN


@pytest.mark.review("security-1")
def test_so_many_lines_are_read_and_no_more() -> None:
    text = "a\n" * MOST_LINES
    assert {leaf.form for leaf in scan(text)} == {BlockForm.PARAGRAPH}
    *before, last = scan(text + "b")
    assert (last.form, last.first, {leaf.form for leaf in before}) == (
        BlockForm.DEEP,
        MOST_LINES,
        {BlockForm.PARAGRAPH},
    )


@pytest.mark.review("security-1")
def test_so_many_characters_are_read_and_no_more() -> None:
    assert {leaf.form for leaf in scan("a" * MOST_CHARACTERS)} == {BlockForm.PARAGRAPH}
    assert [leaf.form for leaf in scan("a" * MOST_CHARACTERS + "b")] == [BlockForm.DEEP]


def test_a_fence_that_runs_on_is_known() -> None:
    assert [leaf.runs_on for leaf in scan("```\na\n")] == [True]
    assert [leaf.runs_on for leaf in scan("```\na\n```\n")] == [False]
    assert [leaf.runs_on for leaf in scan("> ```\n\n")] == [False]
