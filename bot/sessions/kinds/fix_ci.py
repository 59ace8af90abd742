"""Gathers evidence of failed checks for the agent: annotations, failing steps, words of their Apps, ends of logs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.agent.material import Log
from bot.errors import GitHubRefused, GitHubUnavailable
from bot.github import checks
from bot.github.checks import CiJob, CiResult
from bot.github.client import InstallationClient
from bot.kinds import fix_ci
from bot.models import Outcome, Thread
from bot.sessions.kinds import Preparation, TurnKind
from bot.sessions.moves import End, To
from bot.sessions.reading import Evidence, head_checks
from bot.sessions.services import Services
from bot.store import ci, sessions
from bot.store.ci import Attempt
from bot.store.sessions import Turn
from bot.words import on_ci

MOST_CHECKS = 12
MOST_ANNOTATIONS = 50
MOST_TEXT = 30_000
LONGEST_LINE = 2_000
PIECE = 16 << 10
_STAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z ?", re.MULTILINE)


class FixCiTurn(TurnKind):
    traits = fix_ci.TRAITS

    async def begin(self, services: Services, turn: Turn, preparation: Preparation) -> Preparation | To | End:
        """End the turn if the failed checks are gone."""
        tip, attempt = preparation.start.tip, await ci.attempt(services.store, turn.source)
        if tip is None or (attempt is not None and attempt.sha != tip):
            await ci.moved(services.store, turn.source)
            return End(Outcome.NO_CHANGE, on_ci.HEAD_MOVED)
        red = await _gather(services, turn, tip, attempt)
        return replace(preparation, beside=red) if red else End(Outcome.NO_CHANGE, on_ci.NOTHING_RED)


async def _gather(services: Services, turn: Turn, sha: str, attempt: Attempt | None) -> Evidence | None:
    """Gather the evidence of the checks that are red at this commit; None without any."""
    thread = (await sessions.session(services.store, turn.key.session)).thread
    at = services.github.installation(thread.installation)
    pull = await at.pull(thread.repo, turn.number)
    standing = await head_checks.at_head(services.github, thread, pull, sha)
    if not standing.red:
        return None
    missing = [*(attempt.notes if attempt else ()), *on_ci.left_alone([one.name for one in standing.inherited])]
    missing += on_ci.not_ended([one.name for one in standing.under_way])
    missing += [on_ci.STATUSES_NOT_ALLOWED] if standing.without_statuses else []
    taken, rest = standing.red[:MOST_CHECKS], standing.red[MOST_CHECKS:]
    missing += on_ci.not_looked_at([one.name for one in rest])
    reader = _Reader(services, at, thread, missing)
    jobs = await reader.jobs(sha, taken)
    said = [(f"what the check {one.name} says", await reader.said(one, jobs.get(one.id))) for one in taken]
    logs = [await reader.log(one, jobs[one.id]) for one in taken if one.id in jobs]
    return Evidence(tuple(filter(None, logs)), tuple(said), tuple(missing))


@dataclass(frozen=True)
class _Reader:
    """Reads from GitHub; adds everything that it cannot get to `missing` and goes on."""

    services: Services
    at: InstallationClient
    thread: Thread
    missing: list[str]

    async def jobs(self, sha: str, red: Sequence[CiResult]) -> Mapping[int, CiJob]:
        """Map checks of Actions to their jobs. A status has neither a suite nor a number."""
        suites, wanted = {one.suite for one in red if one.suite}, {one.id for one in red if one.id}
        try:
            runs = await checks.workflow_runs(self.at, self.thread.repo, sha)
            found = await checks.jobs(self.at, self.thread.repo, [one for one in runs if one.suite in suites])
        except GitHubRefused:
            self.missing.append(on_ci.LOGS_NOT_ALLOWED)
            return {}
        return {job.check_id: job for job in found if job.check_id in wanted}

    async def said(self, one: CiResult, job: CiJob | None) -> str:
        rows = [f"{one.name} ({one.app}): {one.conclusion}"]
        rows += [f"failing step: {name}" for name in (job.failed_steps if job else ())]
        if one.annotations:
            found = await checks.annotations_of(self.at, self.thread.repo, one.id)
            rows += [f"{each.path}:{each.first}: {each.level}: {each.message}" for each in found[:MOST_ANNOTATIONS]]
        if one.annotations > MOST_ANNOTATIONS:
            self.missing.append(on_ci.annotations_cut(one.name, one.annotations, MOST_ANNOTATIONS))
        rows += [part for part in (one.title, one.summary, one.text) if part]
        text = "\n".join(rows)
        if len(text) > MOST_TEXT:
            self.missing.append(on_ci.said_cut(one.name, len(text), MOST_TEXT))
        return (await self._clean(text))[:MOST_TEXT]

    async def log(self, one: CiResult, job: CiJob) -> Log | None:
        try:
            tail = await self.services.github.job_logs.tail(await checks.log_address(self.at, self.thread.repo, job.id))
        except (GitHubRefused, GitHubUnavailable):
            self.missing.append(on_ci.no_log(one.name))
            return None
        if tail.cut or not tail.whole:
            self.missing.append(on_ci.log_cut(one.name, tail.read, whole=tail.whole))
        return Log(one.name, await self._clean(_STAMP.sub("", tail.text)))

    async def _clean(self, text: str) -> str:
        """Redact piece by piece, so that other tasks have their turn. Invisible characters are removed later."""
        stream, parts = self.services.redactor.stream(), list[str]()
        for at in range(0, len(text), PIECE):
            parts.append(stream.feed(text[at : at + PIECE]))
            await asyncio.sleep(0)
        lines = "".join([*parts, stream.end()]).splitlines()
        return "\n".join(line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} […]" for line in lines)


KIND = FixCiTurn()
