"""What the checks of a commit say, whoever runs them: how they stand, what they noted, and where their logs lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from bot.errors import NotFound
from bot.github.api import Call
from bot.github.reads import MAX_PAGES, PAGE, Caller, base, segment
from bot.github.types import Annotation, Purpose
from bot.models import Repo

FAILED = ("failure", "timed_out", "startup_failure")
"""Conclusions that somebody has to mend; who cancelled a check, or has to act upon it, knows."""
UNDECIDED = ("cancelled", "action_required", "stale")
"""Conclusions that say neither that it passed nor that it failed."""


@dataclass(frozen=True)
class Result:
    """The latest run of a check on a commit."""

    id: int
    name: str
    app_id: int
    app: str
    suite: int
    status: str
    conclusion: str | None
    url: str
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
    """Of GitHub Actions; its checks are one suite."""

    id: int
    suite: int
    attempt: int
    status: str
    workflow: int = 0
    """The file that it is a run of, by number."""

    @property
    def ended(self) -> bool:
        return self.status == "completed"


@dataclass(frozen=True)
class Job:
    """Of a workflow's run; its check run shows the same."""

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

    def result(self) -> Result:
        app, suite, output = self.app or _App(0), self.check_suite or _Suite(), self.output
        return Result(
            id=self.id,
            name=self.name,
            app_id=app.id,
            app=app.slug or "",
            suite=suite.id,
            status=self.status,
            conclusion=self.conclusion,
            url=self.html_url or "",
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

    def job(self) -> Job:
        last = self.check_run_url.rpartition("/")[2]
        failed = tuple(one.name for one in self.steps or () if one.conclusion in FAILED)
        return Job(self.id, int(last) if last.isdecimal() else self.id, failed)


class _Jobs(msgspec.Struct):
    jobs: list[_Job]


class _Commit(msgspec.Struct):
    sha: str


class _Comparison(msgspec.Struct):
    merge_base_commit: _Commit


async def of_commit(caller: Caller, repo: Repo, sha: str) -> list[Result]:
    """The latest run of each check, as far as a bounded number of pages goes."""
    found: list[Result] = []
    for page in range(1, MAX_PAGES + 1):
        params: dict[str, str | int] = {"per_page": PAGE, "page": page, "filter": "latest"}
        call = Call("GET", f"{base(repo)}/commits/{segment(sha)}/check-runs", params)
        runs = (await (await caller.call(call, Purpose.CHECKS, repo.id)).decoded(_Runs)).check_runs
        found += [one.result() for one in runs]
        if len(runs) < PAGE:
            break
    return found


async def annotations_of(caller: Caller, repo: Repo, check_id: int) -> list[Annotation]:
    """The first hundred."""
    call = Call("GET", f"{base(repo)}/check-runs/{check_id}/annotations", {"per_page": PAGE})
    listed = await (await caller.call(call, Purpose.CHECKS, repo.id)).decoded(list[_Annotation])
    return [
        Annotation(
            one.path, one.start_line, one.end_line, one.annotation_level or "", one.message or "", one.title or ""
        )
        for one in listed
    ]


async def merge_base(caller: Caller, repo: Repo, branch: str, sha: str) -> str | None:
    """Where the commit parted from the branch; None where they have nothing in common, or one is gone."""
    where = f"{base(repo)}/compare/{segment(branch)}...{segment(sha)}"
    try:
        answer = await caller.call(Call("GET", where, {"per_page": 1}), Purpose.READ_REPOSITORY, repo.id)
    except NotFound:
        return None
    return answer.decode(_Comparison).merge_base_commit.sha


async def workflow_runs(caller: Caller, repo: Repo, sha: str) -> list[WorkflowRun]:
    """Of a commit, the newest hundred. GitHubRefused where the App may not read Actions."""
    call = Call("GET", f"{base(repo)}/actions/runs", {"head_sha": sha, "per_page": PAGE})
    listed = (await caller.call(call, Purpose.ACTIONS, repo.id)).decode(_WorkflowRuns)
    return [one.run() for one in listed.workflow_runs]


async def workflow_run(caller: Caller, repo: Repo, run_id: int) -> WorkflowRun:
    call = Call("GET", f"{base(repo)}/actions/runs/{run_id}")
    return (await caller.call(call, Purpose.ACTIONS, repo.id)).decode(_WorkflowRun).run()


async def jobs(caller: Caller, repo: Repo, runs: Sequence[WorkflowRun]) -> list[Job]:
    """The last attempt at each, of all these runs; a matrix alone may have hundreds."""
    found: list[Job] = []
    for run in runs:
        for page in range(1, MAX_PAGES + 1):
            params: dict[str, str | int] = {"filter": "latest", "per_page": PAGE, "page": page}
            call = Call("GET", f"{base(repo)}/actions/runs/{run.id}/jobs", params)
            listed = (await (await caller.call(call, Purpose.ACTIONS, repo.id)).decoded(_Jobs)).jobs
            found += [one.job() for one in listed]
            if len(listed) < PAGE:
                break
    return found


async def log_address(caller: Caller, repo: Repo, job_id: int) -> str:
    """A signed address on another host, good for a minute; GitHubRefused where there is no log, or no more."""
    call = Call("GET", f"{base(repo)}/actions/jobs/{job_id}/logs", elsewhere=True)
    return (await caller.call(call, Purpose.ACTIONS, repo.id)).headers.get("location", "")
