"""Every sentence that answers a command, but for those of a matter that has a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bot.commands.forms import FORMS
from bot.commands.options import USAGE, shown
from bot.funds import Funds
from bot.models import Outcome, TurnState
from bot.words.outcomes import headline


def help_text(command: str) -> str:
    rows = [f"| `{command} {form.usage}` | {form.what} |" for form in FORMS]
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
        ]
    )


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


def status(state: TurnState, step: str, elapsed: str, cost_usd: float, money: Funds, *, beside: str = "") -> str:
    """`beside`: what it waits for, and what waits behind it."""
    if state is TurnState.QUEUED:
        return _stands(f"Queued for {elapsed}; nothing spent on it yet.", beside, money)
    return _stands(f"Running for {elapsed}, now {step}; ${cost_usd:.2f} spent on it so far.", beside, money)


def at_rest(ending: str, money: Funds, *, beside: str = "") -> str:
    """To `status` where no turn is under way; `ending` is the headline of the last one."""
    return _stands(f"{nothing_runs()} How the last turn ended: **{ending}**.", beside, money)


def _stands(words: str, beside: str, money: Funds) -> str:
    session = f"The session has spent ${money.spent_usd:.2f} of ${money.limit_usd:.2f}."
    return " ".join(filter(None, (words, beside, session)))


def in_line(place: str) -> str:
    return f"It is {place} in line."


def wait_behind(count: int) -> str:
    if count == 0:
        return ""
    return "One more turn waits behind it." if count == 1 else f"{count} more turns wait behind it."


NO_COMMAND = "there is no command in it"
OWN_EDIT = "it is our own edit"
"""Of what people say to each other: the ledger has it, `why` does not repeat it."""


def no_command_but_named(command: str) -> str:
    """Where somebody seems to have meant one."""
    return (
        f"it names `{command}`, but not as a command: that stands at the start of a line, spelt exactly so, outside "
        "quotes, code and comments"
    )


def edit_with_command(command: str) -> str:
    return f"an edited comment starts nothing: write `{command}` in a new one"


def opening_starts_nothing() -> str:
    return f"{NO_COMMAND}, and the config of the repository begins nothing here"


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


def nothing_to_repeat(command: str) -> str:
    return f"Nothing was done on this thread yet that could be run again. `{command} …` begins."


def still_under_way(command: str) -> str:
    return f"The last turn has not ended yet. `{command} stop` ends it; then it can be run again."


def undone_already(command: str) -> str:
    return (
        "The last turn took a push back, and that is done. Run again it would take back the push before that one: "
        f"`{command} undo` does so."
    )


def nothing_to_undo() -> str:
    return "Nothing was pushed from this thread that could be taken back."


def needs_a_pull(word: str, command: str) -> str:
    return (
        f"`{command} {word}` is for pull requests, and there is none on this thread yet. "
        "Comment it on the pull request that you mean."
    )
