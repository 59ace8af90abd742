"""The forwarder where it shares no folder with the host: HTTP under the server's name, CONNECT to allowed hosts."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from bot.web.server import tcp_socket
from sandbox.runner import web

ROOT = Path(__file__).parents[2] / "sandbox"
BOOT = f'import sys; sys.path.insert(0, "{ROOT}"); from runner.forwarder import main; main()'


class Echo:
    """Says what it was asked, one answer after the other on a connection."""

    def __init__(self) -> None:
        self.connections = 0
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                body = await self._body(head.lower(), reader)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _body(self, head: str, reader: asyncio.StreamReader) -> bytes:
        if "chunked" in head:
            return await reader.readuntil(b"0\r\n\r\n")
        size = head.partition("content-length: ")[2].partition("\r")[0]
        return await reader.readexactly(int(size)) if size else b""


@asynccontextmanager
async def forwarded(url: str, *, allow: str = "", denied: Path | None = None) -> AsyncIterator[dict[str, str]]:
    """The environment that the command behind the forwarder sees."""
    say = "import os,json,sys; print(json.dumps(dict(os.environ)), flush=True); sys.stdin.read()"
    ways = [
        "--gateway-url",
        url,
        "--allow",
        allow or "packages.example",
        *(["--denied", str(denied)] if denied else []),
    ]
    command = [sys.executable, "-I", "-S", "-c", BOOT, *ways, "--", sys.executable, "-I", "-S", "-c", say]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    try:
        yield json.loads(await asyncio.wait_for(process.stdout.readline(), 20))
    finally:
        await asyncio.wait_for(process.communicate(b""), 20)


async def test_requests_reach_the_server_under_its_own_name_on_one_connection() -> None:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with forwarded(f"http://127.0.0.1:{port}/prefix") as env, httpx.AsyncClient(trust_env=False) as client:
        client.base_url = env["FORGEHAND_GATEWAY"]
        first = await client.post("/gateway/v1?x=1", content=b"a" * 300_000, headers={"X-Api-Key": "t"})
        second = await client.post("/chunks", content=_chunks())
        third = await client.get("/nothing")
    assert (len(first.content), third.content) == (300_000, b"")
    assert b"one" in second.content
    assert b"two" in second.content
    assert echo.connections == 1
    assert echo.heads[0].startswith("POST /prefix/gateway/v1?x=1 HTTP/1.1\r\n")
    assert f"host: 127.0.0.1:{port}\r\n" in echo.heads[0]
    assert "t" in echo.heads[0].lower().partition("x-api-key: ")[2].partition("\r")[0]
    assert env["FORGEHAND_GATEWAY"].rpartition(":")[2] not in echo.heads[0]
    server.close()


async def test_a_server_that_is_away_is_waited_for() -> None:
    with tcp_socket("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    async with forwarded(f"http://127.0.0.1:{port}") as env, httpx.AsyncClient(trust_env=False, timeout=20) as client:
        asking = asyncio.ensure_future(client.get(env["FORGEHAND_GATEWAY"] + "/early"))
        answered, _ = await asyncio.wait({asking}, timeout=0.3)
        assert not answered
        server = await asyncio.start_server(Echo().serve, "127.0.0.1", port)
        assert (await asking).status_code == 200
    server.close()


async def test_a_host_that_is_not_allowed_is_refused_with_words_and_noted(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        env = await stack.enter_async_context(forwarded("http://127.0.0.1:9", denied=tmp_path / "denied"))
        client = await stack.enter_async_context(httpx.AsyncClient(proxy=env["HTTPS_PROXY"], trust_env=False))
        for url in ("https://evil.example/", "https://packages.example:8443/", "https://127.0.0.1/"):
            with pytest.raises(httpx.ProxyError, match="403"):
                await client.get(url)
        assert (await client.get("http://packages.example/")).status_code == 403
    noted = [json.loads(line) for line in (tmp_path / "denied").read_text().splitlines()]
    assert [(one["host"], one["port"]) for one in noted] == [
        ("evil.example", "443"),
        ("packages.example", "8443"),
        ("127.0.0.1", "443"),
        ("packages.example", "80"),
    ]


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://bot.example", "bot.example"),
        ("https://bot.example:8443/", "bot.example:8443"),
        ("http://127.0.0.1:80", "127.0.0.1"),
        ("http://[::1]:81", "[::1]:81"),
    ],
)
def test_the_authority_is_as_browsers_write_it(url: str, authority: str) -> None:
    assert web.Target.of(url, {}).authority == authority


def test_our_headers_replace_the_clients() -> None:
    target = web.Target.of("https://x.example", {"E2b-Traffic-Access-Token": "real"})
    head, _ = web.renamed(b"GET / HTTP/1.1\r\nHost: a\r\nE2B-Traffic-Access-Token: forged\r\nA: b\r\n\r\n", target)
    assert head == b"GET / HTTP/1.1\r\nA: b\r\nhost: x.example\r\ne2b-traffic-access-token: real\r\n\r\n"
    with pytest.raises(ValueError, match="to a path"):
        web.renamed(b"GET http://elsewhere/ HTTP/1.1\r\nHost: a\r\n\r\n", target)


async def _chunks() -> AsyncIterator[bytes]:
    yield b"one"
    yield b"two"
