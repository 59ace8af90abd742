"""Whether the money of a turn is gone: its own, its session's, or that of its person, repository or installation."""

from __future__ import annotations

from dataclasses import dataclass

from bot import funds
from bot.funds import BUDGET, CEILING, BudgetTerms, Funds
from bot.models import RepoId, SessionId
from bot.sessions.money import budget, ceilings
from bot.sessions.money.budget import BudgetDecision, Ledger
from bot.sessions.money.ceilings import Ceilings
from bot.sessions.services import Services
from bot.store import budgets, spend
from bot.store.sessions import Turn
from bot.store.spend import Payers
from bot.words import endings


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
    if turn.budget_usd and own.counted_usd >= turn.budget_usd:
        return Exhaustion(BUDGET, endings.over_budget(turn.budget_usd))
    if spent := _of_session(await of_session(services, turn.key.session)):
        return spent
    for ceiling, ledger in await _ledgers(services, turn):
        decision = budget.decide([ledger])
        if decision is BudgetDecision.EXHAUSTED or (refused and decision is BudgetDecision.WAIT):
            return Exhaustion(CEILING, ceiling.sentence())
    return None


async def by_the_agents_count(services: Services, turn: Turn) -> Exhaustion:
    """Where it ended itself by its own estimate, which is all there is when nothing is metered."""
    limit = turn.budget_usd or (await of_session(services, turn.key.session)).limit_usd
    return Exhaustion(BUDGET, endings.over_budget(limit))


async def before_the_start(services: Services, turn: Turn) -> Exhaustion | None:
    """For a turn that has waited: what it was admitted with may be spent by now."""
    if spent := _of_session(await of_session(services, turn.key.session)):
        return spent
    ceiling = await ceilings.reached(services.store, await _limits(services, turn), payers(turn), services.clock())
    return Exhaustion(CEILING, ceiling.sentence()) if ceiling else None


async def share(services: Services, turn: Turn) -> float:
    """How much of what the turn can spend at most is spent, from 0 to 1: its own budget, or what the others leave."""
    own = (await spend.turn_cost(services.store, turn.key)).counted_usd
    most = own + max(await _left(services, turn, own), 0.0)
    return min(own / most, 1.0) if most > 0 else 0.0


async def of_session(services: Services, session: SessionId) -> Funds:
    return funds.of(await budgets.account(services.store, session), BudgetTerms.of(services.settings.limits))


def is_metered(services: Services) -> bool:
    e2b = services.settings.e2b
    return e2b is None or e2b.unmetered is None


async def for_the_agent(services: Services, turn: Turn) -> float | None:
    """What its program may spend by its own estimate, of which it keeps the agent told. Where the gateway meters it is
    the turn's own budget alone: what the session has left must not end a run for which somebody adds money, and what
    it may be raised to is not the agent's to plan with."""
    if is_metered(services):
        return turn.budget_usd or None
    session = await of_session(services, turn.key.session)
    return min(turn.budget_usd or float("inf"), session.left_usd)


async def _left(services: Services, turn: Turn, own: float) -> float:
    left = [ledger.limit_usd - ledger.spent_usd for _, ledger in await _ledgers(services, turn)]
    if turn.budget_usd:
        left.append(turn.budget_usd - own)
    return min([(await of_session(services, turn.key.session)).left_usd, *left])


def _of_session(found: Funds) -> Exhaustion | None:
    if found.counted_usd < found.limit_usd:
        return None
    return Exhaustion(BUDGET, endings.session_spent(found.spent_usd, found.unconfirmed_usd, found.limit_usd))


async def _ledgers(services: Services, turn: Turn) -> list[tuple[ceilings.Ceiling, Ledger]]:
    return await ceilings.ledgers(services.store, await _limits(services, turn), payers(turn), services.clock())


async def _limits(services: Services, turn: Turn) -> Ceilings:
    return await ceilings.of_account(services.store, services.settings.limits, turn.installation_id)
