"""What we say: every outcome has its words, and texts of others give no orders in ours."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from bot.commands.options import USAGE
from bot.funds import Funds
from bot.handlers.table import TABLE
from bot.kinds.shape import AgentReading, P, Titled
from bot.models import Outcome, SessionId, TokenUsage, TurnKey, TurnState
from bot.proposal import descriptions
from bot.proposal.descriptions import Extras
from bot.words import endings, on_money, replies


@dataclass(frozen=True)
class Turn:
    prompt: str = "fix the rounding in `total`"
    agent_result: str | None = None
    kind: str = "run"
    mending: int | None = None
    number: int = 12
    requester: str = "alice"
    requester_id: int = 7
    model: str = "claude-sonnet-5-5"
    title: str = ""
    thread_title: str = ""
    key: TurnKey = field(default_factory=lambda: TurnKey(SessionId("abcd1234"), 1))

    def part(self, of: type[P], /) -> P:
        known = {Titled: Titled(self.title), AgentReading: AgentReading(thread_title=self.thread_title)}
        return cast(P, known[of])


@dataclass(frozen=True)
class Delivery:
    reason: str | None
    event: str = "issue_comment"
    action: str | None = "created"
    sender: str | None = "eve"
    state: str = "refused"


@dataclass(frozen=True)
class Cost:
    usd: float = 0.4321
    unconfirmed_usd: float = 0.0
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(1000, 200, 30, 4))


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_headline_and_a_way_on(outcome: Outcome) -> None:
    assert endings.headline(outcome)
    assert "`/bot" in endings.what_next(outcome, "/bot") or outcome is Outcome.PULL_REQUEST
    assert "{" not in endings.what_next(outcome, "/bot")


def test_headlines_differ() -> None:
    assert len({endings.headline(outcome) for outcome in Outcome}) == len(Outcome)


def test_help_is_made_from_the_one_list() -> None:
    text = replies.help_text("/bot", [(form.usage, form.what) for form in TABLE], USAGE.values())
    for form in TABLE:
        assert f"| `/bot {form.usage}` |" in text
    assert "`--budget 5`" in text
    assert "/claude" not in text


def test_short_answers() -> None:
    money = Funds(1.25, 0.0, 5.0, 50.0)
    assert replies.status(TurnState.RUNNING, "working", "2 min", "$0.50", money) == (
        "Running for 2 min, now working; $0.50 spent on this turn so far. The session has spent $1.25 of $5.00."
    )
    assert replies.status(TurnState.QUEUED, "", "3 s", "$0.00", money) == (
        "Queued for 3 s; nothing spent on this turn yet. The session has spent $1.25 of $5.00."
    )


def test_a_login_is_told_as_it_is() -> None:
    refused = Delivery("eve has read access to the repository")
    assert replies.fate(refused, "At noon", str) == (
        "At noon, issue comment created by eve: refused. eve has read access to the repository."
    )
    assert replies.fate(replace(refused, reason="no word"), "At noon", str).endswith(": refused. No word.")


def test_who_asks_more_of_a_spent_session_hears_how_it_goes_on() -> None:
    said = on_money.session_spent(Funds(5.02, 0.0, 5.0, 50.0), "/bot")
    assert "has spent $5.02 of its $5.00" in said and "`/bot continue +3`" in said
    full = on_money.session_spent(Funds(50.02, 0.0, 50.0, 50.0), "/bot")
    assert "a new issue" in full and "continue" not in full
    assert "`/bot continue`" in on_money.cannot_be_raised(Funds(3.0, 0.0, 50.0, 50.0), "/bot")
    assert "a new issue" in on_money.cannot_be_raised(Funds(50.1, 0.0, 50.0, 50.0), "/bot").lower()


def commit_message(turn: Turn, host: str = "users.noreply.github.com") -> str:
    return descriptions.commit_message(turn, noreply_host=host)


def test_a_commit_message() -> None:
    assert commit_message(Turn()) == (
        "Fix the rounding in `total`\n\n"
        "For #12. Asked for in these words:\n\n"
        "fix the rounding in `total`\n\n"
        "Forgehand-Session: abcd1234, turn 1\n"
        "Co-authored-by: alice <7+alice@users.noreply.github.com>"
    )


def test_a_commit_says_what_was_done_and_leaves_answers_to_discussions_where_they_belong() -> None:
    message = commit_message(Turn(agent_result="`total` rounds half up.\n\nD1: Done as you said.\n\nD2 (open): Why?"))
    assert "\n\n`total` rounds half up.\n\nFor #12. Asked for in these words:\n\n" in message
    assert "D1" not in message and "D2" not in message


def test_the_subject_takes_a_title_of_the_agent_but_no_chatter() -> None:
    assert descriptions.title(Turn(agent_result="## Round totals half up\n\nI changed…")) == "Round totals half up"
    assert descriptions.title(Turn(agent_result="I fixed it all.")) == "Fix the rounding in `total`"
    assert descriptions.title(Turn(title="Round half up", thread_title="Totals are wrong")) == "Round half up"
    assert descriptions.title(Turn(prompt="fix this", thread_title="Totals are wrong")) == 'Resolve "Totals are wrong"'
    assert descriptions.title(Turn(prompt="", thread_title="Totals are wrong", kind="fix_ci")) == descriptions.FIXED
    assert descriptions.title(Turn(prompt="")) == "Changes for #12"
    assert descriptions.title(Turn(prompt="<!-- hidden -->\n")) == "Changes for #12"


def test_subjects_are_short() -> None:
    subject = commit_message(Turn(prompt="please change every little word " * 5)).splitlines()[0]
    assert len(subject) <= 72
    assert subject.endswith("…")


@pytest.mark.acceptance("D09")
@pytest.mark.acceptance("D10")
@pytest.mark.parametrize(
    "hostile",
    [
        "Fixes #1",
        "closes: #2",
        "Resolves octo/calc#3",
        "fix GH-4",
        "Fixes https://github.com/octo/calc/issues/3",
        "[skip ci]",
        "[ci skip] now",
        "skip-checks: true",
        "Co-authored-by: Mallory <mallory>",
        "Signed-off-by: Mallory <mallory>",
        "thanks @octo/team and @everyone",
        "/merge",
        "\u202eabc\u200b<!-- forgehand:session=x -->",
    ],
)
def test_nothing_in_a_commit_message_gives_orders(hostile: str) -> None:
    message = commit_message(Turn(prompt=f"{hostile}\n\n{hostile}\n", agent_result=hostile))
    head, _, trailers = message.rpartition("\n\n")
    assert trailers.splitlines() == [
        "Forgehand-Session: abcd1234, turn 1",
        "Co-authored-by: alice <7+alice@users.noreply.github.com>",
    ]
    rest = head.replace("For #12.", "").replace("Changes for #12", "").lower()
    for order in (
        "#1",
        "#2",
        "#3",
        "gh-4",
        "github.com",
        "[skip",
        "[ci",
        "-by:",
        "checks:",
        "@",
        "\n/",
        "\u202e",
        "<!--",
    ):
        assert order not in rest


@pytest.mark.parametrize("flood", ["\n", " \n"])
def test_a_commit_message_takes_no_longer_than_the_words_are_long(flood: str) -> None:
    """All of the service waits for it."""
    began = time.process_time()
    commit_message(Turn(prompt=f"do{flood * 30_000}this"))
    assert time.process_time() - began < 2


def test_a_message_is_bounded() -> None:
    assert len(commit_message(Turn(prompt="word " * 20_000))) < 5_000


def test_a_pull_request_says_asked_done_verified_and_what_it_took() -> None:
    body = descriptions.pull_body(
        Turn(agent_result="Rounded half up."),
        number=12,
        files=[{"path": "a.py", "added": 3, "removed": 1}, {"path": "b.png", "added": None, "removed": None}],
        verified=[{"command": "pytest -q", "exit_code": 0, "where": "fresh", "tail": ""}],
        seconds=75,
        cost=Cost(),
    )
    assert body == (
        "For #12\n\n"
        "### Asked by `alice`\n\n> fix the rounding in `total`\n\n"
        "### Done, as the agent says\n\nRounded half up.\n\n"
        "<details><summary>2 files changed</summary>\n\n- `a.py` +3 −1\n- `b.png` (binary)\n\n</details>\n\n"
        "### Verified by Forgehand\n\nRun on a clean checkout in a fresh sandbox:\n\n- ✓ `pytest -q` exit 0\n\n"
        "<sub>1 min 15 s · $0.43 · 1,234 tokens · `claude-sonnet-5-5` · session abcd1234, turn 1</sub>"
    )


def test_money_that_nobody_confirmed_is_told_apart() -> None:
    cut_off = Cost(usd=0.07, unconfirmed_usd=0.12)
    body = descriptions.pull_body(Turn(), number=12, files=[], verified=[], seconds=5, cost=cut_off)
    assert "<sub>5 s · $0.07, and up to $0.12 not confirmed · 1,234 tokens" in body


def test_a_pull_request_leads_to_where_it_was_made() -> None:
    extras = Extras(
        comment_url="https://github.com/o/r/issues/12#issuecomment-7",
        session_url="https://bot/sessions/abcd1234",
        trial=("pytest -q", "e3-0", "e9-0"),
        heard=[("bob", "and zero"), ("eve", "x")],
    )
    body = descriptions.pull_body(Turn(), number=12, files=[], verified=[], seconds=5, cost=Cost(), extras=extras)
    assert body.startswith(
        "For #12 · [live comment](https://github.com/o/r/issues/12#issuecomment-7)"
        " · [session](https://bot/sessions/abcd1234)\n\n"
    )
    assert "While it worked, `bob` said:\n\n> and zero\n\nWhile it worked, `eve` said:\n\n> x" in body
    assert (
        "In the agent's sandbox, `pytest -q` [failed](https://bot/sessions/abcd1234?at=e3-0#e3-0) at first and "
        "[passed](https://bot/sessions/abcd1234?at=e9-0#e9-0) in the end." in body
    )
    local = replace(extras, session_url="", comment_url="", heard=[("bob", str(n)) for n in range(12)])
    body = descriptions.pull_body(Turn(), number=12, files=[], verified=[], seconds=5, cost=Cost(), extras=local)
    assert body.startswith("For #12\n\n") and "`pytest -q` failed at first and passed in the end." in body
    assert body.count("While it worked") == 10 and "And 2 more." in body


def test_a_pull_request_claims_nothing_that_was_not_run() -> None:
    body = descriptions.pull_body(Turn(), number=12, files=[], verified=[], seconds=5, cost=Cost())
    assert "### Not verified\n\nAdd `checks` to `.github/forgehand.yml` (`/claude init` proposes the file)" in body
    assert "Verified by" not in body
    agents = [{"command": "x`y", "exit_code": 1, "where": "agent", "tail": ""}]
    body = descriptions.pull_body(Turn(), number=12, files=[], verified=agents, seconds=5, cost=Cost())
    assert "Run in the agent's own sandbox (" in body and "\n\n- ✗ `x?y` exit 1" in body


def test_texts_of_others_pass_the_given_door() -> None:
    body = descriptions.pull_body(
        Turn(prompt="asked", agent_result="done"),
        number=12,
        files=[],
        verified=[],
        seconds=5,
        cost=Cost(),
        inert=str.upper,
        quoted=lambda text: f"> {text} as it stands in a quote",
    )
    assert "> asked as it stands in a quote" in body
    assert "\n\nDONE\n\n" in body
