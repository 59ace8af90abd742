"""One run of the agent: starts it, follows it, and watches its time, its money and the person's wish to stop."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from bot.errors import UserError
from bot.live.state import LiveState
from bot.models import InstallationId
from bot.sessions import moves
from bot.sessions.dialogue import NOBODY_TO_ASK
from bot.sessions.money import budget
from bot.sessions.money.budget import BudgetDecision, Ledger
from bot.sessions.moves import RunVerdict, judge
from bot.store import gateway, spend
from bot.store.base import Store
from bot.words import endings
from bot.workbench import plain, words
from bot.workbench.job import Audience, WorkbenchJob
from bot.workbench.place import WorkbenchPlace
from bot.workbench.snapshot import FolderSnapshot
from sandbox.agents.base import AgentRun
from sandbox.agents.events import PermissionAsked

LOOK_SECONDS = 1.0
LATE_SECONDS = 60.0
TOKEN_SLACK_SECONDS = 600.0
NOBODY = InstallationId(0)
TURN = 1
MOST_RULES = 64 << 10
RULE_FILES = ("CLAUDE.md", "AGENTS.md")

INSTRUCTIONS = """\
You work for Forgehand on a copy of a folder of the person who asks. Your working directory is that copy.
- Change files in the working directory; whatever differs there when you finish is handed to the person as one change.
  You need not commit, and you cannot push: there is no remote and no credential here.
- The network is closed but for hosts that the person allows. Do not try to work around that.
- Nobody answers questions while you work. If you cannot do what was asked, say so plainly and say what you need.
- End with a short summary for the person who asked: what you changed, how you checked it, what is left.
"""


@dataclass(frozen=True)
class WorkbenchTerms:
    stop_requested: str | None
    timeout_seconds: float
    budget_usd: float


class WorkbenchRun:
    """The run of one job; `stop` is the person's wish, set from outside."""

    def __init__(
        self, job: WorkbenchJob, store: Store, place: WorkbenchPlace, audience: Audience, stop: asyncio.Event
    ) -> None:
        self.state = LiveState()
        self._job = job
        self._store = store
        self._environment = place.environment
        self._audience = audience
        self._stop = stop
        self._wake = asyncio.Event()

    async def to_its_end(self, snapshot: FolderSnapshot) -> RunVerdict:
        await self._start(snapshot)
        watcher = asyncio.create_task(self._watch())
        try:
            await self._follow()
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
        await gateway.revoke(self._store, self._job.key)
        return await self._verdict()

    async def _start(self, snapshot: FolderSnapshot) -> None:
        job = self._job
        token = await gateway.mint(
            self._store,
            job.key,
            NOBODY,
            model=job.model,
            fallback=job.fallback,
            budget_usd=job.budget_usd,
            expires_at=time.time() + job.timeout_seconds + TOKEN_SLACK_SECONDS,
        )
        await self._environment.start(
            AgentRun(
                turn=TURN,
                prompt=job.prompt,
                model=budget.full_name(job.model),
                token=token.reveal(),
                agent_session_id=str(uuid.uuid4()),
                resume=False,
                max_turns=job.max_turns,
                effort=job.effort,
                fallback=budget.full_name(job.fallback) if job.fallback is not None else None,
                basic_api=job.basic_api,
                budget_usd=job.budget_usd,
                task_tokens=job.task_tokens,
                timeout_seconds=job.timeout_seconds,
                subagents=job.subagents,
                instructions=await asyncio.to_thread(instructions, snapshot),
            )
        )

    async def _follow(self) -> None:
        decoder = self._environment.agent.decoder()
        async for chunk in self._environment.follow(TURN, 0):
            for line in chunk.lines:
                for event in decoder.feed(line):
                    self.state.apply(event, time.time())
                    self._audience.event(event, self.state)
                    if isinstance(event, PermissionAsked):
                        await self._answer(event)
            self._audience.spent(await spend.turn_cost(self._store, self._job.key))
            if self.state.refused_status:
                self._wake.set()

    async def _answer(self, asked: PermissionAsked) -> None:
        """Permit sub-agents up to their limit, and nothing else."""
        number = self.state.spawning.get(asked.request_id)
        if number is not None and number <= self._job.subagents.most:
            await self._environment.permit(TURN, asked.request_id)
        else:
            no = NOBODY_TO_ASK if number is None else endings.no_more_subagents(self._job.subagents.most)
            await self._environment.forbid(TURN, asked.request_id, no)

    async def _watch(self) -> None:
        """End the run when it must; `_verdict` judges the reason."""
        latest = time.monotonic() + self._job.timeout_seconds + LATE_SECONDS
        while not (self._stop.is_set() or self.state.refused_status or time.monotonic() > latest):
            await _first_of(self._stop, self._wake)
            self._audience.spent(await spend.turn_cost(self._store, self._job.key))
        await self._environment.stop(TURN, moves.STOP_GRACE_SECONDS)

    async def _verdict(self) -> RunVerdict:
        job = self._job
        status = await self._environment.status(TURN)
        cost = await spend.turn_cost(self._store, job.key)
        exhausted = budget.decide([Ledger(cost.counted_usd, 0.0, job.budget_usd)]) is BudgetDecision.EXHAUSTED
        terms = WorkbenchTerms("You" if self._stop.is_set() else None, job.timeout_seconds, job.budget_usd)
        found = judge(terms, status, self.state, exhausted=exhausted)
        if found.error == "out_of_credit":
            return RunVerdict(found.outcome, words.OUT_OF_CREDIT, found.error)
        found = await moves.blame_gateway_or_provider(self._store, job.key, found)
        if found.error and found.error.startswith("provider_"):
            status_code = found.error.removeprefix("provider_")
            said = words.foreign_refused(found.detail) if job.basic_api else words.provider_refused(status_code)
            return RunVerdict(found.outcome, said, found.error)
        if status.error and found.error == "no_result":
            return RunVerdict(found.outcome, status.error, found.error)
        return found


async def _first_of(*events: asyncio.Event) -> None:
    """Wait until one of them is set, or until it is time for another look."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


def instructions(snapshot: FolderSnapshot) -> str:
    """Join our instructions and the folder's own rules for agents, which count because the folder is the person's."""
    folder = snapshot.folder
    parts = [INSTRUCTIONS]
    if folder.inside:
        parts.append(f"The request is about the folder `{folder.inside}` of this repository: start there.")
    for path in dict.fromkeys((folder.top, folder.path)):
        for file in (path / name for name in RULE_FILES):
            if (text := _rules(file)) is not None:
                parts.append(f"The folder's own rules ({file.relative_to(folder.top)}):\n\n{text}")
                break
    return "\n\n".join(parts)


def _rules(file: Path) -> str | None:
    try:
        found = plain.content(file, MOST_RULES)
    except UserError:
        return None  # a link, or no file
    return None if found is None else found.decode("utf-8", "replace")
