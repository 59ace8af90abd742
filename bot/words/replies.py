"""Every sentence that answers a command or heads an outcome; why a turn ended as it did stands in `endings`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bot.commands import FORMS
from bot.commands.options import USAGE, shown
from bot.funds import Funds, Means
from bot.models import Outcome, TurnState, Usage
from bot.publications import commit_message, pull_body, pull_title

__all__ = [
    "account_not_served",
    "another_account",
    "cannot_be_raised",
    "commit_message",
    "config_branch_taken",
    "config_is_there",
    "config_not_pushed",
    "config_proposed",
    "config_pull_body",
    "cost",
    "could_not_verify",
    "day_budget_reached",
    "done_already",
    "headline",
    "help_text",
    "month_budget_reached",
    "no_write_access",
    "not_available",
    "nothing_runs",
    "pull_body",
    "pull_title",
    "raised",
    "repository_archived",
    "session_spent",
    "status",
    "stop_asked",
    "thread_locked",
    "what_next",
]

MOST_TURNS = 20
"""In one answer to `cost`."""

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
    Outcome.PULL_REQUEST: "Look the draft through and merge it when it is right. For changes, comment `{command} …`.",
    Outcome.PUSHED: "Look the new commit through. For changes, comment `{command} …`.",
    Outcome.ANSWERED: "To go on, comment `{command} ask …`; to have it done, `{command} …`.",
    Outcome.REVIEWED: "To have the findings mended, comment `{command} …` with what to mend.",
    Outcome.PLANNED: "Comment `{command} approve` to have it done, or `{command} plan …` with what should differ.",
    Outcome.NO_CHANGE: "If something should have changed, comment `{command} …` and say what is missing.",
    Outcome.NEEDS_INPUT: "Answer with `{command} …`: it goes on from here.",
    Outcome.STOPPED: "To go on from here, comment `{command} …` with what should be different.",
    Outcome.OVER_BUDGET: "To go on from here with what the session has left, comment `{command} continue`.",
    Outcome.TIMED_OUT: "To go on from here, comment `{command} go on`, perhaps with `--timeout 60m` after `{command}`.",
    Outcome.KILLED: "To go on from here, comment `{command} go on`.",
    Outcome.FAILED: "To try once more, comment `{command} go on`, or say what to do differently.",
    Outcome.REFUSED: "Once the reason is gone, comment `{command} …` and say what to do differently.",
}
_PLANS = {"approved": "📝 A plan, approved", "denied": "📝 A plan, turned down"}
_CUT_SHORT = (Outcome.OVER_BUDGET, Outcome.STOPPED, Outcome.TIMED_OUT, Outcome.KILLED, Outcome.FAILED)
_AFTER_A_YES = "It goes on in the next turn of this thread."


def headline(outcome: Outcome) -> str:
    return _HEADLINES[outcome]


def with_failing_checks(words: str) -> str:
    """The headline is all that some people read: no tick for work that is known to be broken."""
    return f"{words.replace('✅', '⚠️', 1)}: not all checks pass"


def ended_in_diff(outcome: Outcome, sha: str | None) -> str:
    """The short form of the end; the live comment of the turn has the rest."""
    commit = f" (`{sha[:12]}`)" if sha and outcome in (Outcome.PUSHED, Outcome.PULL_REQUEST) else ""
    return f"**{headline(outcome)}**{commit}. The whole story is in my comment on this pull request."


def what_next(outcome: Outcome, command: str, means: Means = Means.LEFT) -> str:
    """What the reader may do now; every outcome leaves a way on."""
    if means is Means.LEFT:
        return _NEXT[outcome].format(command=command)
    if means is Means.CEILING:
        return f"To go on from here once there is money again, comment `{command} go on`."
    on = _with_more(means, command)
    return (
        on if outcome in _CUT_SHORT else f"{_NEXT[outcome].format(command=command)} The session's money is gone. {on}"
    )


def _with_more(means: Means, command: str) -> str:
    if means is Means.FULL:
        return "It has reached the most that the operator lets a session spend: a new issue begins a new one."
    return f"To go on from here with 3 dollars more, comment `{command} continue +3`."


def session_spent(money: Funds, command: str) -> str:
    """To who asks for another turn of it."""
    spent = f"This session has spent ${money.spent_usd:.2f} of its ${money.limit_usd:.2f}, so nothing was begun."
    if money.means is Means.FULL:
        return f"{spent} {_with_more(money.means, command)}"
    return f"{spent} `{command} continue +3` goes on with 3 dollars more; your words may stand behind it."


def raised(money: Funds) -> str:
    return f"This session may now spend ${money.limit_usd:.2f}; it has spent ${money.spent_usd:.2f}."


def cannot_be_raised(money: Funds, command: str) -> str:
    return (
        f"Nothing was added: ${money.limit_usd:.2f} is the most that the operator lets a session spend, and "
        f"${money.left_usd:.2f} of it is left. "
        + (f"`{command} continue` goes on with that." if money.left_usd else "A new issue begins a new one.")
    )


def checks_failed(command: str) -> str:
    """In the place of what comes next where work was pushed that does not pass."""
    return f"Not all checks passed, see above. To have that mended, comment `{command} mend the failing checks`."


def tick_or_say(command: str) -> str:
    """Where a question waits that has boxes."""
    return f"Tick an answer below, or comment `{command} …` with what to do instead: it goes on from here."


def next_after(state: str, command: str) -> str:
    """Where what waited for a word has had it."""
    return _AFTER_A_YES if state == "approved" else f"For something else, comment `{command} …`."


def next_for_held(approval_id: str, command: str) -> str:
    return (
        f"Somebody with write access lets exactly this commit go with `{command} approve {approval_id}`, or leaves it "
        f"with `{command} deny {approval_id}`. For something else, comment `{command} …`."
    )


def help_text(command: str) -> str:
    rows = [f"| `{command} {form.usage}` | {form.what} |" for form in FORMS if form.ready]
    later = ", ".join(f"`{form.word}`" for form in FORMS if not form.ready)
    options = ", ".join(f"`{usage}`" for usage in USAGE.values())
    return "\n".join(
        [
            "| comment | what happens |",
            "|---|---|",
            *rows,
            "",
            f"A command stands at the start of a line, one in a comment, outside quotes and code. "
            f"Options, right after `{command}` or at the end of its line: {options}. "
            f"Only people with write access are obeyed; editing a comment starts nothing.",
            *([f"\nUnderstood, but not available yet: {later}."] if later else []),
        ]
    )


def not_available(word: str, command: str) -> str:
    return f"`{command} {word}` is not available yet. `{command} help` lists what is."


def nothing_runs() -> str:
    return "Nothing is running on this thread."


def done_already(outcome: Outcome) -> str:
    """To a `stop` that comes when all but cleaning up is done."""
    return f"The work is done already, so there was nothing left to stop. How it ended: **{headline(outcome)}**."


def config_is_there(path: str, branch: str) -> str:
    return f"There is a `{path}` on {shown(branch, 200)} already, so I leave it as it is."


def config_proposed(number: int) -> str:
    return f"A starter for the config is in #{number}. It changes nothing until you fill it in and merge it."


def config_branch_taken(branch: str) -> str:
    return f"The branch `{branch}` is taken by something else. Delete or rename it, then ask again."


def config_not_pushed(words: str) -> str:
    return f"The branch for it could not be pushed: {words}"


def config_pull_body(path: str, login: str, number: int) -> str:
    return (
        f"`{login}` asked for a starter in #{number}. This adds `{path}`, in which every key is explained and nothing "
        "differs from the defaults. Fill in `setup` and `checks`, then merge it: it counts from the default branch."
    )


def status(state: TurnState, step: str, elapsed: str, cost_usd: float, money: Funds) -> str:
    session = f"The session has spent ${money.spent_usd:.2f} of ${money.limit_usd:.2f}."
    if state is TurnState.QUEUED:
        return f"Queued for {elapsed}; nothing spent on it yet. {session}"
    return f"Running for {elapsed}, now {step}; ${cost_usd:.2f} spent on it so far. {session}"


def cost(
    turns: Sequence[tuple[int, float]],
    usage: Usage,
    money: Funds | None = None,
    *,
    under_way: bool = False,
    sandbox_usd: float = 0.0,
) -> str:
    """(number, dollars) of each turn that has spent something at the model; what its session may; and sandboxes."""
    may = f" It may spend ${money.limit_usd:.2f}; ${money.left_usd:.2f} is left." if money else ""
    beside = f" Its sandboxes cost **{dollars(sandbox_usd)}** beside that." if sandbox_usd else ""
    if not turns:
        return f"This thread has cost nothing {'at the model ' if beside else ''}yet.{may}{beside}"
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    total = f"This thread has cost **{dollars(sum(usd for _, usd in turns))}** so far ({tokens:,} tokens)"
    listed = ", ".join(f"turn {n} {dollars(usd)}" for n, usd in turns[-MOST_TURNS:])
    earlier = f"the last {MOST_TURNS} of {len(turns)} turns: " if len(turns) > MOST_TURNS else ""
    open_ = " A request is under way and not counted yet." if under_way else ""
    return f"{total}{f': {earlier}{listed}' if len(turns) > 1 else ''}.{open_}{may}{beside}"


def stop_asked(login: str) -> str:
    return f"Stopping, as {_name(login)} asked. The work so far is kept."


def why(lines: Sequence[str]) -> str:
    if not lines:
        return "Everything on this thread that was meant for me was acted upon."
    return "\n".join(["What I did not act upon here, newest first:", "", *(f"- {line}" for line in lines)])


class Delivered(Protocol):
    """What is told of a delivery."""

    @property
    def event(self) -> str: ...
    @property
    def action(self) -> str | None: ...
    @property
    def sender(self) -> str | None: ...
    @property
    def state(self) -> str: ...
    @property
    def reason(self) -> str | None: ...


def fate(delivery: Delivered, ago: str, inert: Callable[[str], str]) -> str:
    """What became of a delivery and why, in the same words for a thread and for the operator."""
    what = f"{delivery.event} {delivery.action or ''}".strip().replace("_", " ")
    who = inert(delivery.sender or "somebody")
    return f"{ago} ago, {what} by {who}: {delivery.state}.{_sentence(inert(delivery.reason or ''))}"


def _sentence(reason: str) -> str:
    """Reasons are noted as sentences or as parts of one."""
    ends = "" if reason.endswith((".", "!", "?")) else "."
    return f" {reason[0].upper()}{reason[1:]}{ends}" if reason else ""


def nothing_to_repeat() -> str:
    return "There is no turn on this thread yet that could be run again."


def still_under_way(command: str) -> str:
    return f"The last turn has not ended yet. `{command} stop` ends it; then it can be run again."


def question(asked: str, answers: Sequence[str] = ()) -> str:
    """What the agent wants to do; `asked` is markdown that cannot act."""
    head = "**May it do this?** The agent waits for ten minutes at most; then it is a no."
    return "\n\n".join(part for part in (head, asked, "\n".join(f"- {one}" for one in answers)) if part)


def ways_to_answer(approval_id: str, command: str) -> list[str]:
    return [
        f"`{command} approve {approval_id}`: yes, this once",
        f"`{command} approve {approval_id} session`: yes, and the same again in this session",
        f"`{command} deny {approval_id}`: no",
    ]


def words_below_a_no(command: str) -> str:
    return (
        "That is a no, and it is noted. No agent works here that could hear the words below it: "
        f"`{command} …` with them is work, `{command} plan …` asks for another plan."
    )


def hosts_asked(hosts: Sequence[str]) -> str:
    return f"To reach these hosts: {', '.join(shown(one, 260) for one in hosts)}"


def late_yes(approval_id: str, asked: str, command: str) -> str:
    """`asked` is markdown that cannot act."""
    head = "**May it do this?** The agent has ended; a yes begins the next turn with it"
    return f"{head}: `{command} approve {approval_id}`.\n\n{asked}"


def answered_since(approval_id: str, state: str, by: str | None) -> str:
    """Beside what was asked at the end of a turn, once somebody has said a word on it."""
    if by is None:
        return f"**No longer open:** the time of {shown(approval_id)} is over, or something newer took its place."
    return f"**Answered:** {_name(by)} {'said yes' if state == 'approved' else 'said no'} to {shown(approval_id)}."


def plan_headline(state: str) -> str:
    """Of a plan that waits no longer."""
    return _PLANS.get(state, "📝 A plan that is no longer on offer")


def nothing_waits(command: str) -> str:
    return f"Nothing waits for a yes or no here. `{command} plan …` asks for a plan; `{command} …` is work."


def several_wait(ids: Sequence[str], word: str, command: str) -> str:
    named = ", ".join(f"`{one}`" for one in ids[:10])
    return f"Several things wait: {named}. Name the one that you mean: `{command} {word} {ids[-1]}`."


def asked_since(ids: Sequence[str], word: str, command: str) -> str:
    named = ", ".join(f"`{one}`" for one in ids[:10])
    return (
        f"What waits for an answer here, {named}, was asked after that was written, so I did not take it for one. "
        f"`{command} {word} {ids[-1]}` answers it by its name."
    )


def several_ticked(labels: Sequence[str]) -> str:
    named = ", ".join(f"*{one}*" for one in labels)
    return f"These were ticked at once: {named}. I did none of it, since I cannot tell which you mean: tick one."


def no_such_approval(approval_id: str) -> str:
    return f"Nothing called {shown(approval_id)} was asked on this thread."


def answered_already(approval_id: str, state: str, by: str | None) -> str:
    if by is None:
        return f"{shown(approval_id)} can no longer be answered: its time is over, or something newer took its place."
    return f"{shown(approval_id)} was answered before: {state} by {_name(by)}."


def plan_expired(approval_id: str, command: str) -> str:
    return (
        f"Nobody approved the plan {shown(approval_id)} in time, so it is no longer on offer. "
        f"`{command} plan …` asks for a new one."
    )


def push_expired(approval_id: str, command: str) -> str:
    return (
        f"Nobody let the held commit {shown(approval_id)} go in time, so it is no longer on offer. "
        f"`{command} retry` does the work again."
    )


def let_go(approval_id: str) -> str:
    """In the place of a request's words."""
    return f"Push the commit that was held as {approval_id}."


def nothing_to_undo() -> str:
    return "Nothing was pushed from this thread that could be taken back."


def no_write_access(login: str) -> str:
    return (
        f"Sorry, {_name(login)}: I only follow people who have write access to this repository. "
        "Somebody who has it can give me the command instead. (I say this once in a thread.)"
    )


def another_account(login: str) -> str:
    return (
        f"The account that wrote this is no longer the one called {_name(login)}, so I did nothing. "
        "If that is you, write the command again."
    )


def could_not_verify(login: str) -> str:
    return (
        f"I could not verify what {_name(login)} may do here, because GitHub did not answer, so I did nothing. "
        "Please write the command again in a few minutes."
    )


def account_not_served(owner: str) -> str:
    return (
        f"This service does not work for the account {_name(owner)}. Its operator can add the account to "
        "`FORGEHAND_ACCOUNTS`."
    )


def thread_locked() -> str:
    return "This conversation is locked, so nothing was begun: I could not report on it. Unlock it and ask again."


def repository_archived() -> str:
    return "This repository is archived, so nothing was begun: nothing can be pushed to it."


def review_needs_a_pull(command: str) -> str:
    return f"`{command} review` is for pull requests, and this is an issue. `{command} ask …` answers a question here."


def resolve_needs_a_pull(command: str) -> str:
    return f"`{command} resolve` is for pull requests, and there is none here yet."


def day_budget_reached(limit_usd: float, whose: str = "this installation") -> str:
    return f"Today's budget of ${limit_usd:.2f} for {whose} is used up. It is free again tomorrow (UTC)."


def month_budget_reached(limit_usd: float, whose: str = "this installation") -> str:
    return f"This month's budget of ${limit_usd:.2f} for {whose} is used up. It is free again on the 1st (UTC)."


def dollars(usd: float) -> str:
    """Cents, and more where cents would say nothing."""
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"


def _name(login: str) -> str:
    """In code, so that nobody is notified."""
    return shown(login, 60)
