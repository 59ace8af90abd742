"""Sandboxes in the cloud without a public URL: the host connects to them, and nobody inside can take its place."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.web.server import Server, tcp_socket
from sandbox.e2b.call import HostCall
from sandbox.e2b.inside.frames import Broken
from sandbox.primitives import EnvironmentPrimitives, EnvironmentSpec
from sandbox.runner import web
from tests.e2b_stand_in import users
from tests.pulls.test_forks import forked
from tests.world.e2b import E2BWorld, e2b_spine, e2b_world
from tests.world.environments import short_folder, small_agent, until
from tests.world.gateway import odd_upstream
from tests.world.plain_http import plain_client

EDIT = Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"})
SPEC = EnvironmentSpec(labels={}, public_repository=True)
ASK = """
import os, sys, urllib.request
url = os.environ["FORGEHAND_GATEWAY"] + sys.argv[1]
request = urllib.request.Request(url, data=b"x" * int(sys.argv[2]))
print(len(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60).read()))
"""


async def test_a_comment_becomes_a_pull_request_without_a_public_url(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, FORGEHAND_PUBLIC_URL="") as (world, e2b):
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        assert world.pulls()[0].draft
        [sandbox] = e2b.sandboxes
        assert not sandbox.network.get("allowOut")
        assert sandbox.network["denyOut"] == ["0.0.0.0/0"]
        assert e2b.upgrades.count > 0
        assert not e2b.upgrades.open


@pytest.mark.review("e2b-5")
async def test_what_may_reach_nothing_is_given_no_name_and_so_no_name_server(tmp_path: Path) -> None:
    """At a public URL with a name: E2B opens 8.8.8.8 beside any name, for every protocol and port."""
    async with e2b_spine(tmp_path, FORGEHAND_PUBLIC_URL="https://forgehand.example.invalid") as (world, e2b):
        world.model.default(Script([Say("It halves.")]))
        async with world.bot():
            fork = forked(world)
            world.say("/claude ask what does half do?", on=fork.pull)
            assert await world.outcome(on=fork.pull) == "answered", world.replies(fork.pull)[0].body
        assert [one.reaches for one in e2b.sandboxes] == [[]]
        assert e2b.upgrades.count > 0


async def test_a_tunnel_that_is_cut_in_the_middle_of_an_answer_is_ridden_out(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, FORGEHAND_PUBLIC_URL="") as (world, e2b):
        world.model.default(Script([EDIT, Wait("go"), Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await world.model.reached("go", timeout=60)
            asked = len(world.model.requests)
            assert e2b.upgrades.cut() > 0
            world.model.release("go")
            assert await world.outcome() == "pull_request", world.replies()[0].body
            assert len(world.model.requests) > asked, "the request that was cut was made again"


async def test_a_restarted_bot_opens_the_way_anew(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, FORGEHAND_PUBLIC_URL="") as (world, e2b):
        world.model.default(Script([EDIT, Wait("go"), Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await world.model.reached("go", timeout=60)
        async with world.bot():
            world.model.release("go")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        assert len(e2b.sandboxes) == 1


# --- the tunnel by itself


class Echo:
    """A gateway that gives back what it was sent, and counts."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        self.paths.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            await send({"type": "http.response.body", "body": message.get("body", b""), "more_body": more})


@asynccontextmanager
async def tunnelled() -> AsyncIterator[tuple[E2BWorld, EnvironmentPrimitives, Echo]]:
    with short_folder() as root:
        async with e2b_world(root, small_agent(root)) as world:
            listener, echo = tcp_socket("127.0.0.1", 0), Echo()
            async with Server(echo, listener):
                address = listener.getsockname()[:2]
                provider = world.provider(gateway_url=None, gateway_address=address)
                yield world, await provider.create("one", SPEC), echo
                await provider.close()


async def ask(env: EnvironmentPrimitives, path: str, size: int = 1) -> int:
    done = await env.exec([env.layout.python, "-c", ASK, path, str(size)], network=True, timeout=60)
    assert done.exit_code == 0, done.stderr.decode()
    return int(done.stdout)


async def test_large_bodies_pass_both_ways_and_many_at_a_time() -> None:
    async with tunnelled() as (_, env, echo):
        sizes = await asyncio.gather(*(ask(env, f"/many/{number}", 1000) for number in range(12)))
        assert await ask(env, "/large", 20 << 20) == 20 << 20
        assert sizes == [1000] * 12
        assert len(echo.paths) == 13


async def test_after_a_pause_the_way_is_open_again() -> None:
    async with tunnelled() as (world, env, _):
        assert await ask(env, "/before") == 1
        await env.pause()
        assert not world.e2b.upgrades.open
        await env.resume()
        assert await ask(env, "/after") == 1


async def test_the_proxy_refuses_whoever_has_no_traffic_token() -> None:
    async with tunnelled() as (world, env, _):
        await ask(env, "/ready")
        [sandbox] = world.e2b.live
        headers = {"E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": str(await port_of(world)), "X": "y"}
        target = web.Target.of(world.e2b.sandbox_url, headers)
        call = HostCall(target, b"any", ("127.0.0.1", 9))
        with pytest.raises(Broken, match="let us through"):
            await call.connect("/forgehand/gate")
        call.abort()


async def test_no_log_shows_what_the_proxy_is_given(caplog: pytest.LogCaptureFixture) -> None:
    headers = {"E2b-Traffic-Access-Token": "canary-of-the-traffic"}
    with caplog.at_level(logging.DEBUG):
        async with odd_upstream(lambda _: Response(status_code=404)) as url:
            call = HostCall(web.Target.of(url, headers), b"any", ("127.0.0.1", 9))
            with pytest.raises(Broken, match="let us through"):
                await call.connect("/forgehand/gate")
            call.abort()
    assert "canary-of-the-traffic" not in caplog.text


async def test_the_traffic_token_follows_no_redirect_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nor does a proxy of the operator's get it
    heard: list[object] = []

    def note(request: Request) -> Response:
        heard.append(request.headers)
        return Response(status_code=404)

    async with (
        odd_upstream(note) as elsewhere,
        odd_upstream(lambda _: RedirectResponse(f"{elsewhere.replace('http', 'ws')}/forgehand/gate")) as url,
    ):
        call = HostCall(web.Target.of(url, {"E2b-Traffic-Access-Token": "canary"}), b"any", ("127.0.0.1", 9))
        with pytest.raises(Broken, match="let us through"):
            await call.connect("/forgehand/gate")
        call.abort()
    assert heard == []


async def test_a_process_inside_cannot_pose_as_the_host() -> None:
    """It can reach the port; without the key, which is root's, it is joined with nobody."""
    async with tunnelled() as (world, env, echo):
        await ask(env, "/ready")
        port = await port_of(world)
        target = web.Target.of(f"http://127.0.0.1:{port}", {})
        for key in (b"guess", b""):
            call = HostCall(target, key, ("127.0.0.1", 9))
            with pytest.raises(Broken):
                await call.connect("/forgehand/gate")
            call.abort()
        async with plain_client(trust_env=False) as client:
            assert (await client.get(f"http://127.0.0.1:{port}/v1/messages")).status_code == 404
        assert await ask(env, "/still") == 1
        assert echo.paths == ["/ready", "/still"]


async def test_a_switchboard_that_died_is_started_anew() -> None:
    async with tunnelled() as (world, env, _):
        await ask(env, "/before")
        pid = int((await gate_of(world))[0])
        if users.are_two():
            assert (await env.exec(["kill", "-9", str(pid)])).exit_code != 0, "it is root's"
        [sandbox] = world.e2b.live
        await (await world.sdk(sandbox.id)).commands.run(f"kill -9 {pid}", user="root")

        async def another() -> bool:
            return int((await gate_of(world))[0]) != pid

        await until(another, 30)
        assert await ask(env, "/after") == 1


async def test_when_the_sandbox_is_gone_nobody_asks_for_it_any_more() -> None:
    async with tunnelled() as (world, env, _):
        await ask(env, "/before")
        await env.terminate()
        assert not world.e2b.upgrades.open
        assert not world.e2b.live


async def gate_of(world: E2BWorld) -> list[Any]:
    [sandbox] = world.e2b.live
    path = sandbox.folder / "var-lib" / "forgehand" / "gate"
    found: list[Any] = json.loads(path.read_bytes())
    return found


async def port_of(world: E2BWorld) -> int:
    return int((await gate_of(world))[2])
