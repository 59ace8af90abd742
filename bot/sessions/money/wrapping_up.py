"""Tells the agent, once, that most of its money or time is gone: better a small whole than a large half."""

from __future__ import annotations

import asyncio

from bot.sessions.money import exhaustion
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from sandbox.execution import ExecutionEnvironment

SHARE = 0.8
LOOK_SECONDS = 1.0
MARKS = (30, 50)
"""Minutes into the work."""
TIME = "A note from Forgehand, which runs you: {gone} of the {all} minutes of this turn are gone."
MESSAGE_ID = "wrap-up"
"""Always the same, so that the agent is told once however often we are started anew."""
WORDS = (
    "A note from Forgehand, which runs you: {gone} of this turn is used up, and at its end you are stopped at once. "
    "Wrap up now: bring what you have into a state that can stand by itself, begin nothing new, and end with your "
    "summary, in which you say what is left to do."
)


async def remind(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Beside the run, until it was told."""
    while True:
        if await _is_told(services, turn, environment):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def tell_time(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """How late it is, now and then: nothing else tells an agent."""
    for minutes in (one for one in MARKS if one * 60 < turn.timeout_seconds):
        while await _minutes_gone(services, turn) < minutes:  # noqa: ASYNC110 - it is the store that knows
            await asyncio.sleep(LOOK_SECONDS)
        words = TIME.format(gone=minutes, all=f"{turn.timeout_seconds / 60:g}")
        await environment.steer(turn.key.n, f"time-{minutes}", words)


async def _minutes_gone(services: Services, turn: Turn) -> float:
    now = await sessions.turn(services.store, turn.key)
    return 0.0 if now.work_started_at is None else (services.clock() - now.work_started_at) / 60


async def _is_told(services: Services, turn: Turn, environment: ExecutionEnvironment) -> bool:
    now = await sessions.turn(services.store, turn.key)
    words = note(await exhaustion.share(services, now), _share_of_time(services, now))
    return words is not None and await environment.steer(turn.key.n, MESSAGE_ID, words)


def note(money: float, time: float) -> str | None:
    """What to say when these shares are gone. Past the end there is nothing to say: a word more would cost a request
    that is refused, and so turn an answer that has just come into a failure."""
    if money >= 1 or time >= 1:
        return None
    gone = [f"{SHARE:.0%} of the {name}" for name, share in (("money", money), ("time", time)) if share >= SHARE]
    return WORDS.format(gone=" and ".join(gone)) if gone else None


def _share_of_time(services: Services, turn: Turn) -> float:
    if turn.work_started_at is None or turn.timeout_seconds <= 0:
        return 0.0
    return (services.clock() - turn.work_started_at) / turn.timeout_seconds
