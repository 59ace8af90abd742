"""What stands in for the agent's own memory of earlier turns, where that could not be brought back."""

from __future__ import annotations

from typing import Any

from bot import prompt
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings


async def instead(services: Services, turn: Turn) -> dict[str, Any]:
    """Columns of the turn: its prompt with a summary of what was said before, and a note for its readers."""
    turns = await sessions.turns_of(services.store, turn.key.session)
    earlier = [one for one in turns if one.n < turn.n and one.agent_result]
    if not earlier or turn.context is None:
        return {}
    note = endings.forgot(len(earlier))
    context = prompt.with_summary(turn.context, [(one.prompt, one.agent_result or "") for one in earlier])
    return {"context": context, "notes": [*(turn.notes or ()), note]}
