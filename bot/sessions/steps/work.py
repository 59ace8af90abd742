"""Step 3: start the agent or find it again, store what it says, and watch over time, budget and a wish to stop."""

from __future__ import annotations

import asyncio

from bot.errors import TransientError
from bot.models import Step
from bot.sessions import environments
from bot.sessions.exhaustion import is_exhausted
from bot.sessions.moves import Move, To
from bot.sessions.services import Services
from bot.sessions.verdict import judge
from bot.store import events, gateway, sessions
from bot.store.sessions import Turn
from sandbox.agents.base import AgentRun
from sandbox.execution import ExecutionEnvironment, RunState

LOOK_SECONDS = 2.0
"""How often the stop wish, the deadline and the budget are looked at when nothing wakes us."""
GRACE_SECONDS = 3.0
LATE_SECONDS = 60.0
"""The runner keeps the deadline; past it by this much the host steps in."""
TOKEN_SLACK_SECONDS = 600.0
MOST_REQUESTS = 2000
MOST_PARALLEL_REQUESTS = 8
NOBODY_TO_ASK = "Nobody can answer while you work. Go on without it, or end and put your question into your summary."
WRITING_TOOLS = ("Edit", "Write", "NotebookEdit")


async def run(services: Services, turn: Turn) -> Move:
    environment = await environments.attach(services, turn)
    status = await environment.status(turn.key.n)
    if status.state is RunState.NOT_STARTED:
        await _start(services, turn, environment)
    await _follow_and_watch(services, turn, environment)
    status = await environment.status(turn.key.n)
    turn = await sessions.turn(services.store, turn.key)
    state = await services.board.folds.of(turn.key)
    exhausted = await is_exhausted(services, turn)
    verdict = judge(turn, status, state, exhausted=exhausted)
    return To(
        Step.COLLECT,
        {
            "agent_result": state.ended.text if state.ended else state.said,
            "agent_error": verdict.error,
            "exit_code": status.exit_code,
        },
        (verdict.outcome, verdict.detail) if verdict.outcome else None,
    )


async def _start(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    thread = (await sessions.session(services.store, turn.key.session)).thread
    session = await sessions.session(services.store, turn.key.session)
    now = services.clock()
    await sessions.update_turn(services.store, turn.key, work_started_at=now)
    token = await gateway.mint(
        services.store,
        turn.key,
        thread.installation,
        model=turn.model,
        budget_usd=turn.budget_usd,
        expires_at=now + turn.timeout_seconds + TOKEN_SLACK_SECONDS,
        max_requests=MOST_REQUESTS,
        concurrency=MOST_PARALLEL_REQUESTS,
    )
    services.redactor.register(token.reveal())
    assert session.agent_session_id is not None and turn.context is not None
    await environment.start(
        AgentRun(
            turn=turn.key.n,
            prompt=turn.context,
            model=turn.model,
            token=token.reveal(),
            agent_session_id=session.agent_session_id,
            resume=turn.resumed,
            max_turns=turn.max_turns,
            budget_usd=turn.budget_usd,
            timeout_seconds=turn.timeout_seconds,
            instructions=environments.INSTRUCTIONS,
            allowed_tools=(),
            denied_tools=WRITING_TOOLS if turn.kind == "ask" else (),
            permission="auto",
        )
    )


async def _follow_and_watch(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Both until the run has ended; the watcher can only make it end sooner."""
    watcher = asyncio.create_task(_watch(services, turn, environment))
    try:
        await _follow(services, turn, environment)
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)


async def _follow(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    offset = turn.stream_offset
    async for chunk in environment.follow(turn.key.n, offset):
        stored = await events.append(
            services.store,
            turn.key,
            [("stream", services.redactor.redact(line)) for line in chunk.lines],
            expected_offset=offset,
            new_offset=chunk.next_offset,
            skipped=chunk.skipped,
        )
        if not stored:
            raise TransientError("another writer has stored this part of the output")
        offset = chunk.next_offset
        services.board.touch(turn.key)
        state = await services.board.folds.of(turn.key)
        if state.refused_status or state.asked:
            services.signals.poke(turn.key)


async def _watch(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Ends the run when it must; which of the reasons it was is judged from the store afterwards."""
    began = services.clock()
    answered: set[str] = set()
    while not await _must_end(services, turn, began):
        await _answer_asks(services, turn, environment, answered)
        await services.signals.wait(turn.key, LOOK_SECONDS)
    await environment.stop(turn.key.n, GRACE_SECONDS)


async def _answer_asks(services: Services, turn: Turn, environment: ExecutionEnvironment, answered: set[str]) -> None:
    """Nobody can be asked in the middle of the work yet: a question that waits is a no, not a hanging turn."""
    asked = (await services.board.folds.of(turn.key)).asked
    for request_id in asked.keys() - answered:
        await environment.forbid(turn.key.n, request_id, NOBODY_TO_ASK)
        answered.add(request_id)


async def _must_end(services: Services, turn: Turn, began: float) -> bool:
    now = await sessions.turn(services.store, turn.key)
    late = services.clock() > (now.work_started_at or began) + now.timeout_seconds + LATE_SECONDS
    refused = (await services.board.folds.of(turn.key)).refused_status is not None
    return bool(now.stop_requested) or late or refused
