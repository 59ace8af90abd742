"""A plan that waits for a person's yes: offered with the turn's end, and taken from the table when its time is over."""

from __future__ import annotations

from bot.kinds import plan
from bot.kinds.parts import TurnPart
from bot.live.state import LiveState
from bot.models import Outcome
from bot.outbound import neutralise
from bot.sessions.kinds import TurnKind
from bot.sessions.moves import End, Move
from bot.sessions.services import Services
from bot.store import approvals, sessions
from bot.store.approvals import ApprovalKind, ApprovalRequest
from bot.store.sessions import Turn
from bot.words import endings

DAYS = 7
MOST = 10_000
"""Characters as they are shown: what is approved is what the comment shows, and that has to have room there."""


def bounded(words: str) -> str:
    text = words.strip()
    text = text if len(text) <= 2 * MOST else text[: 2 * MOST] + "…"  # a flood must not be worked through to be cut
    while len(neutralise.inert(text)) > MOST:
        text = text[: max(1, min(MOST, len(text) * 3 // 4))].rstrip("…").rstrip() + "…"
    return text


class PlanTurn(TurnKind):
    traits = plan.TRAITS

    def result(self, turn: Turn, state: LiveState) -> tuple[str, tuple[TurnPart, ...]]:
        return bounded(state.last_words), ()

    async def ended(self, services: Services, turn: Turn) -> Move:
        """Nothing waits but a row: no environment, no process."""
        now = await sessions.turn(services.store, turn.key)  # it may have been stopped meanwhile
        if now.outcome is not None:
            return End(now.outcome, now.detail or "")
        text = (turn.agent_result or "").strip()
        if not text:
            return End(Outcome.NEEDS_INPUT, endings.no_plan())
        expires = services.clock() + DAYS * 24 * 3600
        approval = await approvals.ask(
            services.store, ApprovalRequest(turn.key, ApprovalKind.PLAN, {"plan": text}, expires)
        )
        return End(Outcome.PLANNED, endings.plan_waits(approval.id, DAYS))


KIND = PlanTurn()
