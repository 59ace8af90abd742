"""Routes of check runs and commit statuses."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from bot.simulation.github import gitstore, payloads, statuses
from bot.simulation.github.auth import Refusal
from bot.simulation.github.payloads import Json
from bot.simulation.github.rest import Ask, Table, answer, invalid, paged
from bot.simulation.github.state import CheckRun

OUTPUT_LIMIT = 65_535
STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
LEVELS = ("notice", "warning", "failure")
ACTION_LIMITS = {"label": 20, "description": 40, "identifier": 20}
CONCLUSIONS = ("success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required")


def _apply(ask: Ask, check: CheckRun) -> None:
    """Change the check as the body says; 422 for values that GitHub refuses."""
    status, conclusion = ask.body.get("status", check.status), ask.body.get("conclusion", check.conclusion)
    output = ask.body.get("output") or check.output
    if status not in STATUSES:
        raise invalid("CheckRun", "status", "invalid")
    if conclusion is not None and conclusion not in CONCLUSIONS:
        raise invalid("CheckRun", "conclusion", "invalid")
    if status == "completed" and conclusion is None:
        raise invalid("CheckRun", "conclusion", "missing_field")
    if output and not (output.get("title") and output.get("summary") is not None):
        raise invalid("CheckRun", "output", "missing_field")
    for name in ("summary", "text"):
        if len(output.get(name) or "") > OUTPUT_LIMIT:
            raise invalid("CheckRun", name, "custom", f"{name} exceeds a maximum bytesize of {OUTPUT_LIMIT}")
    new = _annotations(ask)
    check.status = "completed" if conclusion else status
    added = {"annotations": [*check.output.get("annotations", []), *new]}  # GitHub adds them up
    check.conclusion, check.output = conclusion, {**output, **added} if output else {}
    check.actions = ask.body.get("actions", check.actions)
    check.name = str(ask.body.get("name", check.name))
    check.details_url = ask.body.get("details_url", check.details_url)
    check.external_id = ask.body.get("external_id", check.external_id)
    if check.status == "completed":
        check.completed_at = ask.state.clock()
    check.history.append((check.status, check.conclusion))


def _annotations(ask: Ask) -> list[Json]:
    """Return the body's annotations; 422 for annotations or buttons that GitHub refuses."""
    found = (ask.body.get("output") or {}).get("annotations") or []
    buttons = ask.body.get("actions") or []
    if len(found) > 50 or len(buttons) > 3:
        raise invalid("CheckRun", "output", "custom", "at most 50 annotations and 3 actions")
    for each in found:
        if not each.get("path") or not each.get("message") or each.get("annotation_level") not in LEVELS:
            raise invalid("CheckRun", "annotations", "invalid")
    for each in buttons:
        if any(not 0 < len(str(each.get(name, ""))) <= most for name, most in ACTION_LIMITS.items()):
            raise invalid("CheckRun", "actions", "invalid")
    return found


async def create_check(ask: Ask) -> Response:
    repo = ask.repo("checks:write")
    name, sha = ask.text("CheckRun", "name"), ask.text("CheckRun", "head_sha")
    assert name is not None
    assert sha is not None
    if await asyncio.to_thread(gitstore.resolve, repo.path, sha) != sha:
        raise Refusal(422, f"No commit found for SHA: {sha}")
    app = ask.token().installation.app
    check = CheckRun(ask.state.new_id(), repo, app, name, sha, "queued", None, ask.state.clock())
    _apply(ask, check)
    repo.checks[check.id] = check
    _tell(ask, check, "created")
    return answer(payloads.check_run(ask.state, check), 201)


def _check(ask: Ask, need: str) -> CheckRun:
    check = ask.repo(need).checks.get(ask.number("check_id"))
    if check is None:
        raise Refusal(404, "Not Found")
    return check


async def get_check(ask: Ask) -> Response:
    return answer(payloads.check_run(ask.state, _check(ask, "checks:read")))


async def edit_check(ask: Ask) -> Response:
    check = _check(ask, "checks:write")
    if check.app is not ask.token().installation.app:
        raise Refusal(403, "Invalid app_id `" + str(check.app.id) + "` - check run can only be modified by its app.")
    _apply(ask, check)
    ask.state.touch()
    if check.status == "completed":
        _tell(ask, check, "completed")
    return answer(payloads.check_run(ask.state, check))


def _tell(ask: Ask, check: CheckRun, action: str) -> None:
    payload = {"action": action, "check_run": payloads.check_run(ask.state, check)}
    ask.desk.actions.events.tell(check.repo, ask.actor, "check_run", payload)


async def list_checks(ask: Ask) -> Response:
    repo = ask.repo("checks:read")
    sha = await asyncio.to_thread(gitstore.resolve, repo.path, ask.param("ref"))
    name = ask.query("check_name")
    found = [each for each in repo.checks.values() if each.head_sha == sha and name in ("", each.name)]
    if ask.query("filter", "latest") == "latest":
        found = list({(each.app.id, each.suite, each.name): each for each in found}.values())
    return paged(ask, found, lambda each: payloads.check_run(ask.state, each), wrap="check_runs")


async def list_annotations(ask: Ask) -> Response:
    found = _check(ask, "checks:read").output.get("annotations", [])
    return paged(ask, found, lambda each: {"start_column": None, "end_column": None, "title": None, **each})


async def combined_status(ask: Ask) -> Response:
    """Return the last status in each context, and their combined state."""
    repo = ask.repo("statuses:read")
    sha = await asyncio.to_thread(gitstore.resolve, repo.path, ask.param("ref"))
    if sha is None:
        raise Refusal(422, f"No commit found for SHA: {ask.param('ref')}")
    found = statuses.latest(repo, sha)
    more = {"state": statuses.combined(found), "sha": sha, "repository": payloads.repository(ask.state, repo)}
    return paged(ask, found, lambda each: statuses.shown(ask.state, each), wrap="statuses", beside=more)


ROUTES: Table = (
    ("POST", "/repos/{owner}/{repo}/check-runs", create_check),
    ("GET", "/repos/{owner}/{repo}/check-runs/{check_id}", get_check),
    ("PATCH", "/repos/{owner}/{repo}/check-runs/{check_id}", edit_check),
    ("GET", "/repos/{owner}/{repo}/check-runs/{check_id}/annotations", list_annotations),
    ("GET", "/repos/{owner}/{repo}/commits/{ref:path}/check-runs", list_checks),
    ("GET", "/repos/{owner}/{repo}/commits/{ref:path}/status", combined_status),
)
