"""What stands in for the agent's own memory of earlier turns, where that could not be brought back."""

from __future__ import annotations

import msgspec

from bot import prompt
from bot.kinds.parts import AgentReading
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings


async def instead(services: Services, turn: Turn) -> tuple[AgentReading, ...]:
    """The turn's prompt with a summary of what was said before, and a note for its readers."""
    turns = await sessions.turns_of(services.store, turn.key.session)
    earlier = [one for one in turns if one.n < turn.n and one.agent_result]
    read = turn.part(AgentReading)
    if not earlier or read.context is None:
        return ()
    note = endings.forgot(len(earlier))
    context = prompt.with_summary(read.context, [(one.prompt, one.agent_result or "") for one in earlier])
    return (msgspec.structs.replace(read, context=context, notes=(*read.notes, note)),)
