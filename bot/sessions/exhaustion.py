"""Whether the money of a turn is gone: its own budget, or that of its person, repository or installation."""

from __future__ import annotations

from dataclasses import dataclass

from bot import endings
from bot.models import RepoId
from bot.sessions import budget, ceilings
from bot.sessions.budget import Decision, Ledger
from bot.sessions.ceilings import Ceilings
from bot.sessions.services import Services
from bot.store import spend
from bot.store.sessions import Turn
from bot.store.spend import Payers

TURN = "budget_exhausted"
CEILING = "ceiling_exhausted"
"""More budget for the turn would not help."""


@dataclass(frozen=True)
class Exhaustion:
    """Which limit it was, for the turn's row and for people."""

    error: str
    sentence: str


def payers(turn: Turn) -> Payers:
    return Payers(turn.installation_id, RepoId(turn.repo_id), turn.requester_id)


async def found(services: Services, turn: Turn, *, refused: bool) -> Exhaustion | None:
    """`refused`: the agent was told that there is no credit. Then what others have under way counts as spent too."""
    own = await spend.turn_cost(services.store, turn.key)
    if budget.decide([Ledger(own.usd, 0.0, turn.budget_usd)]) is Decision.EXHAUSTED:
        return Exhaustion(TURN, endings.over_budget(turn.budget_usd))
    for ceiling, ledger in await _ledgers(services, turn):
        decision = budget.decide([ledger])
        if decision is Decision.EXHAUSTED or (refused and decision is Decision.WAIT):
            return Exhaustion(CEILING, ceiling.sentence())
    return None


async def before_the_start(services: Services, turn: Turn) -> Exhaustion | None:
    """For a turn that has waited: what it was admitted with may be spent by now."""
    ceiling = await ceilings.reached(services.store, await _limits(services, turn), payers(turn), services.clock())
    return Exhaustion(CEILING, ceiling.sentence()) if ceiling else None


async def share(services: Services, turn: Turn) -> float:
    """How much of what the turn can spend at most is spent, from 0 to 1: its budget, or what the others leave of it."""
    own = (await spend.turn_cost(services.store, turn.key)).usd
    left = [ledger.limit_usd - ledger.spent_usd for _, ledger in await _ledgers(services, turn)]
    most = own + max(min([turn.budget_usd - own, *left]), 0.0)
    return min(own / most, 1.0) if most > 0 else 0.0


async def _ledgers(services: Services, turn: Turn) -> list[tuple[ceilings.Ceiling, Ledger]]:
    return await ceilings.ledgers(services.store, await _limits(services, turn), payers(turn), services.clock())


async def _limits(services: Services, turn: Turn) -> Ceilings:
    return await ceilings.of_account(services.store, services.settings.limits, turn.installation_id)
