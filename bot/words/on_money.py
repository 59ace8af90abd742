"""A session's money: spent, allowed, added; and other costs."""

from __future__ import annotations

from collections.abc import Sequence

from bot.funds import Funds, FundsState
from bot.models import TokenUsage

MOST_TURNS = 20
LEAST_SHOWN_USD = 0.0001
WHAT_IS_OPEN = (
    " “Not confirmed” is what cut-off answers may have cost, after a stop for example. It counts until the "
    "operator settles it."
)


def session_spent(money: Funds, command: str) -> str:
    open_, explained = unconfirmed(money.unconfirmed_usd), _what_is_open(money.unconfirmed_usd)
    spent = f"This session has spent ${money.spent_usd:.2f} of its ${money.limit_usd:.2f}{open_}"
    way_on = f"To continue with 3 dollars more, comment `{command} continue +3`, followed by what to do."
    if money.means is FundsState.FULL:
        way_on = with_more(money.means, command)
    return f"{spent}, so nothing was started.{explained} {way_on}"


def unconfirmed(usd: float) -> str:
    """Add this behind the confirmed amount; empty if the rest would not show."""
    return f", and up to {dollars(usd)} not confirmed" if usd >= LEAST_SHOWN_USD else ""


def _what_is_open(usd: float) -> str:
    return WHAT_IS_OPEN if usd >= LEAST_SHOWN_USD else ""


def spent(usd: float, unconfirmed_usd: float) -> str:
    return f"${usd:.2f}{unconfirmed(unconfirmed_usd)}"


def spent_of(spent_usd: float, unconfirmed_usd: float, limit_usd: float) -> str:
    return f"${spent_usd:.2f} of ${limit_usd:.2f}{unconfirmed(unconfirmed_usd)}"


def with_more(means: FundsState, command: str) -> str:
    if means is FundsState.FULL:
        return "It has reached the most that the operator lets a session spend; a new issue starts a new session."
    return f"To continue from here with 3 dollars more, comment `{command} continue +3`."


def raised(money: Funds, asked_usd: float, added_usd: float) -> str:
    may = f"This session may now spend ${money.limit_usd:.2f}; it has spent ${money.spent_usd:.2f}"
    return f"{may}{unconfirmed(money.unconfirmed_usd)}. {cut_at_the_most(money, asked_usd, added_usd)}".rstrip()


def cut_at_the_most(money: Funds, asked_usd: float, added_usd: float) -> str:
    """Explain why less was added than asked for; empty if all of it was added."""
    if added_usd > asked_usd - LEAST_SHOWN_USD:
        return ""
    return (
        f"You asked for ${asked_usd:.2f} more, but only ${added_usd:.2f} was added: ${money.most_usd:.2f} is the most "
        "that the operator lets a session spend."
    )


def nothing_to_settle(session: str) -> str:
    return f"Everything that session {session} has spent is confirmed."


def cannot_be_so_much(session: str, usd: float, open_usd: float) -> str:
    return (
        f"The unconfirmed requests of session {session} can have cost {dollars(open_usd)} at most, not {dollars(usd)}, "
        "so nothing was changed. Give only their cost beyond the confirmed part."
    )


def settled(session: str, usd: float, open_usd: float) -> str:
    return f"Session {session}: {dollars(usd)} is now confirmed, instead of up to {dollars(open_usd)} unconfirmed."


def cannot_be_raised(money: Funds, command: str) -> str:
    return (
        f"Nothing was added: ${money.limit_usd:.2f} is the most that the operator lets a session spend, and "
        f"${money.left_usd:.2f} of it is left. "
        + (f"`{command} continue` goes on with that." if money.left_usd else "A new issue starts a new session.")
    )


def cost(
    turns: Sequence[tuple[int, float]],
    usage: TokenUsage,
    money: Funds | None = None,
    *,
    under_way_usd: float | None = None,
    unconfirmed_usd: float = 0.0,
    sandbox_usd: float = 0.0,
) -> str:
    """`turns` are (number, dollars) of each that has spent something at the model; `under_way_usd` is the most that
    requests under way may cost, if there are any."""
    may = f" It may spend ${money.limit_usd:.2f}; ${money.left_usd:.2f} is left." if money else ""
    beside = f" Its sandboxes cost **{dollars(sandbox_usd)}** on top of that." if sandbox_usd else ""
    if not turns:
        return f"This thread has cost nothing {'at the model ' if beside else ''}yet.{may}{beside}"
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    total = f"This thread has cost **{dollars(sum(usd for _, usd in turns))}** so far"
    total += f"{unconfirmed(unconfirmed_usd)} ({tokens:,} tokens)"
    rows = "\n".join(f"| {n} | {dollars(usd)} |" for n, usd in turns[-MOST_TURNS:])
    earlier = f"The last {MOST_TURNS} of {len(turns)} turns:\n\n" if len(turns) > MOST_TURNS else ""
    under_way = ""
    if under_way_usd is not None:
        under_way = f" A request is under way and not counted yet; it may cost up to {dollars(under_way_usd)}."
    table = f"\n\n{earlier}| turn | dollars |\n|--:|--:|\n{rows}" if len(turns) > 1 else ""
    return f"{total}.{under_way}{_what_is_open(unconfirmed_usd)}{may}{beside}{table}"


def day_budget_reached(limit_usd: float, whose: str = "this installation") -> str:
    return f"Today's budget of ${limit_usd:.2f} for {whose} is used up. It starts again tomorrow (UTC)."


def month_budget_reached(limit_usd: float, whose: str = "this installation") -> str:
    return f"This month's budget of ${limit_usd:.2f} for {whose} is used up. It starts again on the 1st (UTC)."


def dollars(usd: float) -> str:
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"
