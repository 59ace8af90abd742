"""Answer a command, unless a separate module is about its matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from bot.funds import Funds
from bot.models import Outcome, TurnState
from bot.text.markup import shown
from bot.words import on_money
from bot.words.endings import headline


def help_text(command: str, forms: Iterable[tuple[str, str]], options: Iterable[str], *, closes: bool = False) -> str:
    """`forms`: what to write after the word, and what it does; `closes`: merging closes the issue here."""
    named = ", ".join(f"`{usage}`" for usage in options)
    rules = (
        f"A command starts a line, outside quotes and code; one per comment. Options may stand "
        f"anywhere on its line: {named}. Only people with write access can use it. Editing a comment starts nothing. "
        f"Merging a pull request of mine {'closes' if closes else 'does not close'} its issue in this repository "
        "(`pull.closes`)."
    )
    rows = [f"| `{command} {usage}` | {what} |" for usage, what in forms]
    return "\n".join(["| comment | what happens |", "|---|---|", *rows, "", rules])


MOST_OWN = 50


def own_commands(command: str, names: Sequence[str]) -> str:
    """List what a repository's `.claude` adds; empty if that is nothing."""
    if not names:
        return ""
    more = f" and {len(names) - MOST_OWN} more" if len(names) > MOST_OWN else ""
    listed = ", ".join(shown(f"{command} /{name}", 200) for name in names[:MOST_OWN])
    return f"Commands and skills of this repository's `.claude`; words may follow: {listed}{more}."


def as_of(at: float, login: str) -> str:
    return f"As of {moment(at)}, when {shown(login, 60)} asked."


def moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def nothing_runs() -> str:
    return "Nothing is running on this thread."


def done_already(outcome: Outcome) -> str:
    return f"The work had already finished, so there was nothing left to stop. It ended with: **{headline(outcome)}**."


def status(state: TurnState, step: str, elapsed: str, cost: str, money: Funds, *, beside: str = "") -> str:
    if state is TurnState.QUEUED:
        return _stands(f"Queued for {elapsed}; nothing spent on this turn yet.", beside, money)
    return _stands(f"Running for {elapsed}, now {step}; {cost} spent on this turn so far.", beside, money)


def at_rest(ending: str, money: Funds, *, beside: str = "") -> str:
    """Answer `status` when no turn is under way; `ending` is the headline of the last one."""
    return _stands(f"{nothing_runs()} The last turn ended with: **{ending}**.", beside, money)


def _stands(words: str, beside: str, money: Funds) -> str:
    spent = on_money.spent_of(money.spent_usd, money.unconfirmed_usd, money.limit_usd)
    session = f"The session has spent {spent}."
    return " ".join(filter(None, (words, beside, session)))


def in_line(place: str) -> str:
    return f"It is {place} in line."


def wait_behind(count: int) -> str:
    if count == 0:
        return ""
    return "One more turn is queued behind it." if count == 1 else f"{count} more turns are queued behind it."


NO_COMMAND = "there is no command in it"
OWN_EDIT = "it is our own edit"
"""Reasons for ignoring what is not meant for us: the ledger has them, `why` does not repeat them."""
OWN_TEXT = "it is our own text"
OWN_CHECK = "it is a check run of our own"
NOISE = (OWN_EDIT, OWN_TEXT, OWN_CHECK)
"""Reasons of the deliveries that our own work causes: a long turn has hundreds."""


def no_command_but_named(command: str) -> str:
    return (
        f"it mentions `{command}`, but not as a command: that has to start a line, outside quotes, lists, code and "
        "HTML comments"
    )


def how_to_begin(command: str, slug: str) -> str:
    return (
        f"Nothing was started. To give me work, begin a line with `{command}` or `@{slug}`, such as `{command} fix "
        f"this`. `{command} help` lists the commands."
    )


def models(command: str, names: Sequence[str], usual: str) -> str:
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"`{command} --model NAME …` chooses the model of one turn: {listed}. Without it, the repository's config "
        f"decides, or else it is {shown(usual)}."
    )


def edit_with_command(command: str) -> str:
    return f"an edited comment starts nothing: write `{command}` in a new one"


def opening_starts_nothing() -> str:
    return f"{NO_COMMAND}, and the repository's config starts nothing here"


def why(lines: Sequence[str], started: str = "") -> str:
    """`started` says which program asked for the last turn, if one did."""
    if not lines:
        return f"I acted on everything on this thread that was meant for me. {started}".rstrip()
    return "\n".join(
        filter(None, (started, "What I did not act on here, newest first:\n", *(f"- {line}" for line in lines)))
    )


def by_token(n: int, login: str, token: str) -> str:
    return f"Turn {n} was started through the API with the token {shown(token, 60)} of {shown(login, 60)}."


def of_token(token: str, reason: str) -> str:
    return f"With the API token {shown(token, 60)}: {reason}"


class DeliveryFacts(Protocol):
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


def fate(delivery: DeliveryFacts, when: str, inert: Callable[[str], str]) -> str:
    """Say what became of a delivery and why, in the same words for a thread and for the operator."""
    what = f"{delivery.event} {delivery.action or ''}".strip().replace("_", " ")
    who = inert(delivery.sender or "somebody")
    reason = inert(delivery.reason or "")
    if not reason.startswith(who):  # a login stays as it is; other reasons may be noted as parts of a sentence
        reason = reason[:1].upper() + reason[1:]
    if reason and not reason.endswith((".", "!", "?")):
        reason += "."
    return f"{when}, {what} by {who}: {delivery.state}. {reason}".rstrip()


def nothing_to_repeat(command: str) -> str:
    return f"Nothing has been run on this thread yet, so there is nothing to repeat. `{command} …` starts something."


def would_fail_again(command: str) -> str:
    return (
        "The last turn failed because of what its command named, so it would fail again. Comment "
        f"`{command} …` with another choice, or `{command} retry` with an option that replaces it."
    )


def still_under_way(command: str) -> str:
    return f"The last turn is still under way. `{command} stop` ends it; then you can run it again."


def undone_already(command: str) -> str:
    return (
        "The last turn was an undo, and it is done. Running it again would undo the push before that one, too: "
        f"`{command} undo` does that."
    )


def nothing_to_undo() -> str:
    return "Nothing has been pushed from this thread, so there is nothing to undo."


def needs_a_pull(word: str, command: str) -> str:
    return (
        f"`{command} {word}` is for pull requests, and this thread has none yet. "
        "Comment it on the pull request that you mean."
    )
