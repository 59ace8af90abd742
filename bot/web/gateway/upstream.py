"""The one client that talks to the model's provider: one TLS context, bounded times, no redirects, no retries."""

from __future__ import annotations

import functools
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
READ_SECONDS = 600.0
WRITE_SECONDS = 60.0
MAX_CONNECTIONS = 256


class Upstream:
    """Made at the first request, because httpx takes a while to import."""

    def __init__(self, url: str, read_seconds: float = READ_SECONDS) -> None:
        self._url = url.rstrip("/")
        self._read_seconds = read_seconds
        self._client: httpx.AsyncClient | None = None

    def request(self, path: str, headers: list[tuple[str, str]], body: bytes) -> httpx.Request:
        return self.client.build_request("POST", self._url + path, headers=headers, content=body)

    @property
    def client(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = _client(self._read_seconds)
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _client(read_seconds: float) -> httpx.AsyncClient:
    import httpx

    timeout = httpx.Timeout(CONNECT_SECONDS, read=read_seconds, write=WRITE_SECONDS)
    limits = httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=32, keepalive_expiry=30)
    # trust_env off: the operator's proxy variables must not carry the key to another host by accident
    return httpx.AsyncClient(timeout=timeout, limits=limits, verify=_tls(), follow_redirects=False, trust_env=False)
