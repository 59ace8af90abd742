"""Fetches the log of a job from where GitHub keeps it: another host, which is shown no credential of ours."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.errors import GitHubRefused, GitHubUnavailable
from sandbox.egress import Resolve, is_public, resolve_host

if TYPE_CHECKING:
    import httpx

FETCH_SECONDS = 30.0
RESOLVE_SECONDS = 10.0
MOST_BYTES = 256 << 20
KEPT_BYTES = 256 << 10
"""Of its end, where a log says why it failed; more would not fit into what the agent reads."""
_PUBLIC = "api.github.com"


@dataclass(frozen=True)
class Tail:
    """The end of a log, or of as much of it as could be read."""

    text: str
    read: int
    """Bytes that were read in all."""
    whole: bool
    """Whether its end was reached."""

    @property
    def cut(self) -> bool:
        return self.read > KEPT_BYTES


class JobLogs:
    """Of one GitHub. What its API redirects to is fetched, but from github.com's never at an address that is not
    public; a server of one's own may keep its logs beside itself."""

    def __init__(self, api_url: str, *, resolve: Resolve = resolve_host) -> None:
        found = urlsplit(api_url)
        self._scheme, self._host = found.scheme, found.hostname
        self._resolve = resolve
        self._client: httpx.AsyncClient | None = None

    async def tail(self, url: str) -> Tail:
        """GitHubRefused for what may not be fetched or is not there, GitHubUnavailable else."""
        await self._check(url)
        blocks: deque[bytes] = deque()
        sizes = [0, 0]
        whole, status = False, 200
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FETCH_SECONDS):
                whole, status = await self._read(url, blocks, sizes)
        if status >= 500 or not (whole or sizes[0]):
            raise GitHubUnavailable("the log of a job could not be fetched")
        if status != 200:
            raise GitHubRefused(status, f"the log of a job could not be fetched ({status})")
        kept = b"".join(blocks)[-KEPT_BYTES:]
        if sizes[0] > KEPT_BYTES:  # half a line may be half a secret, which nobody would know
            kept = kept[kept.find(b"\n") + 1 :]
        return Tail(kept.decode("utf-8", "replace"), sizes[0], whole)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        self._client = None

    async def _check(self, url: str) -> None:
        from bot.github.transport import environment_proxy

        try:
            parts = urlsplit(url)
            host, user = parts.hostname, parts.username
        except ValueError:
            parts, host, user = None, None, None
        if parts is None or not host or user is not None or parts.scheme not in ("https", self._scheme):
            raise GitHubRefused(403, "the log of a job lies at an address that is not opened")
        if self._host != _PUBLIC or environment_proxy(url):
            return  # the operator has named that server; behind a proxy, names are not ours to resolve
        try:
            found = await asyncio.wait_for(self._resolve(host), RESOLVE_SECONDS)
        except OSError:
            raise GitHubUnavailable("the host of a job's log could not be resolved") from None
        if not found or not all(is_public(address) for address in found):
            raise GitHubRefused(403, "the host of a job's log has an address that is not public")

    async def _read(self, url: str, blocks: deque[bytes], sizes: list[int]) -> tuple[bool, int]:
        """Whether the end was reached, and the status. No exception of the client leaves: it holds the address."""
        import httpx

        try:
            async with self._http().stream("GET", url) as response:
                if response.status_code != 200:
                    return True, response.status_code
                async for block in response.aiter_bytes():
                    _keep(block, blocks, sizes)
                    if sizes[0] > MOST_BYTES:
                        return False, 200
                return True, 200
        except (httpx.HTTPError, httpx.InvalidURL):
            return False, 200 if sizes[0] else 599

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            from bot.github.transport import ssl_context

            self._client = httpx.AsyncClient(
                verify=ssl_context(), timeout=FETCH_SECONDS, follow_redirects=False, headers={"User-Agent": "forgehand"}
            )
        return self._client


def _keep(block: bytes, blocks: deque[bytes], sizes: list[int]) -> None:
    """The newest, in little more than what is kept in the end."""
    blocks.append(block)
    sizes[0] += len(block)
    sizes[1] += len(block)
    while sizes[1] - len(blocks[0]) >= KEPT_BYTES:
        sizes[1] -= len(blocks.popleft())
