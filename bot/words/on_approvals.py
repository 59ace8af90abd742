"""The sentences about what waits for a yes or no: how it is asked, answered, and taken from the table."""

from __future__ import annotations

from collections.abc import Sequence

from bot.commands.options import shown
from bot.words.quoting import person


def question(asked: str) -> str:
    """What the agent wants to do; `asked` is markdown that cannot act."""
    return f"**May it do this?** The agent waits for ten minutes at most; then it is a no.\n\n{asked}"


def more_questions(count: int) -> str:
    return f"And {count} more, each in a comment of its own."


def question_over(state: str, by: str | None, scope: str, asked: str) -> str:
    """In the place of the question, once it is none any more; what was asked stays, as what it was answered for."""
    if by is None:
        head = "**No longer open:** nobody answered while the agent waited. My comment on that turn tells what follows."
    elif state == "approved":
        head = f"**Answered:** {person(by)} said yes{', for this session' if scope == 'session' else ', this once'}."
    else:
        head = f"**Answered:** {person(by)} said no."
    return f"{head}\n\n{asked}"


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
    return f"**Answered:** {person(by)} {'said yes' if state == 'approved' else 'said no'} to {shown(approval_id)}."


def words_below_a_no(command: str) -> str:
    return (
        "That is a no, and it is noted. No agent works here that could hear the words below it: "
        f"`{command} …` with them is work, `{command} plan …` asks for another plan."
    )


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


def waits_for_a_word(name: str, command: str) -> str:
    """In the answer to `status`."""
    return f"A yes or no is waited for: `{command} approve {name}` or `{command} deny {name}`."


def several_ticked(labels: Sequence[str]) -> str:
    named = ", ".join(f"*{one}*" for one in labels)
    return f"These were ticked at once: {named}. I did none of it, since I cannot tell which you mean: tick one."


def no_such_approval(approval_id: str, word: str, command: str) -> str:
    return (
        f"Nothing called {shown(approval_id)} was asked on this thread. Where only one thing waits here, "
        f"`{command} {word}` alone answers it."
    )


def answered_already(approval_id: str, state: str, by: str | None) -> str:
    if by is None:
        why = "its time is over, or something newer took its place"
        return f"{shown(approval_id)} can no longer be answered: {why}. What waits now stands in my newest comment."
    return f"{shown(approval_id)} was answered before: {state} by {person(by)}."


def words_below_a_yes(command: str) -> str:
    return (
        "That is a yes, and it counts. The words below it were not passed on, since no agent works on what was "
        f"approved: once it is through, `{command} …` with them is work."
    )


def plan_still_waits(approval_id: str, command: str) -> str:
    return f"The plan still waits: `{command} approve {approval_id}` begins the work, `{command} deny` drops it."


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
