"""What others wrote stays without effect where it stands in a page of ours: in a quote, below a list, within a line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from bot.live import render
from bot.models import Outcome
from bot.outbound import neutralise
from bot.simulation.github import tasks
from bot.text.scanner import scan
from sandbox.agents.events import AgentSaid
from tests.unit.test_live_comment import done, fold, view
from tests.unit.test_neutralise import assert_inert, fragments, live

CODE = (
    "\n\n```\n- [ ] @bob",
    "~~~\n- [x] a\n~~~",
    "````\n- [ ] a\n````",
    "- ```\n  - [ ] a\n  ```",
    "```c++\n- [ ] a\n```",
)
ACTS = ("- [x] **Stop** · `/claude stop`", "@bob", "Fixes #1", "<details open>", "owner/repo#1", "![a](https://e.x/y)")
INDENTS = ("\t", " \t", "  \t", "   \t", "    ", "> \t", "-\t\t", "1.\t\t", "10.\t```\n\t", "- ```\n\t", "a\n\n\t")


@pytest.mark.review("security-9")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("indent", INDENTS)
def test_nothing_comes_to_life_behind_a_mark_of_quotation(indent: str, act: str) -> None:
    out = neutralise.whole(neutralise.quoted(f"{indent}{act}"))
    assert_inert(out)
    assert not tasks.shown(out)
    assert all(line.startswith(">") for line in out.split("\n"))


@pytest.mark.review("security-9")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("indent", INDENTS)
def test_nothing_comes_to_life_in_the_live_comment(indent: str, act: str) -> None:
    said = f"{indent}{act}"
    for page in (done(Outcome.NO_CHANGE, agent_result=said), render.comment(view(fold(AgentSaid(said, None))))):
        body = neutralise.whole(page)
        words = body.partition("**The agent says:**\n\n")[2].partition("\n\n")[0]
        assert words.startswith("> ")
        assert_inert(words)
        assert not tasks.lines(words)


@pytest.mark.review("security-9")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("indent", INDENTS)
def test_nothing_comes_to_life_below_a_list(indent: str, act: str) -> None:
    """What is code by its indentation alone would be words of the last item."""
    for above in ("- ours", "1. ours", "> ours"):
        out = neutralise.whole(f"{above}\n\n{neutralise.inert(f'{indent}{act}')}")
        assert_inert(out)
        assert not tasks.shown(out)


@pytest.mark.review("security-9")
@pytest.mark.parametrize("text", ["``` @bob", "~~~\n@bob\n~~~", "# @bob", "- [x] a", "    @bob", "```", "a\n```\nb"])
def test_words_within_a_line_open_nothing(text: str) -> None:
    page = f"> **alice**: {neutralise.line(text)}\n\nafter @<!-- -->bob"
    assert page.count("\n") == 2
    assert not any(leaf.runs_on for leaf in scan(page))
    assert_inert(neutralise.whole(page))
    assert not tasks.lines(page)


@pytest.mark.parametrize("text", CODE)
def test_a_box_in_code_moves_no_click_to_another_line(text: str) -> None:
    for out in (neutralise.quoted(text), neutralise.whole(neutralise.inert(text)), neutralise.whole(text)):
        assert not tasks.lines(out)
        assert not tasks.shown(out)


@settings(max_examples=200, deadline=None)
@given(fragments)
def test_any_text_stays_inert_where_it_is_quoted(parts: list[str]) -> None:
    text = "".join(parts)
    quoted = neutralise.quoted(text)
    assert_inert(quoted)
    assert not tasks.lines(quoted)
    assert all(line.startswith(">") for line in quoted.split("\n"))
    assert "after" in live(f"{quoted}\n\nafter")


@settings(max_examples=200, deadline=None)
@given(fragments)
def test_no_text_leaves_a_fence_open(parts: list[str]) -> None:
    text = "".join(parts)
    for out in (neutralise.inert(text), neutralise.whole(text), neutralise.quoted(text)):
        assert not any(leaf.runs_on for leaf in scan(out)), out
