"""The client for addresses that accounts name, against real servers: what it reaches, and where a credential goes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.outside.addresses import BadAddress
from bot.outside.client import OutsideClient, OutsideRequest, OutsideTrouble, Patience
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.simulation.loopback import serving
from tests.world.certificates import Authority

INSIDE = InsideHosts(frozenset({"localhost", "nexus.example", "127.0.0.1"}))
KEY = ("authorization", Secret("Bearer canary-registry-secret"))


class Registry:
    """Answers on loopback, and remembers who came with what."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None]] = []
        self.elsewhere = ""
        self.app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "POST", "HEAD"])])

    async def _answer(self, request: Request) -> Response:
        self.asked.append((request.method, request.headers["host"], request.headers.get("authorization")))
        match request.path_params["path"]:
            case "there":
                return RedirectResponse("/here", 302)
            case "elsewhere":
                return RedirectResponse(self.elsewhere, 307)
            case "around":
                return RedirectResponse("/around", 302)
            case "metadata":
                return RedirectResponse("https://169.254.169.254/latest/meta-data", 302)
            case "large":
                return StreamingResponse(b"x" * 65_536 for _ in range(100))
            case "never":
                await asyncio.sleep(3600)
        return PlainTextResponse("here", headers={"x-of": "registry"})


@asynccontextmanager
async def asking(inside: InsideHosts = INSIDE) -> AsyncIterator[OutsideClient]:
    client = OutsideClient(inside)
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.quick("bot.outside")
async def test_a_redirect_is_followed_only_where_the_caller_says_and_takes_no_credential_to_another_host() -> None:
    registry, other = Registry(), Registry()
    async with serving(registry.app) as port, serving(other.app) as files, asking() as client:
        registry.elsewhere = f"http://localhost:{files}/here"

        async def get(path: str, *, method: str = "GET", follows: bool = True) -> tuple[int, bytes]:
            request = OutsideRequest(method, client.address(f"http://localhost:{port}/{path}"), credential=KEY)
            async with client.ask(request, lambda _: follows) as answer:
                return answer.status, await answer.whole(100)

        assert await get("there") == (200, b"here")
        assert registry.asked == [("GET", f"localhost:{port}", KEY[1].reveal())] * 2
        assert await get("elsewhere") == (200, b"here")
        assert other.asked == [("GET", f"localhost:{files}", None)]
        assert await get("elsewhere", follows=False) == (307, b"")
        assert await get("elsewhere", method="POST") == (307, b"")
        assert len(other.asked) == 1
        with pytest.raises(OutsideTrouble, match="again and again"):
            await get("around")
        with pytest.raises(BadAddress, match="inside the operator's network"):
            await get("metadata")
        with pytest.raises(OutsideTrouble, match="more than 100 bytes"):
            await get("large")
        request = OutsideRequest("GET", client.address(f"http://localhost:{port}/never"), patience=Patience(5, 0.2))
        with pytest.raises(OutsideTrouble, match="in time"):
            async with client.ask(request):
                pass
        with pytest.raises(ValueError, match="not the caller's"):
            async with client.ask(OutsideRequest("GET", request.address, headers=[("Host", "nexus.example")])):
                pass


async def test_a_name_is_asked_once_and_what_it_means_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server may answer something else the second time; the real one of this machine answers for all others."""
    meant = {"rebinding.example": ["93.184.216.34", "127.0.0.1"], "nexus.example": ["127.0.0.1"]}
    resolve, asked = socket.getaddrinfo, list[str]()

    def resolved(host: str, port: Any, *more: Any, **named: Any) -> Any:
        if host not in meant:
            return resolve(host, port, *more, **named)
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in meant[host]]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    registry = Registry()
    async with serving(registry.app) as port, asking() as client:
        for host in ("rebinding.example", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"):
            with pytest.raises(BadAddress, match="inside the operator's network"):
                async with client.ask(OutsideRequest("GET", client.address(f"https://{host}:{port}/"))):
                    pass
        assert registry.asked == []
        asked.clear()
        async with client.ask(OutsideRequest("GET", client.address(f"http://nexus.example:{port}/"))) as answer:
            assert (answer.status, answer.headers["x-of"]) == (200, "registry")
        assert asked == ["nexus.example"]
        assert [host for _, host, _ in registry.asked] == [f"nexus.example:{port}"]


async def test_over_tls_only_a_certificate_of_that_name_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=authority.server())
    port = server.sockets[0].getsockname()[1]
    async with server, asking() as client:
        async with client.ask(OutsideRequest("GET", client.address(f"https://127.0.0.1:{port}/"))) as answered:
            assert await answered.whole(10) == b"ok"
        with pytest.raises(OutsideTrouble, match="certificate"):
            async with client.ask(OutsideRequest("GET", client.address(f"https://localhost:{port}/"))):
                pass
