"""Say how a turn ended: the headline of its outcome, why it ended so, and what its reader may do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bot.funds import FundsState
from bot.models import Outcome, Step
from bot.text.markup import fenced, named, shown
from bot.words import on_money
from sandbox.agents.events import NO_MORE_SUBAGENTS

STEP_WORDS = {
    Step.PREPARE: "reading the thread and pinning the commit",
    Step.FURNISH: "setting up the sandbox",
    Step.WORK: "working",
    Step.COLLECT: "collecting the changes",
    Step.VERIFY: "running the checks",
    Step.PUBLISH: "publishing",
    Step.SETTLE: "cleaning up",
}
_NEVER_PUSHED_TO = "Forgehand never pushes to it. `--new-branch` puts the work on a separate branch."
SUSPENDED = "(suspended)"
REMOVED = "(removed)"
PAUSED = "(paused)"
LOCKED = "(locked)"
TRANSFERRED = "(transferred)"
DELETED = "(deleted)"
CLOSED = "(closed)"
"""These stand in the place of a login, which has no brackets: not a person's word made us stop."""
_STOPPED_BY = {
    SUSPENDED: "The App was suspended on this account, so the work was stopped.",
    REMOVED: "The App was removed from this repository, so the work was stopped.",
    PAUSED: "The operator has paused Forgehand, so the work was stopped.",
    LOCKED: "This conversation was locked, so the work was stopped. Once it is unlocked, the work can go on.",
    TRANSFERRED: "The issue was transferred to another repository, so the work was stopped. To have it done in its new "
    "place, ask there again; the work so far stays in the old repository.",
    DELETED: "The issue was deleted, so the work was stopped.",
    CLOSED: "The pull request was closed or merged in the meantime, so the work was stopped.",
}


def stopped_by(login: str) -> str:
    return _STOPPED_BY.get(login, f"{login} asked to stop.")


def being_saved(ref: str) -> str:
    return (
        f"The work so far is still being saved, to `{ref}` if that is possible; this comment will say when it is done."
    )


def asked_too_late(login: str) -> str:
    return "" if login in _STOPPED_BY else f"{login} asked to stop, but the agent had already finished."


def timed_out(seconds: float) -> str:
    limit = f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
    return f"The time limit of {limit} was reached."


def over_budget(budget_usd: float) -> str:
    return f"The budget of ${budget_usd:.2f} for this turn was used up."


def session_spent(spent_usd: float, unconfirmed_usd: float, limit_usd: float) -> str:
    spent = on_money.spent_of(spent_usd, unconfirmed_usd, limit_usd)
    return f"The budget of this session is used up: it has spent {spent}."


def environment_lost(*, saved: bool = False) -> str:
    words = "The sandbox disappeared while the agent was working in it."
    return f"{words} Its work up to a few minutes earlier is saved." if saved else words


def memory_refused() -> str:
    return "The agent could not load its memory of the earlier turns, so Forgehand restarted it with a summary of them."


def goes_on() -> str:
    return "The agent's process was lost, so Forgehand restarted it in the same sandbox."


def goes_on_elsewhere() -> str:
    return "The sandbox was lost; the agent continues in a new one, from the last saved state of its work."


def checks_go_back(count: int) -> str:
    what = "A check" if count == 1 else f"{count} checks"
    return f"{what} failed; the agent gets the output and one try to fix it."


def agent_killed() -> str:
    return "The agent's process was killed before it could finish."


def wrote_too_much() -> str:
    return "Forgehand stopped the agent, because it wrote far more output than can be kept."


def filled_the_disk() -> str:
    return "Forgehand stopped the agent, because the host's disk was filling up."


def command_filled_the_disk(command: str) -> str:
    return f"Forgehand stopped {shown(command, 200)}, because the host's disk was filling up."


def no_more_subagents(most: int) -> str:
    return f"{NO_MORE_SUBAGENTS} A turn may start {most}. Do not try again: continue by yourself, with what you have."


def subagents_refused(refused: int, most: int, at_once: int) -> str:
    were = "one was" if refused == 1 else f"{refused} were"
    return (
        f"**Sub-agents:** {were} refused. A turn may start {most} in all, and at most {at_once} may work at the same "
        "time. The operator sets these limits (`FORGEHAND_SUBAGENTS`, `FORGEHAND_SUBAGENTS_AT_ONCE`); a repository may "
        "lower them (`subagents` in `.github/forgehand.yml`)."
    )


def agent_failed(reason: str, said: str) -> str:
    known = {
        "max_turns": "The agent used up the number of steps it may take.",
        "api_error": "The model's provider kept answering with errors.",
    }
    sentence = known.get(reason, f"The agent ended early ({shown(reason, 80)}).")
    return f"{sentence} Its program says: {shown(said, 200)}." if said.strip() else sentence


def agent_left_no_result(exit_code: int | None) -> str:
    code = "" if exit_code is None else f" (exit code {exit_code})"
    return f"The agent's process ended without a result{code}."


PROVIDER_TROUBLES = {
    "provider_clock": "The model's provider says that the clock of Forgehand's machine is wrong.",
    "provider_denied": "The model's provider does not let the operator's key use this model.",
    "provider_expired": "The operator's key for the model's provider has expired.",
    "provider_key": "The model's provider does not accept the operator's key.",
    "provider_model": "The model's provider has no such model in the region that the operator chose.",
}
"""What the gateway has noted of an answer."""


def provider_refused(reason: str | None = None) -> str:
    known = "The model's provider does not accept the credential in use."
    return f"{PROVIDER_TROUBLES.get(reason or '', known)} The operator finds details in the log."


def token_ended() -> str:
    return (
        "Forgehand's own gateway no longer accepted this turn's token for the model: it had expired, as happens when "
        "the host's clock jumps. The provider's credential is not the reason; another try gets a new token."
    )


def gateway_refused(reason: str) -> str:
    known = {
        "credential": "there is no credential for the model. The operator finds details in the log",
        "field": "the agent's program sent a field whose cost is unknown. The log tells the operator how to allow it",
        "storm": "the gateway refused dozens of the agent's requests, so the token of this turn was cut off",
        "feature": "the agent asked for a part of the provider's API that is not open to it",
        "model": "the agent asked for a model other than this turn's",
        "price": "Forgehand does not know the model's price, so it could not keep the cost within the budget",
        "requests": "the turn had made as many requests as it may",
    }
    why = known.get(reason, f"the agent's request was invalid ({shown(reason, 40)})")
    return f"Forgehand's own gateway refused the agent's request before it reached the model's provider: {why}."


def provider_out_of_credit() -> str:
    return "The account at the model's provider is out of credit. The operator has to add some."


def sandboxes_refused() -> str:
    return "The service that runs the sandboxes does not accept the key in use. The operator finds details in the log."


def branch_missing(branch: str) -> str:
    return f"The branch `{branch}` does not exist in this repository. Name one that does: `--base main`, for example."


def repository_empty() -> str:
    return "This repository has no commit yet. Push a first commit, then ask again."


def pull_closed(number: int) -> str:
    return f"The pull request #{number} is no longer open, so nothing was started. Reopen it and ask again."


def head_gone(number: int) -> str:
    return f"GitHub no longer has the commits of the pull request #{number}, so there is nothing to read."


def moved_on() -> str:
    return "Someone pushed newer commits before the turn began, so the newest one shows it."


def waits() -> str:
    return "Waiting in the queue."


def under_way() -> str:
    return "The work is under way."


def all_in_the_comment(url: str) -> str:
    return f"[The live comment]({url}) has all of it." if url else ""


def reviewed_already(sha: str) -> str:
    return f"Commit `{sha[:12]}` was reviewed before, so there was nothing new to review."


def review_superseded(sha: str) -> str:
    return (
        f"Someone pushed commits, up to `{sha[:12]}`, while I was reading, so I said nothing about the older state. "
        "The next turn reviews the newest commit."
    )


def no_review() -> str:
    return "The agent ended without a review."


def nothing_to_review() -> str:
    return "The repository wants no review of any file that this changes (`review.ignore` in `.github/forgehand.yml`)."


def review_not_taken(words: str) -> str:
    return f"GitHub refused the review:\n\n{fenced(words)}"


def closed_before_review(number: int, merged: bool) -> str:
    how = "merged" if merged else "closed"
    return f"The pull request #{number} was {how} before the review could be posted. This is what it would have said."


def default_branch_is_head(branch: str) -> str:
    return f"This pull request's branch {shown(branch, 200)} is the default branch, and {_NEVER_PUSHED_TO}"


def head_is_protected(branch: str) -> str:
    return f"This pull request's branch {shown(branch, 200)} is protected, and {_NEVER_PUSHED_TO}"


def setup_failed(command: str, exit_code: int, tail: str) -> str:
    return (
        f"The setup command `{command}` of `.github/forgehand.yml` failed with exit code {exit_code}:\n\n{fenced(tail)}"
    )


def work_refused(reason: str) -> str:
    return f"Forgehand did not accept the work from the sandbox:{_words(reason)}"


UNREADABLE = "git cannot read it: a file or folder without permission, or a repository without a commit"


CHANGED_INSIDE = "files in this submodule changed; change them in its own repository, then ask for its new commit here"


def left_out(paths: Iterable[tuple[str, str]]) -> str:
    rows = [f"- {shown(path, 200)}: {why}" for path, why in paths]
    return "\n".join(["**Left behind in the sandbox**, because git cannot take it:", "", *rows]) if rows else ""


def held(paths: Iterable[tuple[str, str]]) -> str:
    """List (path, why) pairs; an empty path means the change as a whole."""
    rows = [f"- {shown(path, 200)}: {why}" if path else f"- {why}" for path, why in paths]
    more = [f"- and {len(rows) - 20} more"] if len(rows) > 20 else []
    return "\n".join(["Nothing was pushed, because these changes are not allowed:", "", *rows[:20], *more])


def secret_in_work(paths: Sequence[str]) -> str:
    files = named(paths, 10)
    return f"Nothing was pushed, because these files hold what looks like a secret: {files}. Remove it and ask again."


def branch_moved(branch: str) -> str:
    return f"Somebody else moved the branch `{branch}` in the meantime, so nothing was pushed to it."


def permission_gone(login: str) -> str:
    return f"Nothing was pushed, because {login} no longer has write access to this repository."


def may_not_begin(login: str) -> str:
    return f"Nothing was started, because {login} no longer has write access to this repository."


def push_refused(words: str) -> str:
    return f"GitHub refused the push:\n\n{fenced(words)}"


def pull_not_opened(branch: str, words: str) -> str:
    return f"The work is on the branch `{branch}`, but GitHub did not open a pull request for it: {words}"


def nobody_answered(approval_id: str, asked: str, command: str) -> str:
    """`asked` is markdown that cannot act."""
    return (
        f"The agent asked for permission to do this, and nobody answered in time:\n\n{asked}\n\n"
        f"To allow it now and continue, comment `{command} approve {approval_id}`."
    )


def plan_waits(approval_id: str, days: int) -> str:
    return f"Nothing has been changed yet. You can approve the plan for {days} days; its id is `{approval_id}`."


def no_plan() -> str:
    return "The agent ended without a plan."


def taken_back(n: int, sha: str) -> str:
    return f"A new commit reverts what turn {n} pushed (`{sha[:12]}`)."


def for_something_else(command: str) -> str:
    return f"For something else, comment `{command} …`."


def nothing_to_take_back() -> str:
    return "There is no push of this conversation left to undo."


def pushed_since(n: int, sha: str, command: str) -> str:
    return (
        f"The last push here, by turn {n} (`{sha[:12]}`), came after you had written that, so I did not undo it. "
        f"To undo it, comment `{command} undo` now."
    )


def merged_already(number: int) -> str:
    return f"The pull request #{number} is already merged: use GitHub's *Revert* button on its page."


def branch_gone(branch: str) -> str:
    return f"The branch {shown(branch, 200)} is gone, so there is nothing to undo."


def no_longer_on(branch: str, n: int) -> str:
    return (
        f"The history of {shown(branch, 200)} was rewritten, and the push of turn {n} is no longer on it. So it cannot "
        "be undone automatically; say in words what should be removed."
    )


def does_not_revert(branch: str, n: int) -> str:
    return (
        f"Later commits on {shown(branch, 200)} change the same lines as turn {n} did, so its push cannot be undone "
        "automatically. Say in words what should be removed."
    )


def forgot(turns: int) -> str:
    """Name, for a list of what was not read, a memory that could not be restored."""
    return f"the agent's own memory of the {turns} earlier turns: it could not be restored, so the agent got a summary"


def gave_up(step: Step, words: str) -> str:
    return f"Gave up after several tries while {STEP_WORDS[step]}:{_words(words)}"


def step_failed(step: Step, words: str) -> str:
    """Show the words as code: the agent may have chosen them."""
    return f"Something failed while {STEP_WORDS[step]}:{_words(words)}"


def something_broke(reference: str) -> str:
    return (
        "Something broke on our side. If it happens again, give the person who runs Forgehand this reference to the "
        f"log: `{reference}`."
    )


def kept_on_host(name: str, page: str = "") -> str:
    ask = f"person who runs it to send you that file (`forgehand sessions pull {name[:8]}` tells them where it is)."
    get = f"Ask the {ask}"
    if page:
        get = f"[Download it]({page}) from the session's page. If it may hold a secret, ask the {ask}"
    return (
        f"The work so far could not be pushed. It is kept for 30 days where Forgehand runs, as `{name}`. {get} Then "
        f"`git fetch {name} refs/forgehand/work` brings the work to your clone."
    )


def rescued(ref: str, until: float | None) -> str:
    time = f" until {datetime.fromtimestamp(until, UTC):%Y-%m-%d}" if until is not None else ""
    return f"The work so far is saved{time} as `{ref}`: `git fetch origin {ref}` brings it to your clone."


def _words(words: str) -> str:
    """Show the words of a program or a remote as code, so that they cannot pass for ours."""
    line = words.strip()
    return f" {shown(line, 300)}" if len(line) <= 300 and "\n" not in line else f"\n\n{fenced(line)}"


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
IN_THE_COMMAND = "command"
"""The error of a turn whose command can never work: the same words must fail again."""
OUTSIDE = "outside"
"""The error of a turn that works once somebody has changed something in the repository."""
_OPERATORS = ("provider_401", "provider_403", "out_of_credit", "gateway_credential", "gateway_field", "gateway_price")
"""Errors that only the operator can mend."""
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


def after_failure(error: str | None, command: str) -> str:
    """Say how to go on after an error that a mere repetition would meet again; empty for any other."""
    if error == IN_THE_COMMAND:
        return f"The same command would fail again. Comment `{command} …` with another choice."
    if error == OUTSIDE:
        return f"Once that is changed, comment `{command} retry`, or `{command} …` with what to do differently."
    return f"Once the operator has seen to it, comment `{command} retry`." if error in _OPERATORS else ""


def checks_failed(command: str) -> str:
    return f"Not all checks passed, see above. To have them fixed, comment `{command} fix the failing checks`."


def after_a_clean_review(command: str) -> str:
    return f"For another look at something in particular, comment `{command} review …` and say what."


def tick_or_say(command: str) -> str:
    return f"Tick an answer below, or comment `{command} …` with what to do instead."


def next_after(state: str, command: str) -> str:
    return "The next turn here carries it out." if state == "approved" else for_something_else(command)


def next_for_held(approval_id: str, command: str, *, lacks: bool = False) -> str:
    if lacks:
        return (
            "Once the App has that permission, somebody with write access can push exactly this commit with "
            f"`{command} approve {approval_id}`. `{command} deny {approval_id}` leaves it. "
            f"{for_something_else(command)}"
        )
    return (
        f"Somebody with write access can push exactly this commit with `{command} approve {approval_id}`, or leave it "
        f"with `{command} deny {approval_id}`. {for_something_else(command)}"
    )
