"""Fetches images that people attached to their texts: from GitHub's own hosts alone, without a credential of ours."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from bot.errors import GitHubRefused, GitHubUnavailable
from sandbox.egress import Resolve, is_public, resolve_host

if TYPE_CHECKING:
    import httpx

FETCH_SECONDS = 20.0
RESOLVE_SECONDS = 10.0
MAX_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_PUBLIC = "github.com"
_STORES = ("private-user-images.githubusercontent.com", "user-images.githubusercontent.com")
"""Where github.com keeps what people upload; the page links to the first by signatures that last some minutes."""
_PATHS = ("/user-attachments/assets/", "/storage/user/", "/media/")
"""On GitHub's own host, what leads to an upload and to nothing else."""


class Attachments:
    """Of one GitHub, as it is configured."""

    def __init__(self, github_url: str, *, resolve: Resolve = resolve_host) -> None:
        found = urlsplit(github_url)
        self._own = (found.scheme, found.hostname, found.port)
        self._stores = _STORES if found.hostname == _PUBLIC else (f"media.{found.hostname}",)
        self._resolve = resolve
        self._client: httpx.AsyncClient | None = None

    def is_own(self, url: str) -> bool:
        """Whether GitHub itself keeps it; an address with a user, or of another port or scheme, is not GitHub's."""
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
        """The whole of it; GitHubRefused for what may not be fetched or is too large, GitHubUnavailable else."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                for _ in range(MAX_REDIRECTS + 1):
                    await self._check(url)
                    found = await self._get(url, max_bytes)
                    if isinstance(found, bytes):
                        return found
                    url = urljoin(url, found)
        except TimeoutError:
            raise GitHubUnavailable("an image did not arrive in time") from None
        raise GitHubRefused(310, "an image's address redirects in circles")

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        self._client = None

    async def _check(self, url: str) -> None:
        from bot.github.transport import environment_proxy

        if not self.is_own(url):
            raise GitHubRefused(403, "an image lies on another host than GitHub's")
        parts = urlsplit(url)
        if (parts.scheme, parts.hostname, parts.port) == self._own or environment_proxy(url):
            return  # the operator has named that host; behind a proxy, names are not ours to resolve
        try:
            found = await asyncio.wait_for(self._resolve(str(parts.hostname)), RESOLVE_SECONDS)
        except OSError:
            raise GitHubUnavailable("the host of an image could not be resolved") from None
        if not found or not all(is_public(address) for address in found):
            raise GitHubRefused(403, "the host of an image has an address that is not public")

    async def _get(self, url: str, max_bytes: int) -> bytes | str:
        """The content, or where it is to be had. No exception of the client leaves: it holds the signed address."""
        import httpx

        try:
            async with self._http().stream("GET", url, headers={"Accept": "image/*"}) as response:
                if response.status_code in _REDIRECTS:
                    return str(response.headers.get("location", ""))
                if response.status_code == 200:
                    return await _bounded(response, max_bytes)
                status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL):
            status = 599
        if status >= 500:
            raise GitHubUnavailable("an image could not be fetched")
        raise GitHubRefused(status, f"an image could not be fetched (GitHub answered {status})")

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            from bot.github.transport import ssl_context

            self._client = httpx.AsyncClient(
                verify=ssl_context(), timeout=FETCH_SECONDS, follow_redirects=False, headers={"User-Agent": "forgehand"}
            )
        return self._client


async def _bounded(response: httpx.Response, max_bytes: int) -> bytes:
    found = bytearray()
    async for block in response.aiter_bytes():
        found += block
        if len(found) > max_bytes:
            raise GitHubRefused(413, f"an image is larger than {max_bytes >> 20} MiB")
    return bytes(found)


_TAG = re.compile(r"""<img\b(?:[^<>"']|"[^"]{0,4000}+"|'[^']{0,4000}+'){1,2000}+>""", re.IGNORECASE)
"""Nothing else is read: marks that never close take the parser of a page the square of their number."""


def images(html: str) -> list[str]:
    """The addresses of the images in a text as GitHub renders it, in their order."""
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
