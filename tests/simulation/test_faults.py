"""Faults, the record of calls, waiting for a change, and pages of others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bot.simulation import faults
from bot.simulation.github import Fault, SimulatedGitHub
from tests.simulation.scene import Scene
from tests.world.plain_http import plain_client


async def test_faults_before_and_after_the_effect(scene: Scene) -> None:
    token = await scene.mint()
    issue = scene.github.open_issue(scene.repo, title="t", by="alice")
    path, match = "/repos/octo/calc/issues/1/comments", "POST /repos/*/issues/*/comments"

    async def post() -> httpx.Response:
        return await scene.call("POST", path, {"body": "x"}, auth=token)

    scene.github.faults.add(Fault(match, "fail", status=429, headers={"Retry-After": "7"}))
    answer = await post()
    assert (answer.status_code, answer.headers["retry-after"], len(issue.comments)) == (429, "7", 0)
    scene.github.faults.add(Fault(match, "reset"))
    with pytest.raises(httpx.TransportError):
        await post()
    assert len(issue.comments) == 0
    scene.github.faults.add(Fault(match, "lose"))
    with pytest.raises(httpx.TransportError):
        await post()
    assert len(issue.comments) == 1
    scene.github.faults.add(Fault(match, "fail_after", body="<html>oops</html>", headers={"Content-Type": "text/html"}))
    assert (await post()).status_code == 502
    assert len(issue.comments) == 2
    scene.github.faults.add(Fault(match, "truncate"))
    with pytest.raises(httpx.TransportError):
        await post()
    assert len(issue.comments) == 3
    assert (await post()).status_code == 201
    faulted = [(each.fault, each.status) for each in scene.github.calls if each.fault]
    assert faulted == [("fail", 429), ("reset", None), ("lose", None), ("fail_after", 502), ("truncate", 201)]


async def test_faults_by_number_and_hold(scene: Scene) -> None:
    token = await scene.mint()
    struck: list[faults.Call] = []
    scene.github.faults.add(Fault("GET *", "fail", status=500, skip=1, times=2, on_hit=struck.append))
    codes = [(await scene.call("GET", "/repos/octo/calc", auth=token)).status_code for _ in range(4)]
    assert codes == [200, 500, 500, 200]
    assert [str(each) for each in struck] == ["GET /repos/octo/calc"] * 2
    held = scene.github.faults.add(Fault("GET /repos/*", "hold"))
    waiting = asyncio.create_task(scene.call("GET", "/repos/octo/calc", auth=token))
    await asyncio.wait_for(held.reached.wait(), 5)
    assert not waiting.done()
    held.release.set()
    assert (await waiting).status_code == 200
    scene.github.faults.add(Fault("GET /repos/*", "delay", seconds=0.01))
    assert (await scene.call("GET", "/repos/octo/calc", auth=token)).status_code == 200


async def test_calls_name_their_credential(scene: Scene) -> None:
    token = await scene.mint()
    await scene.call("GET", "/repos/octo/calc", auth=token)
    await scene.call("GET", "/rate_limit")
    assert [each.credential for each in scene.github.calls] == ["app", "installation", "none"]
    assert str(scene.github.calls[1]) == "GET /repos/octo/calc"


async def test_changed_waits_for_the_world(scene: Scene) -> None:
    token = await scene.mint()
    issue = scene.github.open_issue(scene.repo, title="t", by="alice")
    waiting = asyncio.create_task(scene.github.changed(lambda: issue.comments, timeout=5))
    await scene.call("POST", "/repos/octo/calc/issues/1/comments", {"body": "x"}, auth=token)
    assert (await waiting)[0].body == "x"
    with pytest.raises(TimeoutError):
        await scene.github.changed(lambda: False, timeout=0.01)


async def test_extra_routes_read_the_state(tmp_path: Path) -> None:
    def pages(github: SimulatedGitHub) -> list[Route]:
        async def page(request: Request) -> Response:
            return PlainTextResponse(f"{len(github.state.repos)} repositories")

        return [Route("/{owner}", page)]

    async with SimulatedGitHub.running(tmp_path, extra_routes=pages) as github:
        github.create_repo("octo/calc", {"a": "b"})
        async with plain_client(trust_env=False) as http:
            assert (await http.get(f"{github.url}/octo")).text == "1 repositories"
