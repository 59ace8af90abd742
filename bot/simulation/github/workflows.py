"""GitHub Actions: runs of workflows, their jobs with steps and logs, and repeating failed jobs."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from bot.simulation.github.accounts import App
from bot.simulation.github.state import CheckRun, Repository, State

SLUG = "github-actions"
FAILED = ("failure", "timed_out", "cancelled")
STEPS = ("Set up job", "Run tests", "Complete job")
FAILING_STEP = 1


@dataclass(eq=False)
class Job:
    """One attempt at a job, shown as a check run of the same number."""

    check: CheckRun
    attempt: int
    log: bytes | None = field(default=None, repr=False)
    """None if there is none yet, or no longer."""

    @property
    def steps(self) -> list[tuple[str, str | None]]:
        found: list[tuple[str, str | None]] = []
        for place, name in enumerate(STEPS):
            failed = place == FAILING_STEP and self.check.conclusion in FAILED
            found.append((name, self.check.conclusion if failed else self.check.conclusion and "success"))
        return found


@dataclass(eq=False)
class WorkflowRun:
    id: int
    repo: Repository = field(repr=False)
    name: str
    branch: str
    sha: str
    suite: int
    created_at: float
    attempt: int = 1
    jobs: list[Job] = field(default_factory=list)
    """The jobs of all attempts, in order."""

    @property
    def workflow(self) -> int:
        """Return the number of its file, the same for all runs of a name."""
        return zlib.crc32(f"{self.repo.id} {self.name}".encode())

    @property
    def latest(self) -> list[Job]:
        """Return the last attempt at each job."""
        return list({job.check.name: job for job in self.jobs}.values())

    @property
    def status(self) -> str:
        states = [job.check.status for job in self.latest]
        return "completed" if set(states) == {"completed"} else "in_progress"

    @property
    def conclusion(self) -> str | None:
        if self.status != "completed":
            return None
        return "failure" if any(job.check.conclusion in FAILED for job in self.latest) else "success"

    def job(self, name: str) -> Job:
        return next(job for job in self.latest if job.check.name == name)


def actions_app(state: State) -> App:
    """Return GitHub's own App, which nobody installs; it has no hook and no key."""
    found = next((app for app in state.apps.values() if app.slug == SLUG), None)
    if found is None:
        owner, bot = state.user("github"), state.user(f"{SLUG}[bot]", "Bot")
        found = App(state.new_id(), SLUG, owner, bot, "", "", "", "", {}, [], state.clock())
        state.apps[found.id] = found
    return found


def new_job(state: State, run: WorkflowRun, name: str) -> Job:
    now = state.clock()
    check = CheckRun(state.new_id(), run.repo, actions_app(state), name, run.sha, "queued", None, now, suite=run.suite)
    check.details_url = f"{state.url}/{run.repo.full_name}/actions/runs/{run.id}/job/{check.id}"
    run.repo.checks[check.id] = check
    job = Job(check, run.attempt)
    run.jobs.append(job)
    return job


def run_failed_again(state: State, run: WorkflowRun) -> list[Job]:
    """Queue another attempt at the failed jobs."""
    failed = [job.check.name for job in run.latest if job.check.conclusion in FAILED]
    run.attempt += 1
    return [new_job(state, run, name) for name in failed]
