"""Offers a plan at the turn's end; it waits for a person's yes until its time is over."""

from __future__ import annotations

from bot.kinds import plan
from bot.kinds.shape import TurnPart
from bot.live.state import LiveState
from bot.models import Outcome
from bot.outbound import neutralise
from bot.sessions.kinds import TurnKind
from bot.sessions.moves import End, Move
from bot.sessions.services import APPROVAL_DAYS, Services
from bot.store import approvals, sessions
from bot.store.approvals import ApprovalKind, ApprovalRequest
from bot.store.sessions import Turn
from bot.words import endings

MOST = 10_000
"""Characters as shown: people approve what the comment shows, so the whole plan must have room there."""


def bounded(words: str) -> str:
    text = words.strip()
    text = text if len(text) <= 2 * MOST else text[: 2 * MOST] + "…"  # never work through a flood just to cut it
    while len(neutralise.inert(text)) > MOST:
        text = text[: max(1, min(MOST, len(text) * 3 // 4))].rstrip("…").rstrip() + "…"
    return text


class PlanTurn(TurnKind):
    traits = plan.TRAITS

    def result(self, turn: Turn, state: LiveState) -> tuple[str, tuple[TurnPart, ...]]:
        return bounded(state.last_words), ()

    async def ended(self, services: Services, turn: Turn) -> Move:
        """Ask for approval; only a row waits, without an environment or a process."""
        now = await sessions.turn(services.store, turn.key)  # it may have been stopped meanwhile
        if now.outcome is not None:
            return End(now.outcome, now.detail or "")
        text = (turn.agent_result or "").strip()
        if not text:
            return End(Outcome.NEEDS_INPUT, endings.no_plan())
        question = ApprovalRequest(turn.key, ApprovalKind.PLAN, {"plan": text}, services.approval_deadline())
        approval = await approvals.ask(services.store, question)
        return End(Outcome.PLANNED, endings.plan_waits(approval.id, APPROVAL_DAYS))


KIND = PlanTurn()
