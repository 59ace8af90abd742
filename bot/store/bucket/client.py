"""Speaks S3's protocol: each call is signed, limited in time and memory, and repeated if its trouble may pass."""

from __future__ import annotations

import asyncio
import html
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

import httpx

from bot.settings import BucketSettings
from bot.store.bucket.faults import BucketAnswer, BucketTrouble, refused, unreachable
from bot.vendors.amazon import AmazonKey, RequestSigner

CALL_SECONDS = 60.0
"""Enough for a part over a line of 1 Mbit/s and more than any answer without one."""
_PAUSES = (0.2, 1.0, 4.0)
_LACKING = ("", "NoSuchKey", "NoSuchUpload")
"""The codes with a 404; a HEAD has none. A missing bucket is another matter."""
_BLOCK_BYTES = 256 << 10
_MOST_BYTES = 4 << 20
"""More than a page of a listing."""


@dataclass(frozen=True)
class BucketObject:
    key: str
    size: int


class BucketClient:
    def __init__(self, settings: BucketSettings, seconds: float) -> None:
        self._name = settings.name
        self._base = f"{settings.endpoint}/{settings.name}"
        self._signer = RequestSigner("s3", settings.region, "FORGEHAND_FILES_URL")
        self._key = AmazonKey(settings.key_id.reveal(), settings.secret)
        self._seconds = seconds
        self._client: httpx.AsyncClient | None = None

    async def put(self, key: str, body: bytes) -> None:
        await self._call("PUT", key, body=body)

    async def get(self, key: str, start: int, length: int) -> bytes | None:
        """Return a range of an object; None without such an object."""
        answer = await self._call("GET", key, span=(start, length), may_lack=True)
        return None if answer.status == 404 else answer.body

    async def delete(self, key: str) -> None:
        await self._call("DELETE", key, may_lack=True)

    async def size(self, key: str) -> int | None:
        answer = await self._call("HEAD", key, may_lack=True)
        return None if answer.status == 404 else int(answer.headers.get("content-length", "-1"))

    async def objects(self, prefix: str, page: int = 1000) -> AsyncIterator[list[BucketObject]]:
        """List the objects whose keys start like this, page by page."""
        query = {"list-type": "2", "max-keys": str(page), "prefix": prefix}
        while True:
            answer = await self._call("GET", "", query)
            yield [
                BucketObject(html.unescape(one.text("Key")), int(one.text("Size"))) for one in _each(answer, "Contents")
            ]
            if not (token := answer.text("NextContinuationToken")):
                return
            query["continuation-token"] = html.unescape(token)

    async def begin(self, key: str) -> str:
        """Begin an upload in parts and return its id."""
        return html.unescape((await self._call("POST", key, {"uploads": ""})).text("UploadId"))

    async def put_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        answer = await self._call("PUT", key, {"partNumber": str(number), "uploadId": upload}, body)
        return answer.headers.get("etag", "")

    async def complete(self, key: str, upload: str, tags: list[str], size: int) -> None:
        """Make the object of its parts. If an answer was lost, the object itself says whether that has happened."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{html.escape(tag)}</ETag></Part>"
            for number, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        try:
            await self._call("POST", key, {"uploadId": upload}, body)
        except BucketTrouble as trouble:
            if trouble.code != "NoSuchUpload" or await self.size(key) != size:
                raise

    async def abort(self, key: str, upload: str) -> None:
        await self._call("DELETE", key, {"uploadId": upload}, may_lack=True)

    async def uploads(self, prefix: str) -> AsyncIterator[list[tuple[str, str]]]:
        """List the uploads that are not complete, each as key and id, page by page."""
        query = {"uploads": "", "prefix": prefix}
        while True:
            answer = await self._call("GET", "", query)
            yield [
                (html.unescape(one.text("Key")), html.unescape(one.text("UploadId"))) for one in _each(answer, "Upload")
            ]
            if answer.text("IsTruncated") != "true" or not (marker := answer.text("NextKeyMarker")):
                return
            query["key-marker"] = html.unescape(marker)
            query["upload-id-marker"] = html.unescape(answer.text("NextUploadIdMarker"))

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _call(
        self,
        method: str,
        key: str,
        query: dict[str, str] | None = None,
        body: bytes = b"",
        span: tuple[int, int] | None = None,
        *,
        may_lack: bool = False,
    ) -> BucketAnswer:
        """Return the answer, or raise the trouble of the last try; `may_lack`: a missing object is no trouble."""
        path = quote(f"/{key}", safe="/-_.~") if key else ""
        asked = "&".join(f"{quote(name, safe='-_.~')}={quote(one, safe='-_.~')}" for name, one in (query or {}).items())
        url = f"{self._base}{path}{f'?{asked}' if asked else ''}"
        for pause in (*_PAUSES, None):
            try:
                answer = await self._once(method, url, body, span)
            except (httpx.HTTPError, TimeoutError) as error:
                trouble = unreachable(self._name, type(error).__name__)
            else:
                if _is_good(answer, span) or (may_lack and answer.status == 404 and answer.text("Code") in _LACKING):
                    return answer
                trouble = refused(self._name, answer)
            if pause is None or not trouble.may_pass:
                raise trouble from None
            await asyncio.sleep(pause)
        raise AssertionError("the last try has returned or raised")

    async def _once(self, method: str, url: str, body: bytes, span: tuple[int, int] | None) -> BucketAnswer:
        """Send one request, and read no more of the answer than a part or a page."""
        async with asyncio.timeout(self._seconds):
            headers = await asyncio.to_thread(self._signer.headers, self._key, method, url, body)
            headers |= {"Accept-Encoding": "identity", "Content-Length": str(len(body))}
            if span is not None:
                headers["Range"] = f"bytes={span[0]}-{span[0] + span[1] - 1}"
            most, got = max(_MOST_BYTES, span[1] if span else 0), bytearray()
            async with self._opened().stream(method, url, content=_blocks(body), headers=headers) as response:
                async for piece in response.aiter_raw():
                    got += piece
                    if len(got) > most:
                        raise httpx.DecodingError("more bytes than were asked for")
                return BucketAnswer(response.status_code, dict(response.headers), bytes(got))

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(verify=_ssl_context(), timeout=self._seconds, follow_redirects=False)
        return self._client


def _is_good(answer: BucketAnswer, span: tuple[int, int] | None) -> bool:
    """Judge an answer. A service that takes long to make an object says 200 before it knows the end."""
    if span is not None:
        return answer.status in (200, 206) and len(answer.body) == span[1]
    return answer.status < 300 and b"<Error>" not in answer.body[:1000]


async def _blocks(body: bytes) -> AsyncIterator[bytes]:
    """Send a part block by block: asyncio copies what the socket does not take at once."""
    for start in range(0, len(body), _BLOCK_BYTES):
        yield body[start : start + _BLOCK_BYTES]


def _each(answer: BucketAnswer, element: str) -> list[BucketAnswer]:
    return [BucketAnswer(answer.status, {}, one.encode()) for one in answer.texts(element)]


@lru_cache(maxsize=1)
def _ssl_context() -> ssl.SSLContext:
    return ssl.create_default_context()
