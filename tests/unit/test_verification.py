"""What checks gave: when all counts as verified, and in which words people are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.kinds.shape import AgentReading
from bot.outbound import neutralise
from bot.proposal import verification
from bot.proposal.verification import CheckedCommand, CheckPlace
from bot.sessions.reading import briefing
from tests.unit.turns import TURN

SHA = "0123456789abcdef0123456789abcdef01234567"
GOOD = CheckedCommand("pytest -q", 0, CheckPlace.FRESH, SHA, 1.25)
BAD = replace(GOOD, command="ruff check", exit_code=1, tail="E501 too long")


def words(*checks: CheckedCommand, mended: bool = False) -> str:
    return verification.words(verification.dump(checks), neutralise.block, mended=mended)


@pytest.mark.parametrize(
    ("checks", "verified"),
    [
        ([GOOD], True),
        ([GOOD, replace(GOOD, command="ruff check")], True),
        ([], False),
        ([GOOD, BAD], False),
        ([GOOD, replace(BAD, base_exit_code=1)], False),
        ([GOOD, replace(GOOD, exit_code=None)], False),
        ([replace(GOOD, where=CheckPlace.AGENT)], False),
        ([GOOD, replace(GOOD, sha="f" * 40)], False),
    ],
)
def test_all_is_verified_only_where_all_has_passed_on_the_clean_commit(
    checks: list[CheckedCommand], verified: bool
) -> None:
    assert verification.all_passed(verification.dump(checks), SHA) is verified


def test_rows_of_earlier_versions_are_read() -> None:
    old = [{"command": "pytest", "exit_code": 0, "where": "agent", "tail": "", "seconds": 1.0, "later": 1}]
    assert not verification.all_passed(old)
    assert "- ✓ `pytest` exit 0, 1.0 s" in verification.words(old, str)


def test_each_check_is_told_with_its_end_and_the_output_of_those_that_fail() -> None:
    text = words(GOOD, BAD)
    assert text.startswith(f"Run on a clean checkout of {SHA[:12]} in a fresh sandbox:\n\n- ✓ `pytest -q` exit 0")
    assert "- ✗ `ruff check` exit 1, 1.2 s\n" in text
    assert "The end of what ruff check printed" in text and "E501 too long" in text
    assert "what pytest -q printed" not in text


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (replace(BAD, base_exit_code=2), "(fails on the base too)"),
        (replace(BAD, base_exit_code=0), "(passes on the base)"),
        (replace(BAD, timed_out=True), "(its time was up)"),
        (replace(BAD, exit_code=None), "was not run"),
        (replace(BAD, setup=True), "- ✗ setup `ruff check`"),
        (replace(BAD, where=CheckPlace.AGENT), "in the agent's own sandbox"),
    ],
)
def test_what_is_special_about_a_check_is_said(check: CheckedCommand, told: str) -> None:
    assert told in words(check)


def test_an_output_and_a_command_cannot_leave_their_place() -> None:
    text = words(replace(BAD, command="x</code></summary>`@org` <img>", tail="```\n</details>\n# Verified"))
    folded = text[text.index("<details>") :]
    assert "- ✗ `x</code></summary>?@org? <img>` exit 1" in text
    assert folded.count("</summary>") == 1 and "<img>" not in folded and "@org" not in folded
    assert neutralise.whole(text) == text, "the door has nothing to take from it"
    assert "\n````\n```\n</details>\n# Verified\n````\n\n</details>" in folded


def test_many_and_long_ones_are_bounded() -> None:
    text = words(*[replace(BAD, command=f"check {n}", tail="x" * 8_000) for n in range(100)])
    assert "and 70 more, 70 of them failed" in text
    assert len(text) < 20_000


def test_the_agent_is_told_what_is_its_doing_and_nothing_else() -> None:
    checks = [
        GOOD,
        replace(BAD, tail="evil\nlines", base_exit_code=0),
        replace(BAD, command="make old", base_exit_code=1),
    ]
    turn = TURN.having(AgentReading("the request"), mending=1, resumptions=0, resumed=True)
    text = briefing.turn_prompt(replace(turn, verified=tuple(verification.dump(checks))))
    assert "`ruff check` ended with exit code 1" in text and "> evil\n> lines" in text
    assert "does not fail without your work" in text
    assert "pytest" not in text and "make old" not in text and "the request" not in text


def test_who_has_lost_memory_or_process_is_told_that_too() -> None:
    turn = TURN.having(AgentReading("the request"), mending=1, resumptions=0, verified=tuple(verification.dump([BAD])))
    assert "the request" in briefing.turn_prompt(replace(turn, resumed=False))
    assert not briefing.turn_prompt(turn).startswith(briefing.GO_ON)
    assert briefing.turn_prompt(replace(turn, resumptions=1)).startswith(briefing.GO_ON)
    before = replace(turn, mending=2, resumptions=1)
    assert not briefing.turn_prompt(before).startswith(briefing.GO_ON)
    assert briefing.turn_prompt(TURN.having(AgentReading("the request"), resumptions=1)).startswith(briefing.GO_ON)


def test_a_check_that_has_changed_the_checkout_is_told_beside_it() -> None:
    told = words(replace(GOOD, changed=["a.py", *(f"{n}.py" for n in range(7))]), BAD)
    assert "it changed** `a.py`, `0.py`, `1.py`, `2.py`, `3.py` and 3 more, so later checks did not run on" in told
    assert told.count("it changed") == 1
