"""The sentences about checks: names of others cannot leave their place in them."""

from __future__ import annotations

from bot.models import Outcome
from bot.words import on_ci


def test_names_of_checks_stay_code_and_are_bounded() -> None:
    names = ["a`b\n# c", "x" * 300, *(f"job {n}" for n in range(30))]
    words = on_ci.listed(names)
    assert "\n" not in words and "a?b # c" in words and words.endswith("and 12 more")
    assert len(words) < 2_500


def test_a_hand_over_names_attempts_commits_and_what_to_do() -> None:
    tried = [("1" * 40, ["test"], Outcome.PUSHED, "2" * 40), ("2" * 40, ["test"], Outcome.NO_CHANGE, None)]
    words = on_ci.handed_over(tried, [("test", "https://x.test/1")], ["lint"], ["the log of `test`"], "/bot")
    assert "| `111111111111` | `test` | pushed 222222222222 |" in words and "| no change |" in words
    assert "- `test` ([its page](https://x.test/1))" in words and "red on the base too: `lint`" in words
    assert "`/bot fix ci`" in words and "not read: the log of `test`" in words
