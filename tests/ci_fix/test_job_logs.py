"""Logs of jobs over the wire: only their end is held, at no address of ours, and nothing tells where they lay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bot.errors import GitHubRefused, GitHubUnavailable
from bot.github import downloads
from bot.github.downloads import KEPT_BYTES, JobLogs
from bot.simulation.loopback import LoopbackServer

FAR = "https://results.example.com/log?sig=SECRET"


@asynccontextmanager
async def host(answer: Callable[[Request], Response]) -> AsyncIterator[str]:
    async def log(request: Request) -> Response:
        assert "authorization" not in request.headers
        return answer(request)

    server = LoopbackServer()
    port = await server.start(Starlette(routes=[Route("/log", log)]), 0)
    yield f"http://127.0.0.1:{port}/log?sig=SECRET"
    await server.stop()


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1"])
async def test_github_leads_to_no_address_of_ours(address: str) -> None:
    async def resolve(_: str) -> list[str]:
        return ["1.1.1.1", address]

    with pytest.raises(GitHubRefused, match="not public"):
        await JobLogs("https://api.github.com", resolve=resolve).tail(FAR)


@pytest.mark.parametrize(
    "url", ["http://results.example.com/x", "file:///etc/passwd", "https://u@x.test/", "https://[", ""]
)
async def test_what_is_no_plain_https_address_is_not_opened(url: str) -> None:
    with pytest.raises(GitHubRefused, match="not opened"):
        await JobLogs("https://api.github.com").tail(url)


async def test_the_end_is_kept_of_what_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"x" * (3 * KEPT_BYTES) + b"THE END"
    async with host(lambda _: Response(body)) as url:
        logs = JobLogs("http://127.0.0.1/api/v3")
        tail = await logs.tail(url)
        assert tail.text.endswith("xTHE END") and len(tail.text) == KEPT_BYTES
        assert tail.whole and tail.cut and tail.read == len(body)
        monkeypatch.setattr(downloads, "MOST_LOG_BYTES", KEPT_BYTES)
        tail = await logs.tail(url)
        assert not tail.whole and "THE END" not in tail.text
        await logs.close()


async def test_what_comes_too_slowly_is_kept_as_far_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    ended = asyncio.Event()

    async def drip() -> AsyncIterator[bytes]:
        yield b"the beginning"
        await ended.wait()

    monkeypatch.setattr(downloads, "LOG_SECONDS", 0.3)
    async with host(lambda _: StreamingResponse(drip())) as url:
        logs = JobLogs("http://127.0.0.1/api/v3")
        tail = await logs.tail(url)
        assert (tail.text, tail.whole) == ("the beginning", False)
        ended.set()
        await logs.close()


@pytest.mark.parametrize(("status", "error"), [(503, GitHubUnavailable), (403, GitHubRefused), (302, GitHubRefused)])
async def test_what_goes_wrong_says_nothing_of_the_address(status: int, error: type[Exception]) -> None:
    async with host(lambda _: Response("no", status, {"location": "http://127.0.0.1:1/SECRET"})) as url:
        logs = JobLogs("http://127.0.0.1/api/v3")
        with pytest.raises(error) as caught:
            await logs.tail(url)
        assert "SECRET" not in str(caught.value) and caught.value.__cause__ is None
        await logs.close()
