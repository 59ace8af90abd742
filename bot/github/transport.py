"""How bytes reach GitHub: one TLS context and one pool of connections, and answers made safe to parse."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from functools import lru_cache
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

MAX_ANSWER_BYTES = 40 << 20  # 100 comments of 65,536 characters, each escaped as JSON, are 39 MB
DEFAULT_WAIT = 75  # GitHub asks for at least a minute when it names no time


@lru_cache(maxsize=1)
def ssl_context() -> ssl.SSLContext:
    """Building one costs 20 ms and 800 KB, so it is built once a process."""
    return ssl.create_default_context()


def environment_proxy(url: str) -> str | None:
    """The operator's HTTP(S)_PROXY for an address: httpx looks at it only without a transport of our own."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    found = getproxies()
    return found.get(parts.scheme) or found.get("all")


class SharedTransport(httpx.AsyncBaseTransport):
    """Outlives the clients that githubkit makes for every request, so that connections are kept alive."""

    def __init__(self, proxy: str | None = None) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=ssl_context(), proxy=proxy)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        _tame(response.headers)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Bounded(response.stream)
        return response

    async def __aenter__(self) -> SharedTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        """A client that closes leaves the pool open."""

    async def aclose(self) -> None:
        """A client that closes leaves the pool open."""

    async def shut(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx.AsyncByteStream):
    """Ends a body that no answer of GitHub's can have."""

    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._inner:
            seen += len(chunk)
            if seen > MAX_ANSWER_BYTES:
                raise httpx.ReadError("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _tame(headers: httpx.Headers) -> None:
    """githubkit turns these into numbers without a check; a proxy in between may send anything."""
    wait = headers.get("retry-after")
    if wait is not None and not _is_number(wait):
        headers["retry-after"] = str(_seconds_until(wait))
    reset = headers.get("x-ratelimit-reset")
    if reset is not None and not _is_number(reset):
        del headers["x-ratelimit-reset"]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10


def _seconds_until(date: str) -> int:
    try:
        return max(0, round(parsedate_to_datetime(date).timestamp() - time.time()))
    except (ValueError, OverflowError):
        return DEFAULT_WAIT
