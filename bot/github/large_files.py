"""Speaks the batch API of Git LFS: fetches and sends contents, also where GitHub leads us, and asks about locks.

GitHub's token goes to GitHub alone. A storage gets only the headers that GitHub's answer names for it, and no exception
of the client leaves, because it has the signed address.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from bot.errors import GitHubRefused, GitHubUnavailable, Unrecognised
from bot.github.downloads import Storage
from bot.github.lfs_wire import LfsActionJson, LfsBatchJson, LfsErrorJson, LfsLocksJson, LfsObjectJson
from bot.settings import Secret
from sandbox.egress import Resolve, resolve_host

if TYPE_CHECKING:
    import httpx

MEDIA_TYPE = "application/vnd.git-lfs+json"
BATCH = 100
"""GitHub takes no more objects at once."""
ASK_SECONDS = 30.0
OBJECT_SECONDS = 900.0
MOST_ANSWER_BYTES = 4 << 20
MOST_LOCKS = 10
"""Pages of locks that are read."""
PART = 1 << 20
_PUBLIC = "github.com"
_ENDED = (401, 403)
"""How a storage refuses an address whose time is over."""
_PASSING = (429, 500, 502, 503, 504, 509)
Operation = Literal["download", "upload"]


@dataclass(frozen=True)
class LfsServer:
    """The LFS of one repository. `url` is that of its git remote."""

    url: str
    token: Secret

    def header(self) -> dict[str, str]:
        basic = base64.b64encode(f"x-access-token:{self.token.reveal()}".encode()).decode()
        return {"Accept": MEDIA_TYPE, "Content-Type": MEDIA_TYPE, "Authorization": f"Basic {basic}"}


@dataclass(frozen=True)
class Content:
    """A content by its name and size, and the file on the host that has it or is to have it."""

    oid: str
    size: int
    file: Path


@dataclass(frozen=True)
class Lock:
    path: str
    owner: str


class _Ended(Exception):
    """The storage's address is no longer good."""


class LargeFiles(Storage):
    """The LFS of one GitHub, as it is configured."""

    def __init__(self, github_url: str, *, resolve: Resolve = resolve_host) -> None:
        super().__init__(resolve, ASK_SECONDS)
        found = urlsplit(github_url)
        self._scheme, self._host = found.scheme, found.hostname

    async def missing(self, server: LfsServer, contents: Sequence[Content]) -> dict[str, str]:
        """Return the contents that the repository cannot give out, each with GitHub's reason."""
        answers = await self._asked(server, "download", contents)
        found = ((one.oid, _why_not(one, answer)) for one, answer in zip(contents, answers, strict=True))
        return {oid: why for oid, why in found if why is not None}

    async def download(self, server: LfsServer, contents: Sequence[Content]) -> dict[str, str]:
        """Fetch contents, each whole and under the name that it has by itself. Return those that are not there."""
        missing: dict[str, str] = {}
        for content, answer in zip(contents, await self._asked(server, "download", contents), strict=True):
            if (why := _why_not(content, answer)) is not None:
                missing[content.oid] = why
                continue
            try:
                await self._fetch(content, answer)
            except _Ended:  # while the ones before it came
                [fresh] = await self._asked(server, "download", [content])
                await self._last_try(self._fetch(content, fresh))
        return missing

    async def upload(self, server: LfsServer, contents: Sequence[Content], ref: str) -> None:
        """Send what the repository does not have yet. Safe to repeat; raise GitHubRefused with GitHub's reason."""
        for content, answer in zip(contents, await self._asked(server, "upload", contents, ref), strict=True):
            if answer.error is not None:
                raise GitHubRefused(answer.error.code or 422, answer.error.message)
            try:
                await self._send(content, answer)
            except _Ended:
                [fresh] = await self._asked(server, "upload", [content], ref)
                await self._last_try(self._send(content, fresh))

    async def locks_of_others(self, server: LfsServer, ref: str) -> list[Lock]:
        """List the locks that other people hold; none where the server knows no locks."""
        found: list[Lock] = []
        cursor: str | None = None
        for _ in range(MOST_LOCKS):
            body = {"ref": {"name": ref}, "limit": BATCH, **({"cursor": cursor} if cursor else {})}
            try:
                answer = await self._asked_json(server, "locks/verify", body, LfsLocksJson)
            except GitHubRefused as refused:
                if refused.status in (403, 404, 501):
                    return []
                raise
            found += [Lock(one.path, one.owner.name if one.owner else "") for one in answer.theirs]
            cursor = answer.next_cursor
            if not cursor:
                break
        return found

    async def _last_try(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except _Ended:
            raise GitHubUnavailable("the storage of Git LFS does not take GitHub's own address") from None

    async def _asked(
        self, server: LfsServer, operation: Operation, contents: Sequence[Content], ref: str = ""
    ) -> list[LfsObjectJson]:
        """Ask for all contents; the answers come in their order."""
        found: list[LfsObjectJson] = []
        for start in range(0, len(contents), BATCH):
            batch = contents[start : start + BATCH]
            body: dict[str, Any] = {"operation": operation, "transfers": ["basic"], "hash_algo": "sha256"}
            body["objects"] = [{"oid": one.oid, "size": one.size} for one in batch]
            if ref:
                body["ref"] = {"name": ref}
            answer = await self._asked_json(server, "objects/batch", body, LfsBatchJson)
            by_oid = {one.oid: one for one in answer.objects}
            if answer.transfer != "basic" or not all(one.oid in by_oid for one in batch):
                raise GitHubUnavailable("GitHub's answer about Git LFS does not fit the question")
            found += [by_oid[one.oid] for one in batch]
        passing = next((one.error.code for one in found if one.error and one.error.code in _PASSING), None)
        if passing is not None:
            raise GitHubUnavailable(f"Git LFS answered {passing} for an object")
        return found

    async def _asked_json(self, server: LfsServer, path: str, body: Mapping[str, Any], shape: type[Any]) -> Any:
        url = f"{server.url}/info/lfs/{path}"
        status, header, said = await self._exchange(url, server.header(), msgspec.json.encode(body))
        if status == 200:
            try:
                return msgspec.json.decode(said, type=shape)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                status = 599
        if status == 401:
            raise Unrecognised("Git LFS did not accept the installation's token")
        if status == 429 or status >= 500:
            wait = header.get("retry-after", "")
            raise GitHubUnavailable(f"Git LFS answered {status}", float(wait) if wait.isdecimal() else None)
        raise GitHubRefused(status, _message(said))

    async def _exchange(self, url: str, header: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        import httpx

        try:
            async with asyncio.timeout(ASK_SECONDS):
                async with self._http().stream("POST", url, headers=dict(header), content=body) as response:
                    said = await _read(response)
                    return response.status_code, response.headers, said
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL):
            return 599, {}, b""

    async def _fetch(self, content: Content, answer: LfsObjectJson) -> None:
        action = (answer.actions or {}).get("download")
        if action is None:
            raise GitHubUnavailable("GitHub names no address for an object of Git LFS")
        await self._require_open(action.href)
        partial = content.file.with_name(f".{secrets.token_hex(8)}.part")
        try:
            status = await self._received(action, content, partial)
            if status in _ENDED:
                raise _Ended
            if status != 200:
                raise GitHubUnavailable(f"the storage of Git LFS answered {status}")
            await asyncio.to_thread(partial.replace, content.file)
        finally:
            await asyncio.to_thread(partial.unlink, missing_ok=True)

    async def _received(self, action: LfsActionJson, content: Content, partial: Path) -> int:
        """Write what comes into a file. Only a content of the right size and name is 200."""
        import httpx

        digest, size = hashlib.sha256(), 0
        try:
            async with asyncio.timeout(OBJECT_SECONDS):
                async with self._http().stream("GET", action.href, headers=_plain(action)) as response:
                    if response.status_code != 200:
                        return response.status_code
                    with partial.open("wb") as file:
                        async for block in response.aiter_bytes(PART):
                            size += len(block)
                            if size > content.size:
                                break
                            digest.update(block)
                            await asyncio.to_thread(file.write, block)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL):
            return 599
        if size != content.size or digest.hexdigest() != content.oid:
            raise GitHubRefused(422, f"the object {content.oid[:12]} of Git LFS is not what its name says")
        return 200

    async def _send(self, content: Content, answer: LfsObjectJson) -> None:
        actions = answer.actions or {}
        upload, verify = actions.get("upload"), actions.get("verify")
        if upload is None:  # the repository has it
            return
        await self._require_open(upload.href)
        status = await self._sent(upload, content)
        if status in _ENDED:
            raise _Ended
        if status not in (200, 201, 204):
            raise GitHubUnavailable(f"the storage of Git LFS answered {status}")
        if verify is not None:
            await self._require_open(verify.href)
            header = {"Accept": MEDIA_TYPE, "Content-Type": MEDIA_TYPE, **_plain(verify)}
            body = msgspec.json.encode({"oid": content.oid, "size": content.size})
            status, _, said = await self._exchange(verify.href, header, body)
            if status == 599 or status >= 500 or status == 429:
                raise GitHubUnavailable(f"Git LFS answered {status} when it was to verify an object")
            if status != 200:
                raise GitHubRefused(status, _message(said))

    async def _sent(self, action: LfsActionJson, content: Content) -> int:
        import httpx

        header = {"Content-Type": "application/octet-stream", **_plain(action), "Content-Length": str(content.size)}
        try:
            async with asyncio.timeout(OBJECT_SECONDS):
                response = await self._http().put(action.href, headers=header, content=_parts(content.file))
                return response.status_code
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL):
            return 599

    async def _require_open(self, url: str) -> None:
        """Refuse an address that GitHub would not name: a storage of github.com is public, and never without TLS."""
        from bot.github.client import environment_proxy

        host = self._host_of(url, self._scheme, "an object of Git LFS")
        if self._host == _PUBLIC and host != _PUBLIC and not environment_proxy(url):
            await self._check_host(host, "an object of Git LFS")


def _why_not(content: Content, answer: LfsObjectJson) -> str | None:
    """Say why there is no such content; None if there is. A server may state the right size instead of refusing."""
    if answer.error is not None:
        return answer.error.message or "not found"
    return None if answer.size in (None, content.size) else "its size is another"


def _plain(action: LfsActionJson) -> dict[str, str]:
    return dict(action.header or {})


def _message(said: bytes) -> str:
    try:
        return msgspec.json.decode(said, type=LfsErrorJson).message[:500] or "no reason given"
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "no reason given"


async def _read(response: httpx.Response) -> bytes:
    found = bytearray()
    async for block in response.aiter_bytes():
        found += block
        if len(found) > MOST_ANSWER_BYTES:
            return b""
    return bytes(found)


async def _parts(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as source:
        while part := await asyncio.to_thread(source.read, PART):
            yield part
