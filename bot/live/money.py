"""What a turn and its session have spent, of what they may spend, as the live comment says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.live.figures import bar
from bot.words import on_money

if TYPE_CHECKING:
    from bot.live.page import TurnView


def meter(view: TurnView) -> str:
    """The bar is that of the limit which is reached first."""
    turn, money = view.turn, view.funds
    whole = max((money.counted_usd, money.limit_usd), (view.cost.counted_usd, turn.budget_usd), key=_share)
    return f"{bar(*whole)} {spent(view)}"


def spent(view: TurnView) -> str:
    """The turn's own where it has a limit of its own, or is the only one; else beside the session's."""
    turn, money = view.turn, view.funds
    machine = f" + {on_money.dollars(view.sandbox_usd)} sandbox" if view.sandbox_usd else ""
    session = on_money.spent_of(money.spent_usd, money.unconfirmed_usd, money.limit_usd)
    if not turn.budget_usd and turn.n == 1:
        return f"{session}{machine}"
    own = f" of ${turn.budget_usd:.2f}" if turn.budget_usd else ""
    open_ = on_money.unconfirmed(view.cost.unconfirmed_usd)
    return f"${view.cost.usd:.2f}{own}{open_}{machine} · session {session}"


def _share(pair: tuple[float, float]) -> float:
    part, whole = pair
    return part / whole if whole > 0 else 0.0
