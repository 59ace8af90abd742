"""What the page hides, the agent does not read: a corpus of hidden channels."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.text.blocks import plain
from bot.text.visible import as_written, visible

SECRET = "CANARY"


def tagged(text: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in text)


def selectors(text: str) -> str:
    return "".join(chr(0xE0100 + ord(letter)) for letter in text)


STRUCTURE = [
    f"a <!-- {SECRET} --> b",
    f"a\n<!-- {SECRET}",
    f"a <!-- {SECRET}",
    f"a\n<!--\n\n{SECRET}\n\n-->\nb",
    f"<div>\n<!--\n\n{SECRET}\n\n-->\n</div>",
    f"> <!-- {SECRET}\n\nb",
    f"- <!-- {SECRET} -->",
    f"[//]: # ({SECRET})",
    f'[x]: <> "{SECRET}"',
    f"[comment]: <> ({SECRET})\ntext",
    f"<div hidden>{SECRET}</div> b",
    f"<div hidden>\n\n{SECRET}\n\n</div>\n\nb",
    f"<span style='display: none'>{SECRET}</span> b",
    f"<p aria-hidden='true'>{SECRET}</p>",
    f"<![CDATA[ {SECRET} ]]> b",
    f"<?x {SECRET} ?> b",
    f"<!ELEMENT {SECRET}> b",
    f'<div title="\n\n{SECRET}\n\n">',
]
ONLY_DATA = [
    f"<img src=x alt='{SECRET}'>",
    f'<a title="{SECRET}">t</a>',
    f"<a data-x={SECRET}>t</a>",
    f"![{SECRET}](https://e.x/y)",
    f"![{SECRET}][ref]",
    f'[t](https://e.x "{SECRET}")',
    f"[](https://e.x/{SECRET})",
    f"[t][{SECRET}]\n\n[{SECRET}]: https://e.x",
    f"[t][a\n{SECRET}]\n\n> [A {SECRET}]: https://e.x",
    f"[`t`][ a `{SECRET}`\tb ] b\n\n[a `{SECRET}` b]: https://e.x",
    f"[][{SECRET}]\n\n[{SECRET}]: https://e.x",
    f"|a|\n|-|\n|b|{SECRET}|",
    f"> a | b\n> :- | -\n> c | d | {SECRET}\n> e",
    f"- | a |\n  | :-: |\n  | b \\| c | d | {SECRET}",
    f"<ruby>a<rp>{SECRET}</rp></ruby>",
    f"<script>{SECRET}</script>",
    f"<style>\n{SECRET}\n</style>",
    f"<template>{SECRET}</template>",
    f"<{SECRET}-{SECRET}>b",
    f"```mermaid\n%% {SECRET}\n```",
    f"```math\n\\phantom{{{SECRET}}}\n```",
    f"so $x\\phantom{{{SECRET}}}$ b",
    f"so $`x\\color{{white}}{{{SECRET}}}`$ b",
    f"so\n$$\nx % {SECRET}\n$$\n",
    f"$\\def\\q{{\\phantom}}\\q{{<b> {SECRET}}}$",
    f"words\n\n[^1]: see {SECRET} there\nand {SECRET}",
    f"words[^2]\n\n[^1]: see {SECRET} there\n[^2]: a note",
]
INFO_STRING = f"```python {SECRET}\ncode()\n```"


@pytest.mark.acceptance("B09")
@pytest.mark.parametrize("text", [*STRUCTURE, *ONLY_DATA, INFO_STRING])
def test_hidden_markup_is_not_read(text: str) -> None:
    assert SECRET not in visible(text)


@pytest.mark.acceptance("B09")
@pytest.mark.parametrize("text", [*STRUCTURE, INFO_STRING])
def test_hidden_markup_is_not_part_of_an_instruction(text: str) -> None:
    assert SECRET not in as_written(f"fix it\n\n{text}").text


@pytest.mark.acceptance("B09")
@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        (f"a{tagged(SECRET)}b", "ab"),
        (f"a{selectors(SECRET)}b", "ab"),
        (f"❤️{selectors(SECRET)}", "❤️"),
        ("a\u200bb\u200c\u200d\u2060\ufeffc", "abc"),
        ("a\u202eb\u2066c\u2069\u200f", "abc"),
        ("a\u00adb\u034fc\u115fd\u3164e\uffa0", "abcde"),
        ("a\ufe0fb\ufe01", "ab"),
        ("a\x00\x08b\x7f\x9b", "ab"),
        ("\x1b[31mred\x1b[0m \x1b]8;;http://e.x\x07link\x1b]8;;\x07", "red link"),
        ("a\ud800b", "ab"),
        ("a\ue000b\U000f0000", "ab"),
        ("one\rtwo\u2028three", "one\ntwo\nthree"),
        ("a\u2800b", "a b"),
    ],
)
def test_characters_that_draw_nothing_go(hidden: str, shown: str) -> None:
    assert plain(hidden) == shown
    assert visible(hidden).strip() == shown
    assert as_written(hidden).text.strip() == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain words, «quotes», 漢字, ру́сский, עברית, हिन्दी",
        "👨\u200d👩\u200d👧 👍🏽 ❤️ 1️⃣ ☎︎ 🏳️\u200d🌈",
        "می\u200cخواهم",
        "`<!-- shown -->`",
        "```html\n<!-- shown --> <div hidden>x</div>\n```",
        "\\<!-- shown -->",
        "Map<K extends Comparable, V> and a < b && c > d",
        "see <https://example.com/a?b=c> and <me@example.com>",
        "[the log](https://ci.example.com/1)",
        "tabs\tand  spaces\r\nand lines",
        "$E = mc^2$ and $\\frac{a}{b}\\quad\\text{if } c$, `$\\phantom{x}$`, 5 $ and 100 % of $3\n\n    $x % y$",
        "words[^a]\n\n[^a]: its note",
    ],
)
def test_what_the_page_shows_stays(text: str) -> None:
    assert visible(text) == text
    assert as_written(text).text == text


def test_entities_that_draw_nothing_go_and_others_stay() -> None:
    assert visible("a&#x200b;&zwnj;&#xE0041;b &amp; &lt;tag&gt; &nbsp;") == "ab &amp; &lt;tag&gt; &nbsp;"


def test_an_instruction_may_speak_of_markup() -> None:
    words = 'add <script src=x></script> and List<String>, drop <b>, ![a](b) [c](d "e") <div hidden>'
    assert as_written(words).text == words


def test_prose_in_attributes_of_an_instruction_is_set_apart() -> None:
    found = as_written('use <div class="a b" id=x> here <x do as it says please now>')
    assert found.text == "use <div id=x> here <x>"
    assert found.unseen == ('<div class="a b" id=x>', "<x do as it says please now>")


def test_prose_behind_a_link_of_an_instruction_is_set_apart() -> None:
    found = as_written('see [the log](https://ci.example/1 "and run evil") and [c](d "e")')
    assert found.text == 'see [the log](https://ci.example/1) and [c](d "e")'
    assert found.unseen == ('"and run evil"',)


def test_details_and_tables_keep_their_words() -> None:
    assert visible("<details><summary>Log</summary>\n\nwords\n</details>").split() == ["Log", "words"]


@given(st.text(max_size=200))
def test_nothing_invisible_is_left(text: str) -> None:
    once = plain(text)
    assert not any(0xE0000 <= ord(letter) <= 0xE0FFF or letter in "\u202e\u2066\u200b\ufeff\x1b\x00" for letter in once)


_LETTERS = st.characters(
    categories=("L", "N", "P", "Zs"), exclude_characters="<&[]`\\>#*_~-+=|!:\u3164\u115f\u1160\uffa0"
)


@given(st.text(alphabet=_LETTERS, min_size=1, max_size=200))
def test_ordinary_words_are_untouched(text: str) -> None:
    assert as_written("x " + text).text == "x " + text


@pytest.mark.acceptance("B11")
@pytest.mark.parametrize(
    "unit",
    [
        '<a b="',
        "<div>\n<a b='",
        "![",
        "![[a",
        '[a](b "',
        "&#x",
        "a\u200b",
        "<div hidden>x\n",
        "漢",
        "[](",
        "$\\",
        "$$a\n",
        "$`",
        "[^a]: b\n",
        "[^",
        "`<a",
        "]( ",
        "<a \n",
    ],
)
def test_long_texts_take_linear_time(unit: str) -> None:
    text = (unit * (65_000 // len(unit)))[:65_000]
    began = time.process_time()
    visible(text)
    as_written(text)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    "text",
    [
        "a[i][j] stays, and so does [x][y]\n\n[z]: https://e.x",
        "|a|b|\n|-|-|\n|c|\n|d|e|\n|f \\| g|h|",
        "no table | here | at all\n\n```\n|a|\n|-|\n|b|c|\n```",
        "```\nm[i][z]\n```\n",
    ],
)
def test_what_is_no_hidden_name_and_no_further_cell_stays(text: str) -> None:
    assert visible(text).strip() == text.replace("\n\n[z]: https://e.x", "").strip()


@pytest.mark.parametrize("text", ["|a|\n|-|\n" + "|b|c|\n" * 20_000, "][" * 100_000, "[a]: b\n\n" + "[x][a" * 50_000])
def test_rows_and_names_by_the_thousand_take_linear_time(text: str) -> None:
    began = time.process_time()
    visible(text)
    assert time.process_time() - began < 20
