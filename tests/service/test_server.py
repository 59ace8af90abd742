"""The HTTP server itself: where it listens, how it stops, what it says of its health."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.web.health import health_routes
from bot.web.server import Server, tcp_socket
from tests.world.plain_http import plain_client
from tests.world.webhooks import Edge


async def test_a_unix_socket_is_open_to_whoever_sees_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    app = Starlette(routes=health_routes({}))
    for _ in range(2):  # the second time over what the first one left
        async with Server(app, path, grace_seconds=1):
            assert path.stat().st_mode & 0o777 == 0o666
            transport = httpx.AsyncHTTPTransport(uds=str(path))
            async with httpx.AsyncClient(transport=transport, base_url="http://unix") as client:
                assert (await client.get("/healthz")).json() == {"status": "ok"}


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize(
    "target", ["http://elsewhere/healthz", "http://127.0.0.1/healthz", "//elsewhere/healthz", "/healthz#x", "healthz"]
)
async def test_what_is_asked_for_is_a_path_and_no_whole_address(target: str) -> None:
    """Two that read it could take two hosts for the one that is meant."""
    async with Server(Starlette(routes=health_routes({})), tcp_socket("127.0.0.1", 0), grace_seconds=1) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
    assert answer.split()[1] in (b"400", b"404"), answer


async def test_stopping_lets_answers_end_and_cuts_what_does_not(tmp_path: Path) -> None:
    release, entered = asyncio.Event(), asyncio.Queue[str]()

    async def slow(request: Request) -> Response:
        entered.put_nowait("slow")
        await release.wait()
        return Response("done")

    async def endless(request: Request) -> Response:
        entered.put_nowait("endless")
        await asyncio.Event().wait()
        return Response()

    server = Server(
        Starlette(routes=[Route("/slow", slow), Route("/endless", endless)]),
        tcp_socket("127.0.0.1", 0),
        grace_seconds=0.5,
    )
    async with server, plain_client(base_url=server.url, timeout=10) as client:
        ends, cut = asyncio.ensure_future(client.get("/slow")), asyncio.ensure_future(client.get("/endless"))
        assert {await entered.get(), await entered.get()} == {"slow", "endless"}
        stopping = asyncio.ensure_future(server.stop())
        release.set()
        assert (await ends).text == "done"
        with pytest.raises(httpx.RemoteProtocolError):
            await cut
        await asyncio.wait_for(stopping, 5)


async def test_a_port_in_use_is_said(edge: Edge) -> None:
    from bot.errors import SettingsError

    url = httpx.URL(edge.server.url)
    with pytest.raises(SettingsError, match="used by another program"):
        tcp_socket(url.host, url.port or 0)


async def test_readiness_names_what_is_wrong() -> None:
    async def well() -> str | None:
        return None

    async def ill() -> str | None:
        return "GitHub does not answer"

    async def hangs() -> str | None:
        await asyncio.Event().wait()
        return None

    async def breaks() -> str | None:
        raise LookupError("a secret")

    routes = health_routes({"well": well, "ill": ill, "hangs": hangs, "breaks": breaks}, timeout=0.1)
    transport = httpx.ASGITransport(app=Starlette(routes=routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["troubles"] == {
        "ill": "GitHub does not answer",
        "hangs": "no answer in time",
        "breaks": "broken (LookupError)",
    }
