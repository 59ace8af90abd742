"""The titles of pull requests and commits, over last messages in many manners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.proposal import titles
from bot.proposal.titles import TitleSources
from sandbox.agents.claude import Claude
from sandbox.agents.events import AgentEnded

DATA = Path(__file__).parents[1] / "data"
CASES: list[dict[str, Any]] = yaml.safe_load((DATA / "titles.yml").read_text(encoding="utf-8"))
LIMIT = 72


def title_of(case: dict[str, Any]) -> str | None:
    said, words = titles.parted(case["words"] if "words" in case else recorded(case["recorded"]))
    sources = TitleSources(said, words, case.get("thread", ""), case.get("asked", ""), case.get("follows", False))
    return titles.title(sources, LIMIT)


def recorded(name: str) -> str:
    decoder = Claude().decoder()
    lines = (DATA / "streams" / name).read_text(encoding="utf-8").splitlines()
    ends = [event for line in lines for event in decoder.feed(line) if isinstance(event, AgentEnded)]
    return ends[0].text


@pytest.mark.parametrize("case", CASES, ids=[f"{at}-{one['title']}" for at, one in enumerate(CASES)])
def test_titles_as_a_maintainer_would_write_them(case: dict[str, Any]) -> None:
    assert title_of(case) == case["title"]


def test_a_fresh_reader_accepts_all_titles_but_two() -> None:
    assert len(CASES) >= 40
    assert sum(bool(one.get("odd")) for one in CASES) <= 2
