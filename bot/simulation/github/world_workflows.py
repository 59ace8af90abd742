"""Acts of Actions and other CI at a commit: workflows run, jobs end, and Apps hear of each check."""

from __future__ import annotations

from collections.abc import Mapping

from bot.simulation.github import payloads
from bot.simulation.github.accounts import App
from bot.simulation.github.state import CheckRun, Repository
from bot.simulation.github.statuses import CommitStatus, shown
from bot.simulation.github.workflows import Job, WorkflowRun, new_job
from bot.simulation.github.world import World

Ends = Mapping[str, str | None]


class Workflows(World):
    """The acts of CI on the checks of commits."""

    def run_workflow(
        self, repo: Repository, sha: str, jobs: Ends, *, logs: Mapping[str, bytes] | None = None, name: str = "CI"
    ) -> WorkflowRun:
        """Run a workflow; `jobs` has each job's conclusion by name, or None while it runs."""
        number, now = self.state.new_id(), self.state.clock()
        run = WorkflowRun(number, repo, name, self._branch(repo, sha), sha, self.state.new_id(), now)
        repo.workflows[run.id] = run
        for job in jobs:
            self._told(new_job(self.state, run, job).check, "created")
        for job, conclusion in jobs.items():
            if conclusion is not None:
                self.finish_job(run, job, conclusion, (logs or {}).get(job, b""))
        return run

    def finish_job(self, run: WorkflowRun, name: str, conclusion: str, log: bytes | None = b"") -> Job:
        job = run.job(name)
        job.log = log
        self._finished(job.check, conclusion)
        return job

    def annotate(self, check: CheckRun, path: str, line: int, message: str) -> None:
        """Mark a line, as a problem matcher or another App does."""
        found = check.output.get("annotations", [])
        level = "failure" if check.conclusion == "failure" else "notice"
        where = {"path": path, "start_line": line, "end_line": line, "annotation_level": level, "message": message}
        check.output = {**check.output, "annotations": [*found, where]}

    def check(
        self,
        repo: Repository,
        sha: str,
        name: str,
        conclusion: str,
        *,
        app: App,
        output: Mapping[str, str] | None = None,
    ) -> CheckRun:
        """Leave a finished check run of an App, as CI does."""
        number, now = self.state.new_id(), self.state.clock()
        check = CheckRun(number, repo, app, name, sha, "queued", None, now, output=dict(output or {}))
        check.suite = app.id
        repo.checks[check.id] = check
        self._finished(check, conclusion)
        return check

    def status(
        self, repo: Repository, sha: str, context: str, state: str, *, by: str, says: tuple[str, str] = ("", "")
    ) -> CommitStatus:
        """Set a status, as older CI systems do; `says` is a description and an address."""
        description, url = says
        number, now = self.state.new_id(), self.state.clock()
        one = CommitStatus(number, repo, sha, context, state, description or None, url or None, now)
        repo.statuses.append(one)
        payload = shown(self.state, one) | {"sha": sha, "name": repo.full_name, "branches": []}
        self.actions.events.tell(repo, self.person(by), "status", payload)
        return one

    def _finished(self, check: CheckRun, conclusion: str) -> None:
        check.status, check.conclusion, check.completed_at = "completed", conclusion, self.state.clock()
        check.history.append(("completed", conclusion))
        self._told(check, "completed")

    def _told(self, check: CheckRun, action: str) -> None:
        payload = {"action": action, "check_run": payloads.check_run(self.state, check)}
        self.actions.events.tell(check.repo, check.app.bot, "check_run", payload)

    def _branch(self, repo: Repository, sha: str) -> str:
        return next((name for name, tip in repo.branches().items() if tip == sha), "")
