"""Asks people before a turn begins whose estimate is above what its repository lets it cost unasked."""

from __future__ import annotations

import msgspec

from bot.kinds.shape import WorkEstimate
from bot.models import Outcome
from bot.repo_config import RepoConfig
from bot.sessions.moves import End
from bot.sessions.services import APPROVAL_DAYS, Services
from bot.store import approvals, turn_figures
from bot.store.approvals import ApprovalKind, ApprovalRequest
from bot.store.sessions import Session, Turn
from bot.words import on_estimates


async def estimated(services: Services, turn: Turn, session: Session, kind: str) -> WorkEstimate:
    """Return the estimate that the turn was queued with, or a new one if it begins as another kind."""
    given = turn.part(WorkEstimate)
    if kind == turn.kind:
        return given
    found = await turn_figures.estimate(services.store, session.repo, session.installation_id, kind)
    return msgspec.structs.replace(found or WorkEstimate(), agreed=given.agreed)


async def asked(services: Services, turn: Turn, estimate: WorkEstimate, config: RepoConfig) -> End | None:
    """End the turn with a question; only a row waits, and a yes begins the work. None if nobody has to be asked."""
    above = config.ask_above
    if above is None or estimate.most_usd <= above or estimate.agreed:
        return None
    matter = {"most_usd": estimate.most_usd, "ask_above": above}
    question = ApprovalRequest(turn.key, ApprovalKind.PRICE, matter, services.approval_deadline())
    approval = await approvals.ask(services.store, question)
    words = on_estimates.asks(estimate, above, approval.id, APPROVAL_DAYS)
    return End(Outcome.NEEDS_INPUT, words, parts=(msgspec.structs.replace(estimate, asks=True),))
