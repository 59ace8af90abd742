"""Routes of GitHub Actions: runs, jobs, their logs on another host, and repeating failed jobs."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.simulation.github import payloads
from bot.simulation.github.auth import Refusal
from bot.simulation.github.payloads import Json, stamp
from bot.simulation.github.rest import Ask, Table, answer, paged
from bot.simulation.github.state import State
from bot.simulation.github.workflows import Job, WorkflowRun, run_failed_again

LOG_SECONDS = 60
OLDEST_SECONDS = 30 * 24 * 3600.0
BLOCK = 1 << 16
_KEY = b"the key of the host that keeps logs"


def _run(ask: Ask, need: str) -> WorkflowRun:
    found = ask.repo(need).workflows.get(ask.number("run_id"))
    if found is None:
        raise Refusal(404, "Not Found")
    return found


def _run_json(ask: Ask, run: WorkflowRun) -> Json:
    return {
        "id": run.id,
        "name": run.name,
        "head_branch": run.branch,
        "head_sha": run.sha,
        "check_suite_id": run.suite,
        "workflow_id": run.workflow,
        "run_attempt": run.attempt,
        "status": run.status,
        "conclusion": run.conclusion,
        "event": "push",
        "html_url": f"{ask.state.url}/{run.repo.full_name}/actions/runs/{run.id}",
        "created_at": stamp(run.created_at),
    }


def _job_json(ask: Ask, run: WorkflowRun, job: Job) -> Json:
    check, api = job.check, payloads.repo_url(ask.state, run.repo)
    return {
        "id": check.id,
        "run_id": run.id,
        "run_attempt": job.attempt,
        "head_sha": run.sha,
        "name": check.name,
        "status": check.status,
        "conclusion": check.conclusion,
        "check_run_url": f"{api}/check-runs/{check.id}",
        "html_url": check.details_url,
        "steps": [
            {"name": name, "number": place, "status": check.status, "conclusion": conclusion}
            for place, (name, conclusion) in enumerate(job.steps, 1)
        ],
    }


async def list_runs(ask: Ask) -> Response:
    sha = ask.query("head_sha")
    runs = [run for run in ask.repo("actions:read").workflows.values() if sha in ("", run.sha)]
    return paged(ask, runs[::-1], lambda each: _run_json(ask, each), wrap="workflow_runs")


async def get_run(ask: Ask) -> Response:
    return answer(_run_json(ask, _run(ask, "actions:read")))


async def list_jobs(ask: Ask) -> Response:
    run = _run(ask, "actions:read")
    jobs = run.jobs if ask.query("filter") == "all" else run.latest
    return paged(ask, jobs, lambda each: _job_json(ask, run, each), wrap="jobs")


async def get_log(ask: Ask) -> Response:
    """Redirect to a signed address on another host, good for a minute."""
    number, repo = ask.number("job_id"), ask.repo("actions:read")
    job = next((job for run in repo.workflows.values() for job in run.jobs if job.check.id == number), None)
    if job is None or job.check.status != "completed":
        raise Refusal(404, "Not Found")
    if job.log is None:
        raise Refusal(410, "Server Error")
    until = int(ask.state.clock()) + LOG_SECONDS
    return RedirectResponse(f"{ask.state.logs_url}/logs/{number}?se={until}&sig={_signature(number, until)}", 302)


async def rerun_failed(ask: Ask) -> Response:
    run = _run(ask, "actions:write")
    if run.status != "completed":
        raise Refusal(403, "This workflow is already running")
    if ask.state.clock() - run.created_at > OLDEST_SECONDS:
        raise Refusal(403, "Unable to retry this workflow run because it was created over a month ago")
    if run.conclusion != "failure":
        raise Refusal(403, "This workflow run cannot be retried")
    run_failed_again(ask.state, run)
    ask.state.touch()
    return answer({}, 201)


def _signature(number: int, until: int) -> str:
    return hmac.new(_KEY, f"{number}.{until}".encode(), hashlib.sha256).hexdigest()


def log_host(state: State) -> Starlette:
    """Make the other host, which takes signed addresses and refuses requests with a credential."""

    async def log(request: Request) -> Response:
        if "authorization" in request.headers:
            return Response("Authentication information is not given in the correct format.", 400)
        number, until = int(request.path_params["number"]), request.query_params.get("se", "")
        signature = request.query_params.get("sig", "")
        if not until.isdecimal() or not hmac.compare_digest(signature, _signature(number, int(until))):
            return Response("Server failed to authenticate the request.", 403)
        if int(until) <= state.clock():
            return Response("Signature not valid in the specified time frame", 403)
        runs = (run for repo in state.repos.values() for run in repo.workflows.values())
        job = next(job for run in runs for job in run.jobs if job.check.id == number)
        return StreamingResponse(_blocks(job.log or b""), media_type="text/plain; charset=utf-8")

    return Starlette(routes=[Route("/logs/{number:int}", log)])


async def _blocks(log: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(log), BLOCK):
        yield log[start : start + BLOCK]


ROUTES: Table = (
    ("GET", "/repos/{owner}/{repo}/actions/runs", list_runs),
    ("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}", get_run),
    ("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs", list_jobs),
    ("POST", "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs", rerun_failed),
    ("GET", "/repos/{owner}/{repo}/actions/jobs/{job_id}/logs", get_log),
)
