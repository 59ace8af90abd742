"""The grammar of commands: what is one, what is none, and what is told to the person."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot import commands
from bot.commands import (
    Approve,
    Ask,
    Command,
    Continue,
    Cost,
    Deny,
    FixCi,
    Help,
    Plan,
    Resolve,
    Retry,
    Review,
    Run,
    Status,
    Stop,
    StopCi,
    Undo,
    Why,
)
from bot.commands.options import Options
from bot.errors import CommandError


def parse(body: str) -> Command | None:
    return commands.parse(body, app_slug="forge")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("/claude fix this", Run("fix this")),
        ("   /claude fix this", Run("fix this")),
        ("@forge fix this", Run("fix this")),
        ("/claude\tfix", Run("fix")),
        ("/claude fix ci", FixCi("")),
        ("/claude fix CI keep the tests\nas they are", FixCi("keep the tests\nas they are")),
        ("/claude fix ci --budget 2", FixCi("", Options(budget_usd=2))),
        ("/claude fix ci.yml", Run("fix ci.yml")),
        ("/claude fix cities", Run("fix cities")),
        ("/claude stop ci", StopCi()),
        ("/claude stop ci\n\nIt is mine.", StopCi()),
        ("/claude stop ci from running twice", Run("stop ci from running twice")),
        ("/claude", Run("")),
        ("/claude\n\n    indented(code)\n", Run("    indented(code)")),
        ("Thanks!\r\n/claude fix\r\n\r\nmore\r\n", Run("fix\r\n\r\nmore")),
        ("- item\n/claude go on", Run("go on")),
        ("- ```\n/claude after the fence", Run("after the fence")),
        ("> quoted\n\n/claude fix", Run("fix")),
        ("<details>\n/claude go\n</details>", Run("go\n</details>")),
        ("```\ncode\n```\n/claude fix", Run("fix")),
        ("<!-- note -->\n/claude fix", Run("fix")),
        ("On Monday Bob wrote:\n\n/claude fix", Run("fix")),
        ("On 18 Nov 2026, Bob <b@x.y> wrote:\n> please look\n\n/claude fix", Run("fix")),
        ("/claude ask why?", Ask("why?")),
        ("/claude Ask why?", Ask("why?")),
        ("/claude ask\nwhy?", Ask("why?")),
        ("/claude plan", Plan("")),
        ("/claude plan the move", Plan("the move")),
        ("/claude review", Review("")),
        ("/claude review mind the locks", Review("mind the locks")),
        ("/claude resolve", Resolve("")),
        ("/claude resolve the merge conflicts", Resolve("the merge conflicts")),
        ("/claude resolve the memory leak", Run("resolve the memory leak")),
        ("/claude continue", Continue("")),
        ("/claude continue +3", Continue("", 3.0)),
        ("/claude continue +$2.50 with tests", Continue("with tests", 2.5)),
        ("/claude continue with tests", Continue("with tests")),
        ("/claude approve", Approve()),
        ("/claude approve\n\n1. this\n2. that", Approve("1. this\n2. that")),
        ("/claude approve the open requests", Run("approve the open requests")),
        ("/claude approve ab12cd34-2", Approve(approval="ab12cd34-2")),
        ("/claude approve ab12cd34-2-11 session", Approve(approval="ab12cd34-2-11", scope="session")),
        ("/claude approve once", Approve()),
        ("/claude approve 0123456789ab", Approve(approval="0123456789ab")),
        (f"/claude approve {'c0ffee' * 6}beef", Approve(approval=f"{'c0ffee' * 6}beef")),
        ("/claude deny 0123456789ab ", Deny(approval="0123456789ab")),
        ("/claude approve\n\n> 1. this\n>\n> 2. that", Approve("1. this\n\n2. that")),
        ("/claude approve\n\n-- \nSent from my phone", Approve()),
        ("/claude approve session cookies", Run("approve session cookies")),
        ("/claude approve `0123456789AB`", Approve(approval="0123456789ab")),
        ("/claude deny ab12cd34-2-fork", Deny(approval="ab12cd34-2-fork")),
        ("/claude deny duplicate-requests", Run("deny duplicate-requests")),
        ("/claude stop ci", StopCi()),
        ("/claude stop CI\nthanks", StopCi()),
        ("/claude stop ci from running twice", Run("stop ci from running twice")),
        ("/claude fix ci", FixCi("")),
        ("/claude fix cli", Run("fix cli")),
        ("/claude fix the ci, please", Run("fix the ci, please")),
        ("/claude resolve this", Run("resolve this")),
        ("/claude stop it from crashing", Run("stop it from crashing")),
        ("/claude deny ab12cd34-2-1\nnot now", Deny("not now", "ab12cd34-2-1")),
        ("/claude deny session", Run("deny session")),
        ("/claude --queue and then this", Run("and then this", Options(queue=True))),
        ("/claude and then this --queue", Run("and then this", Options(queue=True))),
        ("/claude --queue --budget 3 this", Run("this", Options(queue=True, budget_usd=3))),
        ("/claude --new-branch this", Run("this", Options(new_branch=True))),
        ("/claude this --budget 3 --new-branch", Run("this", Options(new_branch=True, budget_usd=3))),
        ("/claude add a --queue option to the CLI", Run("add a --queue option to the CLI")),
        ("/claude deny", Deny()),
        ("/claude deny everything", Run("deny everything")),
        ("/claude stop", Stop()),
        ("/claude STOP", Stop()),
        ("/claude stop\n\nthis goes wrong", Stop()),
        ("/claude stop using globals", Run("stop using globals")),
        ("/claude status", Status()),
        ("/claude status\n\n-- \nSent from my phone", Status()),
        ("/claude status\r\n\r\nOn Tue, Nov 18, 2026 at 3:00 PM, Bob <b@x.y> wrote:\r\n> hm", Status()),
        ("/claude status codes are wrong", Run("status codes are wrong")),
        ("/claude status\nis wrong", Run("status\nis wrong")),
        ("/claude retry", Retry()),
        ("/claude retry the request on 503", Run("retry the request on 503")),
        ("/claude undo", Undo()),
        ("/claude why", Why()),
        ("/claude cost", Cost()),
        ("/claude help", Help()),
        ("/claude --help", Help()),
        ("/claude help me with this", Run("help me with this")),
        ("/claude fix", Run("fix")),
        ("/claude improve", Run("improve")),
        ("/claude add a --model flag to the CLI", Run("add a --model flag to the CLI")),
        ("/claude rename --turns to --steps", Run("rename --turns to --steps")),
        ("/claude document `--budget 5`", Run("document `--budget 5`")),
    ],
)
def test_what_is_a_command(body: str, expected: Command) -> None:
    assert parse(body) == expected


@pytest.mark.acceptance("B05")
@pytest.mark.parametrize(
    "body",
    [
        "",
        "please /claude fix",
        "x /claude fix",
        "    /claude fix",
        "\t/claude fix",
        "/claudette fix",
        "/claude-fix",
        "/claude: fix",
        "/CLAUDE fix",
        "/Claude fix",
        "／claude fix",
        "/cla\u200bude fix",
        "\u200b/claude fix",
        "/claude\u200b fix",
        "/сlaude fix",  # the first letter is Cyrillic
        "//claude fix",
        "\\/claude fix",
        "- /claude fix",
        "# /claude fix",
        "| /claude fix |",
        "@forge-two fix",
        "@forge[bot] fix",
        "@Forge fix",
        "> /claude fix",
        ">/claude fix",
        "> quoted\n/claude lazily inside the quote",
        "> - quoted\n>\n> /claude fix",
        "`a\n/claude fix`",
        "``\n/claude fix\n``",
        "```\n/claude fix\n```",
        "```\n/claude fix",
        "~~~~\n~~~\n/claude fix\n~~~~",
        "````\n```\n/claude fix\n````",
        "- ```\n  /claude fix",
        "1. a\n   ```sh\n   /claude fix\n   ```",
        "text\n\n    /claude fix",
        "<!--\n/claude fix\n-->",
        "<!--\n\n/claude fix\n\n-->",
        "<!--\n/claude fix",
        "words <!-- and\n/claude fix\n-->",
        "words <!-- unclosed\n\n/claude fix",
        "<div>\n<!--\n\n/claude fix",
        '<div title="\n\n/claude fix',
        "<pre>\n/claude fix\n</pre>",
        "<pre>\n\n/claude fix\n\n</pre>",
        "<blockquote>\n\n/claude fix\n\n</blockquote>",
        "<code>\n/claude fix\n</code>",
        "<![CDATA[\n/claude fix\n]]>",
        "<?php\n/claude fix\n?>",
        "[//]: # (\n/claude fix)",
        "On Tue, Nov 18, 2026 at 3:00 PM, Bob <b@x.y> wrote:\n/claude fix",
        "Yes.\r\n\r\nOn Tue, Nov 18, 2026,\r\nBob <b@x.y> wrote:\r\n\r\n/claude fix",
        "-----Original Message-----\n/claude fix",
        "From: Bob\nSent: Tuesday\n\n/claude fix",
        "Am 18.11.2026 um 15:00 schrieb Bob:\n/claude fix",
        "—\nReply to this email directly, view it on GitHub\n/claude fix",
    ],
)
def test_what_is_none(body: str) -> None:
    assert parse(body) is None


@pytest.mark.parametrize(
    ("body", "options", "prompt"),
    [
        ("/claude --budget 5 fix", Options(budget_usd=5), "fix"),
        ("/claude --budget=$0.50 fix", Options(budget_usd=0.5), "fix"),
        ("/claude fix --budget 5", Options(budget_usd=5), "fix"),
        ("/claude fix —budget 5", Options(budget_usd=5), "fix"),
        ("/claude fix --budget 5\nand more", Options(budget_usd=5), "fix\nand more"),
        ("/claude --timeout 30m fix", Options(timeout_seconds=1800), "fix"),
        ("/claude --timeout 90s fix", Options(timeout_seconds=90), "fix"),
        ("/claude --timeout 1h30m fix", Options(timeout_seconds=5400), "fix"),
        ("/claude --timeout 45 fix", Options(timeout_seconds=2700), "fix"),
        ("/claude --base release/2.x fix", Options(base="release/2.x"), "fix"),
        ("/claude --turns 20 fix", Options(turns=20), "fix"),
        ("/claude --model claude-opus-5-5 fix", Options(model="claude-opus-5-5"), "fix"),
        ("/claude fix --model opus --turns 3", Options(model="opus", turns=3), "fix"),
        ("/claude --turns 3 fix --model opus", Options(model="opus", turns=3), "fix"),
        ("/claude --turns 3\nfix", Options(turns=3), "fix"),
    ],
)
def test_options(body: str, options: Options, prompt: str) -> None:
    assert parse(body) == Run(prompt, options)


def test_options_around_a_verb() -> None:
    assert parse("/claude --turns 3 ask --budget 2 how? --model opus") == Ask(
        "how?", Options(model="opus", budget_usd=2, turns=3)
    )
    assert parse("/claude retry --budget 8") == Retry(Options(budget_usd=8))
    assert parse("/claude continue --turns 4 on") == Continue("on", None, Options(turns=4))
    assert parse("/claude continue +3 --turns 4 on") == Continue("on", 3.0, Options(turns=4))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("/claude --budget lots fix", "`--budget` takes an amount in US dollars above zero"),
        ("/claude --budget 0 fix", "above zero"),
        ("/claude --budget -1 fix", "above zero"),
        ("/claude --budget nan fix", "above zero"),
        ("/claude --budget 1e9 fix", "above zero"),
        ("/claude --budget", "needs a value"),
        ("/claude fix --budget lots", "put it in backticks"),
        ("/claude --timeout soon fix", "`--timeout` takes a time"),
        ("/claude --timeout 25h fix", "at most a day"),
        ("/claude --timeout 0m fix", "`--timeout` takes a time"),
        ("/claude --turns 0 fix", "whole number"),
        ("/claude --turns 1.5 fix", "whole number"),
        ("/claude --turns ٣ fix", "whole number"),
        ("/claude --base ../x fix", "cannot be the name of a branch"),
        ("/claude --base -x fix", "cannot be the name of a branch"),
        ("/claude --base a.lock fix", "cannot be the name of a branch"),
        ("/claude --model `x` fix", "not the name of a model"),
        ("/claude --modle x fix", "I don't know the option `--modle`"),
        ("/claude --turns 3 --turns 4 fix", "twice"),
        ("/claude stop --budget 3", "takes no options"),
        ("/claude ask", "What is the question?"),
        ("/claude continue +x", "is not an amount"),
        ("/claude stpo", "Did you mean `/claude stop`?"),
        ("/claude stop!", "Did you mean `/claude stop`?"),
        ("/claude hlep", "Did you mean `/claude help`?"),
        ("/claude stauts", "Did you mean `/claude status`?"),
        ("/claude contine", "Did you mean `/claude continue`?"),
        ("/claude aprove", "Did you mean `/claude approve`?"),
        ("/claude cancel", "Did you mean `/claude stop`?"),
        ("/claude stop now", "Did you mean `/claude stop`?"),
        ("/claude please stop it!", "Did you mean `/claude stop`?"),
        ("/claude Stop CI.", "Did you mean `/claude stop ci`?"),
        ("/claude fix CI, please", "Did you mean `/claude fix ci`?"),
        ("/claude approve the plan", "Did you mean `/claude approve`?"),
        ("/claude resolve please", "Did you mean `/claude resolve`?"),
        ("/claude approve ab12cd34", "is not the name of anything"),
        ("/claude approve https://github.com/o/r/commit/0123456789abcdef", "is not the name of anything"),
        ("/claude deny ab12cd34-", "is not the name of anything"),
        ("/claude one\n/claude two", "2 commands"),
        ("/claude one\n\ntext\n@forge two", "2 commands"),
    ],
)
def test_mistakes_are_explained(body: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse(body)
    assert words in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_the_word_is_configurable() -> None:
    assert commands.parse("/bot fix", word="/bot") == Run("fix")
    assert commands.parse("/claude fix", word="/bot") is None
    assert commands.parse("@ fix", app_slug="") is None
    with pytest.raises(CommandError, match=r"`/bot stop`"):
        commands.parse("/bot stpo", word="/bot")


def test_every_command_has_its_line_in_the_one_list() -> None:
    words = {form.word or "run" for form in commands.FORMS}
    kinds = {re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower() for kind in commands.Command.__args__}
    assert words == kinds


def test_an_error_does_not_let_the_comment_break_out() -> None:
    with pytest.raises(CommandError, match=r"^`\?@everyone\?` is not"):
        parse("/claude --model `@everyone` fix")


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=300))
def test_the_words_are_kept_as_written(text: str) -> None:
    prompt = "fix " + text.replace("/claude", "").replace("--", "")
    command = parse("/claude " + prompt)
    assert isinstance(command, Run)
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
