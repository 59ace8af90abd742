"""Step 3: start the agent or find it again, store its output, and watch the time and requests to stop."""

from __future__ import annotations

import asyncio
import posixpath

from bot import repo_config
from bot.agent import prompt
from bot.errors import TransientError
from bot.kinds.shape import AgentReading, WorkFolders
from bot.models import InstallationId, Outcome, Step
from bot.sessions import (
    agent_memory,
    dialogue,
    environments,
    kinds,
    moves,
    packages,
    setbacks,
    side_questions,
    tool_servers,
)
from bot.sessions.environments import meter
from bot.sessions.money import spending_limits
from bot.sessions.money.budget import full_name
from bot.sessions.moves import Move, RunVerdict, To
from bot.sessions.publish import rescue
from bot.sessions.reading import briefing
from bot.sessions.rights import allowed_subagents, effort_of, fallback_of, rights_of
from bot.sessions.services import Services
from bot.store import conversation, gateway, sessions
from bot.store.sessions import Turn
from bot.words import endings
from sandbox.agents.base import AgentRun, ToolServers
from sandbox.execution import ExecutionEnvironment, RunState

LOOK_SECONDS = 2.0
"""We look for a stop and the deadline this often if no signal wakes us."""
LATE_SECONDS = 60.0
"""The runner keeps the deadline; this much later the host steps in."""
TOKEN_SLACK_SECONDS = 26 * 3600.0
"""Settling revokes the token. This date is for turns that never settle, and must stand a clock that jumps."""
JUMP_SECONDS = 30.0
MOST_REQUESTS = 2000
REQUESTS_BESIDE = 4
"""Requests at the same time as those of sub-agents: the agent's own, and small ones beside it."""
MOST_LINES = 500_000
MOST_BYTES = 512 << 20
"""Limits for the agent's output in one turn, all of which is stored: far more than an honest one needs."""


async def run(services: Services, turn: Turn) -> Move:
    environment = await environments.attach(services, turn)
    status = await environment.status(turn.key.n)
    was_lost = status.state is RunState.LOST
    if status.state is RunState.NOT_STARTED:
        await _start(services, turn, environment)
    readable = await _follow_and_watch(services, turn, environment)
    await dialogue.close_questions(services, turn, environment)
    status = await environment.status(turn.key.n)
    turn = await sessions.turn(services.store, turn.key)
    state = await services.board.folds.of(turn.key)
    if state.answers:
        await side_questions.conclude(services, turn)
    if was_lost and state.ended is None and (move := await setbacks.agent_lost(services, turn, environment)):
        return move
    if agent_memory.is_memory_refused(turn, status, state):
        return await agent_memory.begin_without_memory(services, turn)
    spent = await spending_limits.exhaustion_of(services, turn, refused=moves.has_no_credit(state))
    verdict = moves.judge(turn, status, state, exhausted=spent is not None)
    verdict = await moves.blame_gateway_or_provider(services.store, turn.key, verdict)
    if not readable and not turn.stop_requested:
        verdict = RunVerdict(Outcome.KILLED, endings.wrote_too_much(), "flood")
    if verdict.outcome is Outcome.FAILED and (question := await dialogue.unanswered_question(services, turn)):
        verdict = RunVerdict(Outcome.NEEDS_INPUT, question, "unanswered")
    if verdict.outcome is Outcome.OVER_BUDGET:
        spent = spent or await spending_limits.by_the_agents_count(services, turn)
        verdict = RunVerdict(Outcome.OVER_BUDGET, spent.sentence, spent.error)
    words, parts = kinds.of(turn).result(turn, state)
    return To(
        Step.COLLECT,
        {"agent_result": words, "agent_error": verdict.error, "exit_code": status.exit_code},
        (verdict.outcome, verdict.detail) if verdict.outcome else None,
        parts=parts,
    )


async def _start(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    session = await sessions.session(services.store, turn.key.session)
    thread = session.thread
    now = services.clock()
    used = setbacks.seconds_used(turn) if turn.attempt else 0.0
    await sessions.update_turn(services.store, turn.key, work_started_at=now - used, pulse_at=now)
    await gateway.revoke(services.store, turn.key)
    token = await gateway.mint(
        services.store,
        turn.key,
        thread.installation,
        model=turn.model,
        budget_usd=turn.budget_usd,
        expires_at=now + turn.timeout_seconds + TOKEN_SLACK_SECONDS,
        fallback=fallback_of(turn),
        max_requests=MOST_REQUESTS,
        concurrency=allowed_subagents(turn, services.settings.limits).at_once + REQUESTS_BESIDE,
        repo=thread.repo.id,
        user=turn.requester_id,
    )
    services.redactor.register(token.reveal())
    assert session.agent_session_id is not None
    may = rights_of(turn)
    servers, free = await _tool_servers(services, turn, thread.installation)
    files = await briefing.shelved(services, turn)
    plugins = []
    if turn.part(AgentReading).know_how:
        from bot.sessions.reading import know_how

        plugins = await know_how.shelved(services, turn)
    where, rules = turn.part(WorkFolders), dict[str, str]()
    if where.rules_sha:
        from bot.sessions.reading import folder_rules  # only repositories that have such rules enter it

        rules = await folder_rules.for_agents(services, turn)
    await environment.start(
        AgentRun(
            turn=turn.key.n,
            prompt=prompt.beside(briefing.turn_prompt(turn), environment.context(turn.key.n), list(files)),
            model=full_name(turn.model),
            token=token.reveal(),
            agent_session_id=session.agent_session_id,
            resume=turn.resumed,
            max_turns=turn.options.turns if turn.options else None,
            effort=effort_of(turn),
            fallback=fallback_of(turn),
            task_tokens=await spending_limits.pace(services, turn),
            basic_api=services.settings.model.provider.at is not None,
            budget_usd=await spending_limits.for_the_agent(services, turn),
            timeout_seconds=turn.timeout_seconds - used,
            instructions=turn.part(AgentReading).instructions or turn.traits.instructions,
            allowed_tools=(*may.allowed, *free),
            denied_tools=may.denied,
            permission=may.permission,
            subagents=allowed_subagents(turn, services.settings.limits),
            servers=servers,
            schema=kinds.of(turn).schema,
            attempt=turn.attempt,
            beside=files,
            plugins=plugins,
            clients=await packages.for_the_agent(services, turn, turn.timeout_seconds + TOKEN_SLACK_SECONDS)
            if repo_config.load(turn.config).registries
            else None,
            folder_rules=rules,
            known_folders=tuple(map(posixpath.dirname, where.rules)),
        )
    )


async def _tool_servers(
    services: Services, turn: Turn, installation: InstallationId
) -> tuple[ToolServers, tuple[str, ...]]:
    """Return the MCP servers of the agent, and those of their tools that it may use without a question."""
    if not repo_config.load(turn.config).mcp:
        return ToolServers(), ()
    programs, cloud = tool_servers.programs(turn), services.settings.e2b
    is_gated = cloud is None or cloud.unmetered is None  # past the gateway there is no way to a stored server
    found = await tool_servers.opened(services.store, turn, installation) if is_gated else {}
    asks = rights_of(turn).permission == "ask"
    inside = () if asks else (f"{tool_servers.PREFIX}{name}" for name in programs)
    free = (*tool_servers.free(found.values()), *inside)
    return ToolServers(tuple(found), programs, tool_servers.asked_about(found.values())), free


async def _follow_and_watch(services: Services, turn: Turn, environment: ExecutionEnvironment) -> bool:
    """Follow the run to its end; tasks beside it may end it sooner. False: it wrote too much."""
    watches = (_watch, dialogue.answer_questions, moves.stop_agent_if_disk_fills, meter.sample, rescue.save_checkpoints)
    tasks = (*watches, dialogue.deliver_messages, spending_limits.remind, spending_limits.tell_time)
    beside = [asyncio.create_task(moves.retry_until_done(task, services, turn, environment)) for task in tasks]
    try:
        if not await _follow(services, turn, environment):
            await environment.stop(turn.key.n, moves.STOP_GRACE_SECONDS)
            return False
        return True
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


async def _follow(services: Services, turn: Turn, environment: ExecutionEnvironment) -> bool:
    """Store the output; False if it is more than we store."""
    offset = turn.stream_offset
    lines = await conversation.count_events(services.store, turn.key)
    redact = services.redactor.redact
    async for chunk in environment.follow(turn.key.n, offset):
        clean = await asyncio.to_thread(
            lambda given: [(conversation.STREAM, redact(line)) for line in given], chunk.lines
        )
        stored = await conversation.append_events(
            services.store,
            turn.key,
            clean,
            expected_offset=offset,
            new_offset=chunk.next_offset,
            skipped=chunk.skipped,
        )
        if not stored:
            raise TransientError("another writer has stored this part of the output")
        offset = chunk.next_offset
        lines += len(chunk.lines)
        services.board.touch(turn.key)
        state = await services.board.folds.of(turn.key)
        if state.refused_status or state.asked or state.answers:
            services.signals.poke(turn.key)
        if lines > MOST_LINES or offset > MOST_BYTES:
            return False
    return True


async def _watch(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """End the run at a stop, a refusal or the deadline; the store shows the reason afterwards.

    The loop's clock never jumps; if the wall clock does, the token's end moves with it."""
    loop = asyncio.get_running_loop()
    left = turn.timeout_seconds + LATE_SECONDS
    began = (await sessions.turn(services.store, turn.key)).work_started_at or services.clock()
    ends = loop.time() + max(LATE_SECONDS, min(began + left - services.clock(), left))
    ahead = services.clock() - loop.time()
    while loop.time() <= ends:
        now, state = await sessions.turn(services.store, turn.key), await services.board.folds.of(turn.key)
        if now.stop_requested or state.refused_status is not None:
            break
        if abs(services.clock() - loop.time() - ahead) > JUMP_SECONDS:
            ahead = services.clock() - loop.time()
            await gateway.extend(services.store, turn.key, services.clock() + left + TOKEN_SLACK_SECONDS)
        await services.signals.wait(turn.key, LOOK_SECONDS)
    await environment.stop(turn.key.n, moves.STOP_GRACE_SECONDS)
