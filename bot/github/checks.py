"""Reads the checks of a commit, whoever runs them: results, annotations, where their logs are.

A commit's statuses, the older way in which CI systems report, become results too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from bot.errors import NotFound
from bot.github.api import ApiCall
from bot.github.reads import PAGE, ApiCaller, base, collect, segment
from bot.github.types import Annotation, TokenPurpose
from bot.models import Repo

FAILED = ("failure", "timed_out", "startup_failure")
"""Conclusions that call for a fix; people who cancelled a check, or have to act on it, know that themselves."""
STATUS_APP = "commit status"
_CONCLUSIONS = {"success": "success", "failure": "failure", "error": "failure"}
UNDECIDED = ("cancelled", "action_required", "stale")
"""Conclusions that mean neither passed nor failed."""


@dataclass(frozen=True)
class CiResult:
    """The latest run of a check on a commit."""

    id: int
    name: str
    status: str
    conclusion: str | None
    url: str
    app_id: int = 0
    app: str = ""
    suite: int = 0
    title: str = ""
    summary: str = ""
    text: str = ""
    annotations: int = 0

    @property
    def ended(self) -> bool:
        return self.status == "completed"

    @property
    def failed(self) -> bool:
        return self.ended and self.conclusion in FAILED


@dataclass(frozen=True)
class WorkflowRun:
    """A run of a workflow of GitHub Actions; its checks are one suite."""

    id: int
    suite: int
    attempt: int
    status: str
    workflow: int = 0
    """The number of the workflow's file."""

    @property
    def ended(self) -> bool:
        return self.status == "completed"


@dataclass(frozen=True)
class CiJob:
    """A job of a workflow's run; its check run shows the same."""

    id: int
    check_id: int
    failed_steps: tuple[str, ...]


class _App(msgspec.Struct):
    id: int
    slug: str | None = None


class _Suite(msgspec.Struct):
    id: int = 0


class _Output(msgspec.Struct):
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations_count: int = 0


class _Run(msgspec.Struct):
    id: int
    name: str
    status: str
    conclusion: str | None = None
    html_url: str | None = None
    app: _App | None = None
    check_suite: _Suite | None = None
    output: _Output = msgspec.field(default_factory=_Output)

    def result(self) -> CiResult:
        app, suite, output = self.app or _App(0), self.check_suite or _Suite(), self.output
        return CiResult(
            id=self.id,
            name=self.name,
            status=self.status,
            conclusion=self.conclusion,
            url=self.html_url or "",
            app_id=app.id,
            app=app.slug or "",
            suite=suite.id,
            title=output.title or "",
            summary=output.summary or "",
            text=output.text or "",
            annotations=output.annotations_count,
        )


class _Runs(msgspec.Struct):
    check_runs: list[_Run]


class _Annotation(msgspec.Struct):
    path: str
    start_line: int
    end_line: int
    annotation_level: str | None = None
    message: str | None = None
    title: str | None = None


class _WorkflowRun(msgspec.Struct):
    id: int
    status: str | None = None
    check_suite_id: int = 0
    run_attempt: int = 1
    workflow_id: int = 0

    def run(self) -> WorkflowRun:
        return WorkflowRun(self.id, self.check_suite_id, self.run_attempt, self.status or "", self.workflow_id)


class _WorkflowRuns(msgspec.Struct):
    workflow_runs: list[_WorkflowRun]


class _Step(msgspec.Struct):
    name: str
    conclusion: str | None = None


class _Job(msgspec.Struct):
    id: int
    check_run_url: str = ""
    steps: list[_Step] | None = None

    def job(self) -> CiJob:
        last = self.check_run_url.rpartition("/")[2]
        failed = tuple(one.name for one in self.steps or () if one.conclusion in FAILED)
        return CiJob(self.id, int(last) if last.isdecimal() else self.id, failed)


class _Jobs(msgspec.Struct):
    jobs: list[_Job]


class _Commit(msgspec.Struct):
    sha: str


class _Comparison(msgspec.Struct):
    merge_base_commit: _Commit


async def of_commit(caller: ApiCaller, repo: Repo, sha: str) -> list[CiResult]:
    """List the latest run of each check."""
    call = ApiCall("GET", f"{base(repo)}/commits/{segment(sha)}/check-runs", {"filter": "latest"})
    runs = await collect(caller, call, TokenPurpose.CHECKS, repo, _Runs, lambda page: page.check_runs)
    return [one.result() for one in runs]


async def annotations_of(caller: ApiCaller, repo: Repo, check_id: int) -> list[Annotation]:
    """List the first hundred annotations."""
    call = ApiCall("GET", f"{base(repo)}/check-runs/{check_id}/annotations", {"per_page": PAGE})
    listed = await (await caller.call(call, TokenPurpose.CHECKS, repo.id)).decoded(list[_Annotation])
    return [
        Annotation(
            one.path, one.start_line, one.end_line, one.annotation_level or "", one.message or "", one.title or ""
        )
        for one in listed
    ]


async def merge_base(caller: ApiCaller, repo: Repo, branch: str, sha: str) -> str | None:
    """Return where the commit left the branch; None if they have nothing in common, or one is gone."""
    where = f"{base(repo)}/compare/{segment(branch)}...{segment(sha)}"
    try:
        answer = await caller.call(ApiCall("GET", where, {"per_page": 1}), TokenPurpose.READ_REPOSITORY, repo.id)
    except NotFound:
        return None
    return answer.decode(_Comparison).merge_base_commit.sha


async def workflow_runs(caller: ApiCaller, repo: Repo, sha: str) -> list[WorkflowRun]:
    """List the newest hundred runs of a commit. Raise GitHubRefused if the App may not read Actions."""
    call = ApiCall("GET", f"{base(repo)}/actions/runs", {"head_sha": sha, "per_page": PAGE})
    listed = (await caller.call(call, TokenPurpose.ACTIONS, repo.id)).decode(_WorkflowRuns)
    return [one.run() for one in listed.workflow_runs]


async def workflow_run(caller: ApiCaller, repo: Repo, run_id: int) -> WorkflowRun:
    call = ApiCall("GET", f"{base(repo)}/actions/runs/{run_id}")
    return (await caller.call(call, TokenPurpose.ACTIONS, repo.id)).decode(_WorkflowRun).run()


async def jobs(caller: ApiCaller, repo: Repo, runs: Sequence[WorkflowRun]) -> list[CiJob]:
    """List the last attempt at each job of these runs; a matrix alone may have hundreds."""
    found: list[_Job] = []
    for run in runs:
        call = ApiCall("GET", f"{base(repo)}/actions/runs/{run.id}/jobs", {"filter": "latest"})
        found += await collect(caller, call, TokenPurpose.ACTIONS, repo, _Jobs, lambda page: page.jobs)
    return [one.job() for one in found]


async def log_address(caller: ApiCaller, repo: Repo, job_id: int) -> str:
    """Return a signed address on another host, good for a minute. Raise GitHubRefused if there is no log (any more)."""
    call = ApiCall("GET", f"{base(repo)}/actions/jobs/{job_id}/logs", elsewhere=True)
    return (await caller.call(call, TokenPurpose.ACTIONS, repo.id)).headers.get("location", "")


class _Status(msgspec.Struct):
    context: str
    state: str
    description: str | None = None
    target_url: str | None = None

    def result(self) -> CiResult:
        """Return a result without App, suite, log and annotations: everybody who may push may set a status."""
        return CiResult(
            id=0,
            name=self.context,
            app=STATUS_APP,
            status="in_progress" if self.state == "pending" else "completed",
            conclusion=_CONCLUSIONS.get(self.state),
            url=self.target_url or "",
            title=self.description or "",
            summary=self.target_url or "",
        )


class _Combined(msgspec.Struct):
    statuses: list[_Status]


async def statuses(caller: ApiCaller, repo: Repo, sha: str) -> list[CiResult]:
    """List the latest status of each context. Raise GitHubRefused if the App may not read them."""
    call = ApiCall("GET", f"{base(repo)}/commits/{segment(sha)}/status")
    found = await collect(caller, call, TokenPurpose.STATUSES, repo, _Combined, lambda page: page.statuses)
    return [one.result() for one in found]
