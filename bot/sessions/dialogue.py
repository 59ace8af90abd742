"""Carries words and approvals between people and the agent, and answers in discussions of the diff."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import replace
from typing import Any

from bot import repo_config
from bot.agent import material, prompt
from bot.agent.material import DiscussionAnswer
from bot.errors import GitHubRefused
from bot.kinds.shape import OnFork, Places
from bot.live import questions as live_questions
from bot.models import PUSHED, Outcome, Spot, Thread
from bot.outbound import neutralise
from bot.sessions import reading, side_questions, tool_servers
from bot.sessions.reading import briefing
from bot.sessions.reviews import discussions
from bot.sessions.rights import allowed_subagents
from bot.sessions.services import Services
from bot.store import approvals, conversation, findings, sessions
from bot.store.approvals import Approval, ApprovalAnswer, ApprovalKind, ApprovalRequest, ApprovalState, Scope
from bot.store.conversation import StoredMessage
from bot.store.sessions import Turn
from bot.text import blocks, markup
from bot.text.markup import shown
from bot.words import endings, on_forks
from sandbox.agents.events import PermissionAsked
from sandbox.execution import ExecutionEnvironment

MOST = 1_500
SAID_EVERYWHERE = (*PUSHED, Outcome.ANSWERED)
"""Only the live comment tells of other ends, not each line of a review."""
LOOK_SECONDS = 1.0
MAIL_LOOK_SECONDS = 2.0
WAIT_SECONDS = 600.0
MOST_SHOWN = 4_000
PLAN_READY = "ExitPlanMode"
"""The call by which an agent in plan mode hands its plan over."""
QUESTIONS = ("AskUserQuestion", PLAN_READY)
NOBODY_TO_ASK = "Nobody can answer while you work. Go on without it, or end and put your question into your summary."
PLAN_TAKEN = "People decide about the plan after you have ended: end now, with the whole plan as your last words."
ONLY_READING = "You are writing a plan: reading is all that is allowed. Go on without this."
TOO_LONG = f"People must see all arguments: shorten them to {MOST_SHOWN:,} characters, or make several calls."
NO_ANSWER = "Nobody answered in time, so it is a no for now. Your work so far is kept."
ASIDE = ("description", "timeout", "run_in_background")
"""Parts of a call's input that do not change its effect on the repository."""


async def answer_in_diff(services: Services, turn: Turn) -> None:
    """Reply once in each discussion of the diff (a marker finds the reply again) and resolve those that are settled."""
    spots = await asked_at(services, turn)
    session = await sessions.session(services.store, turn.key.session)
    # A turn from an issue may have heard words on its pull request.
    on_issue = turn.number == session.number and not session.is_pull
    number = session.pull_number if on_issue and session.pull_number is not None else turn.number
    thread = replace(session.thread, number=number, is_pull=True)
    said = material.answers_to_discussions(turn.agent_result or "")
    settled = []
    for place, spot in enumerate(spots, 1):
        answer = said.get(place)
        if len(spots) == 1 or answer is not None or _is_said_everywhere(turn):
            await _reply(services, turn, thread, spot, _words(turn, answer, alone=len(spots) == 1))
        if turn.outcome is Outcome.PUSHED and material.is_settled(
            spot, answer, [str(file["path"]) for file in turn.files_changed or ()]
        ):
            settled.append(spot.comment_id)
    await discussions.resolve(services.github, services.outbound, thread, settled)
    await findings.resolve_answered(services.store, thread.repo.id, settled)


async def asked_at(services: Services, turn: Turn) -> list[Spot]:
    """List the places where the turn began, then those where people wrote to the agent while it worked."""
    return material.distinct_places(
        [*turn.part(Places).asked, *await conversation.places_heard(services.store, turn.key)]
    )


def _words(turn: Turn, answer: DiscussionAnswer | None, *, alone: bool) -> str:
    if answer is not None and answer.words:
        return neutralise.inert(answer.words[:MOST])
    if not alone:
        return ""
    said = neutralise.inert((turn.agent_result or "")[:MOST])
    if _is_said_everywhere(turn):
        return "\n\n".join(part for part in (turn.detail, said) if part)
    return turn.detail or said


def _is_said_everywhere(turn: Turn) -> bool:
    return turn.outcome in SAID_EVERYWHERE or _on_fork(turn) is not None


def _on_fork(turn: Turn) -> str | None:
    """Head the end of work on a fork, which is no review even if its outcome says so."""
    if turn.part(OnFork).fork is None or not turn.traits.changes or turn.outcome is None:
        return None
    return on_forks.headline(turn.outcome)


async def _reply(services: Services, turn: Turn, thread: Thread, spot: Spot, words: str) -> None:
    marker = f"<!-- forgehand:done={turn.key.session}-{turn.key.n}-{spot.comment_id} -->"
    ended = endings.ended_in_diff(turn.outcome or Outcome.FAILED, turn.commit_sha, _on_fork(turn))
    body = f"{marker}\n{ended}\n\n{words}".rstrip()
    with contextlib.suppress(GitHubRefused):  # the discussion was deleted or locked
        await services.outbound.reply(thread, spot.comment_id, body, marker)


async def answer_questions(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    asking = _Asking(services, turn, environment)
    while True:
        state = await services.board.folds.of(turn.key)
        for asked in list(state.asked.values()):
            await asking.look_at(asked)
        for request_id, number in list(state.spawning.items()):
            await asking.count(request_id, number)
        await services.signals.wait(turn.key, LOOK_SECONDS)


class _Asking:
    """The questions of one run. Its memory only saves repetitions, which would be harmless."""

    def __init__(self, services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
        self._services = services
        self._turn = turn
        self._environment = environment
        self._people = turn.traits.changes
        self._about_all = repo_config.load(turn.config).permission == "ask"
        self._settled: set[str] = set()
        self._shown: set[str] = set()

    async def look_at(self, asked: PermissionAsked) -> None:
        if asked.request_id in self._settled:
            return
        is_servers = asked.tool.startswith(tool_servers.PREFIX)
        if is_servers and len(_arguments(asked)) > MOST_SHOWN:
            await self._environment.forbid(self._turn.key.n, asked.request_id, TOO_LONG)
        elif self._people and (is_servers or (self._about_all and asked.tool not in QUESTIONS)):
            approval = await self._asked(asked)
            if approval.state is ApprovalState.OPEN:
                return
            await self._tell(approval, asked.request_id)
        else:
            to_a_planner = PLAN_TAKEN if asked.tool == PLAN_READY else ONLY_READING
            words = to_a_planner if self._turn.traits.plans else NOBODY_TO_ASK
            await self._environment.forbid(self._turn.key.n, asked.request_id, words)
        self._settled.add(asked.request_id)
        self._services.board.touch(self._turn.key)

    async def count(self, request_id: str, number: int) -> None:
        """Permit or forbid one more sub-agent, without a question for people."""
        if request_id in self._settled:
            return
        n, most = self._turn.key.n, allowed_subagents(self._turn, self._services.settings.limits).most
        if number <= most:
            await self._environment.permit(n, request_id)
        else:
            await self._environment.forbid(n, request_id, endings.no_more_subagents(most))
        self._settled.add(request_id)

    async def _asked(self, asked: PermissionAsked) -> Approval:
        """Store and show the question; answer it at once if people allowed the same call before."""
        store, now, key = self._services.store, self._services.clock(), self._turn.key
        question = ApprovalRequest(key, ApprovalKind.TOOL, matter(asked), now + WAIT_SECONDS, asked.request_id)
        approval = await approvals.ask(store, question)
        if approval.state is not ApprovalState.OPEN:
            return approval
        if (granted := await _granted(self._services, self._turn, approval)) is not None:
            given = ApprovalAnswer(ApprovalState.APPROVED, granted.answered_by or "", f"as {granted.id}")
            await approvals.answer(store, approval.id, given)
        elif now >= approval.expires_at:
            await approvals.expire(store, approval.id)
        elif approval.id not in self._shown:
            await _put_to_people(self._services, self._turn, approval)
            self._shown.add(approval.id)
        return await approvals.get(store, approval.id) or approval

    async def _tell(self, approval: Approval, request_id: str) -> None:
        n = self._turn.key.n
        if approval.state is ApprovalState.APPROVED and not approval.late:
            await self._environment.permit(n, request_id)
        elif approval.state is ApprovalState.DENIED:
            await self._environment.forbid(n, request_id, f"{approval.answered_by} said no. Go on without it.")
        else:
            await self._environment.forbid(n, request_id, NO_ANSWER, interrupt=True)


async def _granted(services: Services, turn: Turn, mine: Approval) -> Approval | None:
    """Find a yes of this session to the very same call: for all of it, or for this turn and still unused."""
    known = await approvals.of_session(services.store, turn.key.session)
    used = {one.source for one in known}
    for one in known:
        is_same = one.matter.get("call") == mine.matter["call"] and one.kind == mine.kind
        is_free = one.scope is Scope.SESSION or (one.id == turn.approval and f"as {one.id}" not in used)
        if one.state is ApprovalState.APPROVED and is_same and is_free:
            return one
    return None


async def _put_to_people(services: Services, turn: Turn, approval: Approval) -> None:
    """Post a separate comment, since editing one notifies nobody; its marker finds it again."""
    thread = replace((await sessions.session(services.store, turn.key.session)).thread, number=turn.number)
    body, marker = live_questions.body(approval, services.settings.command), live_questions.marker(approval.id)
    services.board.touch(turn.key, pressing=True)  # it must not show that the call runs
    try:
        posted = await services.outbound.comment(thread, body, marker)
    except GitHubRefused:  # a locked thread: the live comment shows the question too, and the time runs
        return
    await approvals.put_question(services.store, turn.key, approval.id, posted.id, approval.state)
    services.board.touch(turn.key)


def matter(asked: PermissionAsked) -> dict[str, Any]:
    if asked.tool.startswith(tool_servers.PREFIX):
        return _matter_of_server(asked)
    told = json.dumps({name: value for name, value in asked.input.items() if name not in ASIDE}, sort_keys=True)
    if len(told) > MOST_SHOWN:  # a yes to a call that people did not see whole never counts again
        told += asked.request_id
    call = hashlib.sha256(f"{asked.tool}\n{told}".encode()).hexdigest()
    return {"tool": asked.tool, "shown": _shown(asked), "call": call}


def _matter_of_server(asked: PermissionAsked) -> dict[str, Any]:
    """Show all arguments: none of them is an aside, since they leave the sandbox. The gateway lets a call pass by
    `exact`."""
    exact = tool_servers.call_digest(asked.tool, asked.input)
    said = f"{shown(asked.tool, 120)}\n\n{markup.fenced(_arguments(asked))}"
    return {"tool": asked.tool, "shown": said, "call": exact, "exact": exact}


def _arguments(asked: PermissionAsked) -> str:
    return blocks.spelled_out(json.dumps(asked.input, indent=1, ensure_ascii=False))


def _shown(asked: PermissionAsked) -> str:
    why = asked.input.get("description")
    what = asked.input.get("command") or asked.input.get("url") or json.dumps(asked.input, indent=1, ensure_ascii=False)
    text = blocks.spelled_out(str(what))
    cut = "" if len(text) <= MOST_SHOWN else f"\n\n(Shortened: it is {len(text):,} characters long.)"
    reason = f"\n\nIts reason: {shown(why, 300)}" if isinstance(why, str) and why else ""
    return f"{shown(asked.tool, 60)}\n\n{markup.fenced(text[:MOST_SHOWN])}{cut}{reason}"


async def close_questions(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Turn unanswered questions, and answers that the ended agent never heard, into late ones."""
    await approvals.expire_questions(services.store, turn.key)
    for one in await approvals.of_turn(services.store, turn.key):
        if one.kind is not ApprovalKind.TOOL or one.state is not ApprovalState.APPROVED or one.late:
            continue
        heard = await environment.permit(turn.key.n, one.request_id)
        if not heard and (key := await approvals.missed(services.store, one.id)):
            services.board.touch(key)


async def unanswered_question(services: Services, turn: Turn) -> str | None:
    """Word the question that ended the turn; None if none did."""
    for one in await approvals.of_turn(services.store, turn.key):
        if one.kind is ApprovalKind.TOOL and (one.state is ApprovalState.EXPIRED or one.late):
            return endings.nobody_answered(one.id, str(one.matter["shown"]), services.settings.command)
    return None


async def deliver_messages(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Deliver beside the run, until the agent takes no more."""
    questions, asked = set[str](), set[str]()
    while True:
        for message in await conversation.waiting(services.store, turn.key):
            if message.source in questions:
                continue
            if not await _is_allowed(services, turn, message):
                await conversation.refuse(services.store, message)
                services.board.touch(turn.key)
            elif message.beside:
                questions.add(message.source)
            elif not await _give(services, turn, message, environment):
                return
        if questions and not await side_questions.look(services, turn, environment, asked):
            return
        await services.signals.wait(turn.key, MAIL_LOOK_SECONDS)


async def _is_allowed(services: Services, turn: Turn, message: StoredMessage) -> bool:
    """Ask GitHub again: the author may have lost access since."""
    thread = (await sessions.session(services.store, turn.key.session)).thread
    reads = services.github.installation(thread.installation)
    return await reading.may_write(reads, thread.repo, message.author, message.request.requester_id)


async def _give(services: Services, turn: Turn, message: StoredMessage, environment: ExecutionEnvironment) -> bool:
    """Send one message; the reaction comes before the row, so a repetition after a crash doubles neither."""
    spot, number = message.request.spot, 0
    if spot is not None:
        known = material.distinct_places([*await asked_at(services, turn), spot])
        number = next((at for at, one in enumerate(known, 1) if one.comment_id == spot.comment_id), 0)
    words = prompt.interjection(message.author, message.text, spot, number)
    words = services.redactor.redact(await briefing.with_enclosures(services, turn, message, environment, words))
    if not await environment.steer(turn.key.n, f"said-{message.source}", words):
        return False
    new = message.request
    if new.source_comment is not None:
        on_diff = spot is not None
        with contextlib.suppress(GitHubRefused):  # gone or locked: the agent has it all the same
            await services.outbound.react(new.thread, new.source_comment, "rocket", on_review_comment=on_diff)
    await conversation.delivered(services.store, message)
    services.board.touch(turn.key)
    return True


async def pass_on_messages(services: Services, turn: Turn) -> None:
    """Turn messages that the agent never got into the next turn, unless somebody stopped this one."""
    for message in await conversation.waiting(services.store, turn.key):
        if turn.stop_requested:
            await conversation.drop(services.store, message)
        elif not await _is_allowed(services, turn, message):
            await conversation.refuse(services.store, message)
        elif key := await conversation.move(services.store, message):
            services.board.touch(key)
