from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.agents.base import clean, first_lines, one_line, shorten, storable
from sandbox.agents.claude_tools import title


@pytest.mark.acceptance("D05")
@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;c2VjcmV0\x07", ""),
        ("\x9b31mred", "red"),
        ("10%\r50%\r100%", "100%"),
        ("done\r\nnext\r\n", "done\nnext\n"),
        ("abc\x08\x08\x07", "abc"),
        ("tab\tstays\nline too", "tab\tstays\nline too"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("unfinished \x1b[", "unfinished "),
        ("nul \0", "nul \ufffd"),
        ("half \ud800", "half \ufffd"),
    ],
)
def test_clean(printed: str, shown: str) -> None:
    assert clean(printed) == shown


def test_one_line_hides_nothing() -> None:
    assert one_line("a\n b\t\tc") == "a b c"
    assert one_line("a\u202eb\u200bc\U000e0041d") == "abcd"
    assert one_line("x" * 500) == "x" * 159 + "…"


def test_first_lines() -> None:
    assert first_lines("\n".join(f"line {n}" for n in range(100)), lines=2) == "line 0\nline 1"
    assert len(first_lines("x" * 100_000)) == 1200


@settings(deadline=None)
@given(st.text(st.characters()), st.integers(1, 50))
def test_anything_can_be_stored_and_is_bounded(text: str, limit: int) -> None:
    for shown in (storable(text), clean(text), one_line(text, limit), first_lines(text, limit=limit)):
        assert "\0" not in shown
        shown.encode()
    assert len(shorten(text, limit)) <= limit
    assert len(one_line(text, limit)) <= limit


@pytest.mark.parametrize(
    ("tool", "tool_input", "words"),
    [
        ("Bash", {"command": "pytest -q", "description": "Run"}, "pytest -q"),
        ("Read", {"file_path": "/work/src/calc.py"}, "src/calc.py"),
        ("Read", {"file_path": "/workshop/x"}, "/workshop/x"),
        ("Edit", {"file_path": 7}, ""),
        ("WebFetch", {"url": "https://example.test/", "prompt": "p"}, "https://example.test/"),
        ("Agent", {"description": "Read the code", "prompt": "long"}, "Read the code"),
        ("TaskUpdate", {"taskId": "3", "status": "completed"}, "#3 completed"),
        ("TodoWrite", {"todos": [{}, {}]}, "2 items"),
        ("TodoWrite", {"todos": "?"}, "0 items"),
        ("AskUserQuestion", {"questions": [{"question": "Which?"}]}, "Which?"),
        ("AskUserQuestion", {"questions": [7]}, ""),
        ("mcp__x__comment", {"n": 1, "body": "words"}, "words"),
        ("Bash", {}, ""),
    ],
)
def test_titles(tool: str, tool_input: dict[str, object], words: str) -> None:
    assert title(tool, tool_input, "/work") == words
