"""Three hundred comments, each with what must come of it: nothing costs money that a person would not call work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bot import commands
from bot.commands import THANKS
from bot.errors import CommandError
from bot.handlers.commands import run
from bot.handlers.table import TABLE
from bot.kinds import TRAITS
from bot.words import on_approvals

GROUPS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "comments.yml").read_text(encoding="utf-8")
)
CASES = [(str(said), str(group["comes"])) for group in GROUPS for said in group["said"]]
OURS = {"word": "/claude", "app_slug": "forgehand"}
PAID = {
    one.word for one in TABLE if one.word.replace(" ", "_") in TRAITS and not TRAITS[one.word.replace(" ", "_")].is_free
}


def comes_of(body: str) -> str:
    """Decide as the handlers do, on a thread without turns."""
    try:
        command = commands.parse(body, TABLE, **OURS)
    except CommandError as refused:
        return f"refused: {refused}"
    if command is None:
        return "near miss" if commands.misaddressed(body, **OURS) else "ignored"
    if command.word == run.FEATURE.word and run.is_without_question(command):
        return f"refused: {on_approvals.nothing_waits('/claude')}"
    return f"{'work' if command.word in {*PAID, 'continue', 'fix findings'} else 'answer'}: {command.word}"


@pytest.mark.parametrize(("body", "comes"), CASES, ids=[f"{at}" for at in range(len(CASES))])
def test_corpus(body: str, comes: str) -> None:
    found = comes_of(body)
    expected, _, words = comes.partition("refused: ")
    assert (found.startswith("refused: ") and words in found) if words else found == expected, (body, found)


def test_the_corpus_is_large_and_has_no_comment_twice() -> None:
    assert len(CASES) >= 300
    assert len({body for body, _ in CASES}) == len(CASES)


def test_nothing_that_costs_is_missing_from_the_decision() -> None:
    assert {"run", "ask", "plan", "review", "resolve", "fix ci"} == PAID
    assert THANKS not in {one.word for one in TABLE}
