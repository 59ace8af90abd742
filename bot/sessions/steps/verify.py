"""Step 5: run the checks that the repository declares, and keep what they printed."""

from __future__ import annotations

from bot import repo_config
from bot.models import Step
from bot.sessions import environments
from bot.sessions.moves import Move, To
from bot.sessions.services import Services
from bot.store.sessions import Turn

CHECK_SECONDS = 900.0


async def run(services: Services, turn: Turn) -> Move:
    """In the agent's own environment, and called so: a clean one of their own is not to be had here yet."""
    config = repo_config.load(turn.config)
    if turn.outcome is not None or not config.checks or turn.fork is not None:
        return To(Step.PUBLISH)
    environment = await environments.attach(services, turn)
    results = await environment.check(config.checks, CHECK_SECONDS)
    rows = [
        {"command": one.command, "exit_code": one.exit_code, "where": "agent", "tail": one.tail, "seconds": one.seconds}
        for one in results
    ]
    return To(Step.PUBLISH, {"verified": rows})
