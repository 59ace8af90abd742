"""One job from start to end: look at the folder, take a snapshot, let the agent work, bring the work back."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import replace
from pathlib import Path

from bot.errors import UserError
from bot.models import Outcome, Step
from bot.sessions.money.budget import Prices
from bot.sessions.moves import RunVerdict
from bot.settings import database
from bot.store import spend
from bot.store.base import Store
from bot.words import endings
from bot.workbench import folder as folders
from bot.workbench import landing, place, slots, snapshot, words
from bot.workbench.job import DONE, Audience, Landed, Report, WorkbenchJob, WorkbenchMeans
from bot.workbench.landing import BroughtWork
from bot.workbench.place import WorkbenchPlace
from bot.workbench.run import TURN, WorkbenchRun
from bot.workbench.snapshot import FolderSnapshot
from sandbox.errors import EnvironmentGone, SandboxError

BUNDLE_BYTES = 200 << 20
LONGEST_PROMPT = 100_000


class Workbench:
    """Runs one job. `stop` ends the agent and keeps its work; cancelling the task throws the work away."""

    def __init__(self, job: WorkbenchJob, means: WorkbenchMeans, audience: Audience, stop: asyncio.Event) -> None:
        self._job = job
        self._means = means
        self._audience = audience
        self._stop = stop
        self._began = time.monotonic()
        self._isolation = "none"
        self._said = ""
        self._left_out: tuple[str, ...] = ()

    async def execute(self) -> Report:
        prices = Prices.at(self._means.model)
        for model in self._job.models:
            prices.of(model)
        if not self._job.prompt.strip():
            raise UserError(words.NO_PROMPT)
        if len(self._job.prompt.encode("utf-8", "replace")) > LONGEST_PROMPT:
            raise UserError(words.long_prompt(LONGEST_PROMPT))
        self._audience.phase("Looking at the folder")
        found = await folders.look(self._job.path)
        with slots.taken(self._means.root) as slot:
            scratch = self._means.root / f"{slot.name}.run"
            await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)  # a killed run may have left it
            scratch.mkdir(mode=0o700)
            try:
                return await self._with_store(slot, scratch, found)
            finally:
                await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)

    async def _with_store(self, slot: Path, scratch: Path, found: folders.Folder) -> Report:
        store = await Store.open(database.in_folder(scratch / "store"))
        try:
            report = await self._reported(slot, scratch, found, store)
            return replace(report, cost=await spend.turn_cost(store, self._job.key))
        finally:
            await store.close()

    async def _reported(self, slot: Path, scratch: Path, found: folders.Folder, store: Store) -> Report:
        try:
            return await self._run(slot, scratch, found, store)
        except asyncio.CancelledError:
            if not self._stop.is_set():
                raise
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            return self._report(Outcome.STOPPED, words.ABANDONED)

    async def _run(self, slot: Path, scratch: Path, found: folders.Folder, store: Store) -> Report:
        taken = await snapshot.take(found, scratch / "mirror.git", int(time.time()))
        if taken.left_out:
            self._audience.note(words.left_out(taken.left_out))
        if self._stop.is_set():
            return self._report(Outcome.STOPPED, words.STOPPED_EARLY)
        self._audience.phase("Setting up the sandbox")
        async with place.opened(slot, self._job, self._means, store, taken, self._audience) as there:
            self._isolation = there.isolation
            verdict, bundle = await self._worked(there, store, taken, scratch)
        landed = Landed()
        if bundle is not None:
            self._audience.phase("Copying the work back")
            work = BroughtWork(self._job, self._means, taken, bundle, self._said, finished=verdict.outcome is None)
            landed = await landing.land(work)
        return self._concluded(verdict, landed)

    async def _worked(
        self, there: WorkbenchPlace, store: Store, taken: FolderSnapshot, scratch: Path
    ) -> tuple[RunVerdict, Path | None]:
        verdict = await self._ran(there, store, taken)
        if hosts := there.blocked_hosts():
            self._audience.note(words.blocked_hosts(hosts))
        self._audience.phase("Collecting the work")
        try:
            collected = await there.environment.collect(TURN, taken.base)
            self._left_out = collected.left_out
            if collected.left_out:
                self._audience.note(words.not_taken(collected.left_out))
            if not collected.changed:
                return verdict, None
            bundle = scratch / "work.bundle"
            await there.environment.fetch_bundle(collected, bundle, BUNDLE_BYTES)
            return verdict, bundle
        except SandboxError as error:
            lost = endings.step_failed(Step.COLLECT, str(error).rstrip("."))
            return RunVerdict(verdict.outcome or Outcome.FAILED, _sentences(verdict.detail, lost)), None

    async def _ran(self, there: WorkbenchPlace, store: Store, taken: FolderSnapshot) -> RunVerdict:
        if self._stop.is_set():
            return RunVerdict(Outcome.STOPPED, words.STOPPED_EARLY)
        self._audience.phase("Working")
        run = WorkbenchRun(self._job, store, there, self._audience, self._stop)
        try:
            return await run.to_its_end(taken)
        except EnvironmentGone:
            return RunVerdict(Outcome.KILLED, endings.environment_lost())
        except SandboxError as error:
            return RunVerdict(Outcome.FAILED, endings.step_failed(Step.WORK, str(error).rstrip(".")))
        finally:
            self._said = run.state.last_words

    def _concluded(self, verdict: RunVerdict, landed: Landed) -> Report:
        """Report the agent's own end first; for a finished run, what became of its work."""
        if verdict.outcome is not None:
            return self._report(verdict.outcome, _sentences(verdict.detail, landed.held), landed)
        if landed.held is not None:
            return self._report(Outcome.REFUSED, landed.held, landed)
        if not landed.files:
            return self._report(Outcome.NO_CHANGE, "", landed)
        is_missing = self._job.apply and not landed.applied
        return self._report(Outcome.FAILED if is_missing else DONE, "", landed)

    def _report(self, outcome: str, detail: str, landed: Landed | None = None) -> Report:
        landed = landed or Landed()
        return Report(
            outcome=outcome,
            detail=_sentences(detail, *landed.notes, landed.kept),
            result=self._said,
            seconds=time.monotonic() - self._began,
            isolation=self._isolation,
            landed=landed,
            left_out=self._left_out,
        )


def _sentences(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)
