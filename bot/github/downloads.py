"""Fetches what GitHub keeps on other hosts, without any credential: images that people attached to their texts, from
GitHub's own hosts alone, and the logs of jobs."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from bot.errors import GitHubRefused, GitHubUnavailable
from sandbox.egress import Resolve, is_public, resolve_host

if TYPE_CHECKING:
    import httpx

IMAGE_SECONDS = 20.0
LOG_SECONDS = 30.0
RESOLVE_SECONDS = 10.0
MAX_REDIRECTS = 3
MOST_LOG_BYTES = 256 << 20
KEPT_BYTES = 256 << 10
"""The end of a log tells why it failed; the agent has no room for more."""
_REDIRECTS = (301, 302, 303, 307, 308)
_PUBLIC = "github.com"
_PUBLIC_API = "api.github.com"
_STORES = ("private-user-images.githubusercontent.com", "user-images.githubusercontent.com")
"""Hosts of github.com's uploads; a page links to the first with signatures that are good for some minutes."""
_PATHS = ("/user-attachments/assets/", "/storage/user/", "/media/")
"""Paths on GitHub's own host that lead only to uploads."""
_TAG = re.compile(r"""<img\b(?:[^<>"']|"[^"]{0,4000}+"|'[^']{0,4000}+'){1,2000}+>""", re.IGNORECASE)
"""We parse only these tags, because unclosed marks take the parser the square of their number."""


class Storage:
    """Hosts to which GitHub leads us. We fetch only from public addresses and from hosts that the operator named.
    Behind a proxy we resolve no names."""

    def __init__(self, resolve: Resolve, seconds: float) -> None:
        self._resolve, self._seconds = resolve, seconds
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        self._client = None

    async def _check_host(self, host: str, of: str) -> None:
        try:
            found = await asyncio.wait_for(self._resolve(host), RESOLVE_SECONDS)
        except OSError:
            raise GitHubUnavailable(f"the host of {of} could not be resolved") from None
        if not found or not all(is_public(address) for address in found):
            raise GitHubRefused(403, f"the host of {of} has an address that is not public")

    def _host_of(self, url: str, scheme: str, of: str) -> str:
        """Return the host of an address; refuse what GitHub would not name: a user, or another scheme."""
        try:
            parts = urlsplit(url)
            host, user = parts.hostname, parts.username
        except ValueError:
            parts, host, user = None, None, None
        if parts is None or not host or user is not None or parts.scheme not in ("https", scheme):
            raise GitHubRefused(403, f"{of} lies at an address that is not opened")
        return host

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            from bot.github.client import ssl_context

            self._client = httpx.AsyncClient(
                verify=ssl_context(), timeout=self._seconds, follow_redirects=False, headers={"User-Agent": "forgehand"}
            )
        return self._client


class Attachments(Storage):
    """The images of one GitHub, as it is configured."""

    def __init__(self, github_url: str, *, resolve: Resolve = resolve_host) -> None:
        super().__init__(resolve, IMAGE_SECONDS)
        found = urlsplit(github_url)
        self._own = (found.scheme, found.hostname, found.port)
        self._stores = _STORES if found.hostname == _PUBLIC else (f"media.{found.hostname}",)

    def is_own(self, url: str) -> bool:
        """Decide whether GitHub itself has it; an address with a user, another port or scheme is not GitHub's."""
        try:
            parts = urlsplit(url)
            where = (parts.scheme, parts.hostname, parts.port)
        except ValueError:
            return False
        if parts.username is not None or "\\" in url or ".." in unquote(parts.path):
            return False
        if where == self._own:
            return parts.path.startswith(_PATHS)
        return parts.scheme == "https" and parts.port in (None, 443) and parts.hostname in self._stores

    async def fetch(self, url: str, max_bytes: int) -> bytes:
        """Return the whole image. Raise GitHubRefused if it is not allowed or too large, else GitHubUnavailable."""
        try:
            async with asyncio.timeout(IMAGE_SECONDS):
                for _ in range(MAX_REDIRECTS + 1):
                    await self._check(url)
                    found = await self._get(url, max_bytes)
                    if isinstance(found, bytes):
                        return found
                    url = urljoin(url, found)
        except TimeoutError:
            raise GitHubUnavailable("an image did not arrive in time") from None
        raise GitHubRefused(310, "an image's address redirects in circles")

    async def _check(self, url: str) -> None:
        from bot.github.client import environment_proxy

        if not self.is_own(url):
            raise GitHubRefused(403, "an image lies on another host than GitHub's")
        parts = urlsplit(url)
        if (parts.scheme, parts.hostname, parts.port) == self._own or environment_proxy(url):
            return
        await self._check_host(str(parts.hostname), "an image")

    async def _get(self, url: str, max_bytes: int) -> bytes | str:
        """Return the content, or its next address. No exception of the client leaves: it has the signed address."""
        import httpx

        try:
            async with self._http().stream("GET", url, headers={"Accept": "image/*"}) as response:
                if response.status_code in _REDIRECTS:
                    return str(response.headers.get("location", ""))
                if response.status_code == 200:
                    found = bytearray()
                    async for block in response.aiter_bytes():
                        found += block
                        if len(found) > max_bytes:
                            raise GitHubRefused(413, f"an image is larger than {max_bytes >> 20} MiB")
                    return bytes(found)
                status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL):
            status = 599
        if status >= 500:
            raise GitHubUnavailable("an image could not be fetched")
        raise GitHubRefused(status, f"an image could not be fetched (GitHub answered {status})")


def images(html: str) -> list[str]:
    """List the addresses of images in a text as GitHub renders it, in their order."""
    reader = _Images()
    for tag in _TAG.finditer(html):
        reader.feed(tag[0])
    return list(dict.fromkeys(reader.found))


class _Images(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.found += [value for name, value in attrs if name == "src" and value]


@dataclass(frozen=True)
class LogTail:
    """The end of a log, or of the part that we could read."""

    text: str
    read: int
    """Bytes of that part."""
    whole: bool
    """We reached the end."""

    @property
    def cut(self) -> bool:
        return self.read > KEPT_BYTES


class JobLogs(Storage):
    """The logs of one GitHub, wherever its API redirects. With github.com, that must be a public address; another
    server may keep its logs in its own network."""

    def __init__(self, api_url: str, *, resolve: Resolve = resolve_host) -> None:
        super().__init__(resolve, LOG_SECONDS)
        found = urlsplit(api_url)
        self._scheme, self._host = found.scheme, found.hostname

    async def tail(self, url: str) -> LogTail:
        """Return a log's end. Raise GitHubRefused if it is not allowed or missing, else GitHubUnavailable."""
        import httpx

        await self._check(url)
        held, read, whole, status = bytearray(), 0, False, 200
        # No exception of the client leaves: it has the address.
        with contextlib.suppress(TimeoutError, httpx.HTTPError, httpx.InvalidURL):
            async with asyncio.timeout(LOG_SECONDS), self._http().stream("GET", url) as response:
                if (status := response.status_code) == 200:
                    async for block in response.aiter_bytes():
                        held += block
                        del held[:-KEPT_BYTES]
                        if (read := read + len(block)) > MOST_LOG_BYTES:
                            break
                    else:
                        whole = True
        if status >= 500 or (status == 200 and not (whole or read)):
            raise GitHubUnavailable("the log of a job could not be fetched")
        if status != 200:
            raise GitHubRefused(status, f"the log of a job could not be fetched ({status})")
        if read > KEPT_BYTES:  # half a line may be half a secret, which nobody would recognise
            del held[: held.find(b"\n") + 1]
        return LogTail(held.decode("utf-8", "replace"), read, whole)

    async def _check(self, url: str) -> None:
        from bot.github.client import environment_proxy

        host = self._host_of(url, self._scheme, "the log of a job")
        if self._host != _PUBLIC_API or environment_proxy(url):
            return
        await self._check_host(host, "a job's log")
