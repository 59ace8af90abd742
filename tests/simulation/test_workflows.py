"""Workflows of the stand-in: what GitHub refuses, and that a log is kept where no token may be shown."""

from __future__ import annotations

from tests.simulation.scene import Scene
from tests.world.plain_http import plain_client

REPO = "/repos/octo/calc"


async def test_logs_lie_on_another_host_that_takes_no_credential(scene: Scene) -> None:
    run = scene.github.run_workflow(
        scene.repo, scene.repo.branches()["main"], {"test": "failure", "slow": None}, logs={"test": b"it broke"}
    )
    token = await scene.mint(permissions={"actions": "read"})
    [listed] = (await scene.call("GET", f"{REPO}/actions/runs?head_sha={run.sha}", auth=token)).json()["workflow_runs"]
    assert (listed["status"], listed["conclusion"], listed["run_attempt"]) == ("in_progress", None, 1)
    jobs = (await scene.call("GET", f"{REPO}/actions/runs/{run.id}/jobs", auth=token)).json()["jobs"]
    test, slow = jobs
    assert [one["name"] for one in test["steps"] if one["conclusion"] == "failure"] == ["Run tests"]
    assert test["check_run_url"].endswith(f"/check-runs/{test['id']}")
    assert (await scene.call("GET", f"{REPO}/actions/jobs/{slow['id']}/logs", auth=token)).status_code == 404
    answer = await scene.call("GET", f"{REPO}/actions/jobs/{test['id']}/logs", auth=token)
    where = answer.headers["location"]
    assert answer.status_code == 302 and not where.startswith(scene.github.url)
    async with plain_client(trust_env=False) as http:
        assert (await http.get(where)).text == "it broke"
        assert (await http.get(where, headers={"Authorization": f"Bearer {token}"})).status_code == 400
        assert (await http.get(where + "0")).status_code == 403
        scene.clock.now += 61
        assert (await http.get(where)).status_code == 403
    run.job("test").log = None
    assert (await scene.call("GET", f"{REPO}/actions/jobs/{test['id']}/logs", auth=token)).status_code == 410


async def test_what_failed_is_run_again_by_who_may_and_when_it_has_ended(scene: Scene) -> None:
    scene.installation.permissions["actions"] = "write"
    sha = scene.repo.branches()["main"]
    run = scene.github.run_workflow(scene.repo, sha, {"test": "failure", "lint": "success"})
    path = f"{REPO}/actions/runs/{run.id}/rerun-failed-jobs"
    reader, writer = [await scene.mint(permissions={"actions": one, "checks": "write"}) for one in ("read", "write")]
    assert (await scene.call("POST", path, auth=reader)).status_code == 403
    assert (await scene.call("POST", path, auth=writer)).status_code == 201
    assert (await scene.call("POST", path, auth=writer)).status_code == 403, "it is under way"
    listed = (await scene.call("GET", f"{REPO}/commits/{sha}/check-runs", auth=writer)).json()["check_runs"]
    assert {one["name"]: one["status"] for one in listed} == {"test": "queued", "lint": "completed"}
    whole = (await scene.call("GET", f"{REPO}/commits/{sha}/check-runs?filter=all", auth=writer)).json()
    assert whole["total_count"] == 3
    scene.github.finish_job(run, "test", "success")
    assert (await scene.call("POST", path, auth=writer)).status_code == 403, "nothing has failed"
    scene.github.finish_job(run, "test", "failure")
    scene.clock.now += 31 * 24 * 3600
    writer = await scene.mint(permissions={"actions": "write"})
    assert (await scene.call("POST", path, auth=writer)).status_code == 403, "too old"


async def test_annotations_of_a_check(scene: Scene) -> None:
    check = scene.github.check(scene.repo, scene.repo.branches()["main"], "lint", "failure", app=scene.app)
    scene.github.annotate(check, "a.py", 2, "too long")
    token = await scene.mint(permissions={"checks": "read"})
    [found] = (await scene.call("GET", f"{REPO}/check-runs/{check.id}/annotations", auth=token)).json()
    assert (found["path"], found["start_line"], found["annotation_level"]) == ("a.py", 2, "failure")


async def test_the_last_status_of_each_context_counts_and_only_who_may_sees_them(scene: Scene) -> None:
    scene.installation.permissions["statuses"] = "read"
    sha = scene.repo.branches()["main"]
    path = f"{REPO}/commits/{sha}/status"
    stranger, reader = [await scene.mint(permissions={one: "read"}) for one in ("checks", "statuses")]
    assert (await scene.call("GET", path, auth=stranger)).status_code == 403
    assert (await scene.call("GET", path, auth=reader)).json()["state"] == "pending", "as long as there is none"
    for context, state in (("lint", "failure"), ("test", "pending"), ("lint", "success")):
        scene.github.status(scene.repo, sha, context, state, by="octo")
    found = (await scene.call("GET", path, auth=reader)).json()
    assert {one["context"]: one["state"] for one in found["statuses"]} == {"lint": "success", "test": "pending"}
    assert (found["state"], found["total_count"], found["sha"]) == ("pending", 2, sha)
    scene.github.status(scene.repo, sha, "test", "error", by="octo")
    assert (await scene.call("GET", path, auth=reader)).json()["state"] == "failure"
    assert (await scene.call("GET", f"{REPO}/commits/{'0' * 40}/status", auth=reader)).status_code == 422
