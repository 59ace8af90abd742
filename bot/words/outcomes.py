"""How each outcome of a turn is headed, and what its reader may do next; `endings` says why it ended so."""

from __future__ import annotations

from bot.funds import FundsState
from bot.models import Outcome
from bot.words import on_money

_HEADLINES = {
    Outcome.PULL_REQUEST: "✅ Opened a pull request",
    Outcome.PUSHED: "✅ Pushed to the branch",
    Outcome.ANSWERED: "💬 Answered",
    Outcome.REVIEWED: "🔎 Reviewed",
    Outcome.PLANNED: "📝 The plan waits for your approval",
    Outcome.NO_CHANGE: "➖ Nothing was changed",
    Outcome.NEEDS_INPUT: "❓ A question for you",
    Outcome.STOPPED: "⏹️ Stopped",
    Outcome.OVER_BUDGET: "💸 The budget is used up",
    Outcome.TIMED_OUT: "⏰ Out of time",
    Outcome.KILLED: "💥 The run was cut off",
    Outcome.FAILED: "❌ Failed",
    Outcome.REFUSED: "🛑 Held back",
}
_NEXT = {
    Outcome.PULL_REQUEST: "Review the pull request and merge it when it is ready. For changes, comment `{command} …`.",
    Outcome.PUSHED: "Review the new commit. For changes, comment `{command} …`.",
    Outcome.ANSWERED: "Comment `{command} ask …` to ask more, or `{command} …` to have something changed.",
    Outcome.REVIEWED: "To have findings fixed, comment `{command} …` and say which.",
    Outcome.PLANNED: "Comment `{command} approve` to carry it out, or `{command} plan …` with what should change.",
    Outcome.NO_CHANGE: "If something should have changed, comment `{command} …` and say what is missing.",
    Outcome.NEEDS_INPUT: "Answer with `{command} …`; the work continues from here.",
    Outcome.STOPPED: "To continue from here, comment `{command} continue`, or `{command} …` with what to change.",
    Outcome.OVER_BUDGET: "To continue from here with what the session has left, comment `{command} continue`.",
    Outcome.TIMED_OUT: "To continue from here, comment `{command} continue`; add `--timeout 60m` for more time.",
    Outcome.KILLED: "To continue from here, comment `{command} continue`.",
    Outcome.FAILED: "To try again, comment `{command} retry`, or `{command} …` with what to do differently.",
    Outcome.REFUSED: "Once that is resolved, comment `{command} …` and say what to do.",
}
_PLANS = {"approved": "📝 A plan, approved", "denied": "📝 A plan, turned down"}
_CUT_SHORT = (Outcome.OVER_BUDGET, Outcome.STOPPED, Outcome.TIMED_OUT, Outcome.KILLED, Outcome.FAILED)


def headline(outcome: Outcome) -> str:
    return _HEADLINES[outcome]


def with_failing_checks(words: str) -> str:
    """The headline is all that some people read: no tick for work that is known to be broken."""
    return f"{words.replace('✅', '⚠️', 1)}: not all checks pass"


def ended_in_diff(outcome: Outcome, sha: str | None, head: str | None = None) -> str:
    """Say in a diff how the turn ended; its live comment has the rest. `head` replaces the usual headline."""
    commit = f" (`{sha[:12]}`)" if sha and outcome in (Outcome.PUSHED, Outcome.PULL_REQUEST) else ""
    return f"**{head or headline(outcome)}**{commit}. The details are in my comment on this pull request."


def plan_headline(state: str) -> str:
    return _PLANS.get(state, "📝 A plan that can no longer be approved")


def what_next(outcome: Outcome, command: str, means: FundsState = FundsState.LEFT) -> str:
    """Say what the reader may do now; every outcome leaves a way on."""
    if means is FundsState.LEFT:
        return _NEXT[outcome].format(command=command)
    if means is FundsState.CEILING:
        return f"To continue from here once the budget allows it again, comment `{command} continue`."
    on = on_money.with_more(means, command)
    if outcome in _CUT_SHORT:
        return on
    return f"{_NEXT[outcome].format(command=command)} The session's budget is used up. {on}"


def checks_failed(command: str) -> str:
    return f"Not all checks passed, see above. To have them fixed, comment `{command} fix the failing checks`."


def after_a_clean_review(command: str) -> str:
    return f"For another look at something in particular, comment `{command} review …` and say what."


def tick_or_say(command: str) -> str:
    return f"Tick an answer below, or comment `{command} …` with what to do instead."


def next_after(state: str, command: str) -> str:
    return (
        "The next turn here carries it out." if state == "approved" else f"For something else, comment `{command} …`."
    )


def next_for_held(approval_id: str, command: str) -> str:
    return (
        f"Somebody with write access can push exactly this commit with `{command} approve {approval_id}`, or leave it "
        f"with `{command} deny {approval_id}`. For something else, comment `{command} …`."
    )
