"""How a yes or no is asked for, answered, and withdrawn."""

from __future__ import annotations

from collections.abc import Sequence

from bot.text.markup import person, shown


def question(asked: str) -> str:
    """Ask whether the agent may do it; `asked` is markdown that cannot act."""
    return f"**May the agent do this?** It waits up to ten minutes for an answer; no answer counts as a no.\n\n{asked}"


def more_questions(count: int) -> str:
    return f"And {count} more, each in a separate comment."


def question_over(state: str, by: str | None, scope: str, asked: str) -> str:
    """Replace a question that is over; what was asked stays, so that readers see what the answer was about."""
    if by is None:
        head = "**No longer open:** nobody answered in time. My comment on that turn says what happens next."
    elif state == "approved":
        head = f"**Answered:** {person(by)} said yes{', for this session' if scope == 'session' else ', this once'}."
    else:
        head = f"**Answered:** {person(by)} said no."
    return f"{head}\n\n{asked}"


def hosts_asked(hosts: Sequence[str]) -> str:
    return f"Access to these hosts: {', '.join(shown(one, 260) for one in hosts)}"


def late_yes(approval_id: str, asked: str, command: str) -> str:
    """`asked` is markdown that cannot act."""
    head = "**May the agent do this?** Its turn has ended; a yes starts a new turn that may do it"
    return f"{head}: `{command} approve {approval_id}`.\n\n{asked}"


def answered_since(approval_id: str, state: str, by: str | None) -> str:
    if by is None:
        return f"**No longer open:** {shown(approval_id)} has expired, or something newer has taken its place."
    return f"**Answered:** {person(by)} {'said yes' if state == 'approved' else 'said no'} to {shown(approval_id)}."


def words_below_a_no(command: str) -> str:
    return (
        "Noted as a no. No agent is running that could read the words below it: send them as "
        f"`{command} …` to have something done, or as `{command} plan …` for another plan."
    )


def nothing_waits(command: str) -> str:
    return f"Nothing here is waiting for a yes or no. `{command} plan …` asks for a plan; `{command} …` starts work."


def several_wait(ids: Sequence[str], word: str, command: str) -> str:
    named = ", ".join(f"`{one}`" for one in ids[:10])
    return f"Several things are waiting: {named}. Name the one that you mean, such as `{command} {word} {ids[-1]}`."


def say_it_by_name(names: Sequence[str], word: str, command: str) -> str:
    """Answer a plain "yes" or "no" that is not a command."""
    ways = " or ".join(f"`{command} {word} {one}`" for one in names[:10])
    return f"If that answers what is waiting here, comment {ways}. If it is for the agent, say a few words more."


def asked_since(ids: Sequence[str], word: str, command: str) -> str:
    named = ", ".join(f"`{one}`" for one in ids[:10])
    return (
        f"I asked what is waiting here ({named}) after you had written that, so I did not take it as the answer. "
        f"`{command} {word} {ids[-1]}` answers it by name."
    )


def waits_for_a_word(name: str, command: str) -> str:
    return f"Waiting for your answer: `{command} approve {name}` or `{command} deny {name}`."


def several_ticked(labels: Sequence[str]) -> str:
    named = ", ".join(f"*{one}*" for one in labels)
    return (
        f"These were ticked at once: {named}. I did nothing, because I cannot tell which one you mean: tick just one."
    )


def no_such_approval(approval_id: str, word: str, command: str) -> str:
    return (
        f"Nothing on this thread is called {shown(approval_id)}. If only one thing is waiting here, "
        f"`{command} {word}` alone answers it."
    )


def answered_already(approval_id: str, state: str, by: str | None) -> str:
    if by is None:
        why = "it has expired, or something newer has taken its place"
        return f"{shown(approval_id)} can no longer be answered: {why}. My newest comment shows what is waiting now."
    return f"{shown(approval_id)} already has an answer: {state} by {person(by)}."


def words_below_a_yes(command: str) -> str:
    return (
        "Noted as a yes. I did not pass on the words below it, because this needs no agent: "
        f"send them as `{command} …` once it is done."
    )


def plan_still_waits(approval_id: str, command: str) -> str:
    return f"The plan is still waiting: `{command} approve {approval_id}` starts the work, `{command} deny` drops it."


def plan_expired(approval_id: str, command: str) -> str:
    return (
        f"Nobody approved the plan {shown(approval_id)} in time, so it has expired. "
        f"`{command} plan …` asks for a new one."
    )


def push_expired(approval_id: str, command: str) -> str:
    return (
        f"Nobody approved the held commit {shown(approval_id)} in time, so it has expired. "
        f"`{command} retry` does the work again."
    )


def let_go(approval_id: str) -> str:
    return f"Push the commit that was held as {approval_id}."
