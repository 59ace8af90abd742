"""Whatever a comment holds: words stay as written, commands stand where the page shows them, and time is linear."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.errors import CommandError
from tests.unit.parsed import parse


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=300))
def test_the_words_are_kept_as_written(text: str) -> None:
    prompt = "fix " + text.replace("/claude", "").replace("--", "")
    command = parse("/claude " + prompt)
    assert command is not None and command.word == "run"
    assert command.prompt == prompt.rstrip()


_FRAGMENTS = st.sampled_from(
    [
        "/claude fix\n",
        "\n",
        "> ",
        "```",
        "`",
        "<!--",
        "-->",
        "    ",
        "- ",
        "text ",
        "\r\n",
        "<pre>",
        "</pre>",
        "1. ",
        "~~~\n",
    ]
)


@given(st.lists(_FRAGMENTS, max_size=14).map("".join))
def test_what_runs_is_a_paragraph_of_the_author_for_markdown_too(body: str) -> None:
    """Judged by the whole parser, inline rules included, instead of by our own inline scanner."""
    try:
        command = parse(body)
    except CommandError:
        return
    if command is None:
        return
    depth, shown = 0, False
    for token in MarkdownIt("commonmark").parse(body):
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == "inline" and depth == 0:
            texts = [child.content for child in token.children or [] if child.type == "text"]
            shown = shown or any("/claude" in text for text in texts)
        shown = shown or (token.type == "html_block" and depth == 0 and "/claude" in token.content)
    assert shown


_AROUND = [
    ("<!--", "-->"),
    ("`", "`"),
    ("``", "``"),
    ("<pre>", "</pre>"),
    ("<code>", "</code>"),
    ("```", "```"),
    ("~~~", "~~~"),
]
_WORDS = st.text(alphabet="ab ,.", max_size=12)


@given(st.sampled_from(_AROUND), st.lists(_WORDS, min_size=1, max_size=3), _WORDS)
def test_nothing_within_code_or_comments_is_a_command(marks: tuple[str, str], lines: list[str], after: str) -> None:
    opening, closing = marks
    separator = "\n" if len(opening) == 3 and opening[0] in "`~" else ""
    inside = "\n".join(line.strip() or "x" for line in lines)
    assert (
        parse(f"x\n\n{opening}{separator}{inside}\n/claude fix\n{inside}{separator}{closing}\n\n{after.strip()}")
        is None
    )


@given(st.text(max_size=200), st.sampled_from(["", "/claude ", "/claude --budget ", "/claude continue +", "@forge "]))
def test_nothing_but_a_command_error_comes_out(text: str, lead: str) -> None:
    try:
        parse(lead + text)
    except CommandError as error:
        assert str(error)


@pytest.mark.acceptance("B05")
@pytest.mark.parametrize(
    "body",
    [
        "/claude " + "x" * 65_000,
        "/claude " + " " * 65_000,
        "/claude " + "\n" * 65_000,
        "/claude " + "`" * 65_000,
        "/claude\n" + "`a``b" * 13_000,
        "/claude\n" + '<a b="' * 11_000,
        "/claude\n" + "<a" * 32_000,
        "/claude\n" + "> " * 32_000,
        "/claude\n" + "<!--" * 16_000,
        "/claude\n" + "On 1\n" * 13_000,
        "/claude\n" + "[" * 65_000,
        "- " * 32_000 + "\n/claude x",
        "/claude x\n" * 6_500,
    ],
    ids=lambda body: repr(body[:20]),
)
def test_long_comments_take_linear_time(body: str) -> None:
    began = time.process_time()
    with contextlib.suppress(CommandError):
        parse(body)
    assert time.process_time() - began < 2.0
