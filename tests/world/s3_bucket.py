"""A stand-in for an S3-compatible service with one bucket, which refuses what S3 refuses; see `aws_signature`."""

from __future__ import annotations

import hashlib
import html
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.settings import BucketSettings, Secret
from bot.simulation import faults
from bot.simulation.faults import Call, Fault
from bot.simulation.loopback import LoopbackServer
from tests.world.aws_signature import Refused, Signers

LEAST_PART = 5 << 20
PAGE = 1000
KEY_ID, SECRET, REGION = "AKIACANARYCANARY1234", "canary/secret+of/the/bucket+0123456789AB", "eu-central-1"


@dataclass
class Upload:
    key: str
    parts: dict[int, bytes] = field(default_factory=dict)


class BucketApp(faults.FaultyApp[Call, Fault]):
    def call_of(self, scope: Scope, headers: dict[str, str]) -> Call:
        return Call(scope["method"], scope["path"], query=scope["query_string"].decode(), headers=headers)


class SimulatedBucket:
    """Its objects, and what can be wrong with it: `skew` of its clock, `denied` methods, a `region`, no bucket."""

    def __init__(self) -> None:
        self.name = "forgehand-files"
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, Upload] = {}
        self.signers = Signers({KEY_ID: SECRET}, REGION)
        self.skew = timedelta()
        self.denied: set[str] = set()
        self.faults = faults.Faults[Fault]()
        self.calls: list[Call] = []
        self.errors: list[Exception] = []
        self.port = 0

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[SimulatedBucket]:
        bucket, server = cls(), LoopbackServer()
        app = BucketApp(bucket, bucket.faults, server.cut, bucket.calls)
        bucket.port, bucket.errors = await server.start(app, 0), app.errors
        try:
            yield bucket
        finally:
            bucket.faults.clear()
            await server.stop()
        assert not bucket.errors, bucket.errors

    def settings(self, prefix: str = "team/", secret: str = SECRET) -> BucketSettings:
        endpoint = f"http://127.0.0.1:{self.port}"
        return BucketSettings(self.name, prefix, endpoint, REGION, Secret(KEY_ID), Secret(secret))

    @property
    def url(self) -> str:
        return f"s3://{self.name}/team?endpoint=http://127.0.0.1:{self.port}&region={REGION}"

    @property
    def environment(self) -> dict[str, str]:
        return {"FORGEHAND_FILES_URL": self.url, "FORGEHAND_FILES_KEY_ID": KEY_ID, "FORGEHAND_FILES_SECRET": SECRET}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = self._answer(request, await request.body())
        except Refused as error:
            inside = "".join(f"<{name}>{html.escape(text)}</{name}>" for name, text in error.more.items())
            answer = _xml("Error", f"<Code>{error.code}</Code>{inside}", error.status)
        if request.method == "HEAD":
            answer.body = b""
        await answer(scope, receive, send)

    def _answer(self, request: Request, body: bytes) -> Response:
        if request.method in ("PUT", "POST") and "content-length" not in request.headers:
            raise Refused(411, "MissingContentLength")
        self.signers.judge(request, body, datetime.now(UTC) + self.skew)
        bucket, _, key = request.url.path.removeprefix("/").partition("/")
        if bucket != self.name:
            raise Refused(404, "NoSuchBucket")
        if request.method in self.denied:
            raise Refused(403, "AccessDenied", "Access Denied")
        query = request.query_params
        if not key:
            return self._listed(query) if "list-type" in query else self._open_uploads(query)
        if "uploads" in query or "uploadId" in query:
            return self._multipart(request, key, body)
        return self._object(request, key, body)

    def _object(self, request: Request, key: str, body: bytes) -> Response:
        if request.method == "PUT":
            self.objects[key] = body
            return Response(headers={"etag": _tag(body)})
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return Response(status_code=204)
        if (data := self.objects.get(key)) is None:
            raise Refused(404, "NoSuchKey")
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", ""))
        if span is None:
            return Response(data, headers={"etag": _tag(data)})
        start, end = int(span[1]), min(int(span[2]), len(data) - 1)
        if start > end:
            raise Refused(416, "InvalidRange")
        place = f"bytes {start}-{end}/{len(data)}"
        return Response(data[start : end + 1], 206, {"content-range": place})

    def _multipart(self, request: Request, key: str, body: bytes) -> Response:
        if request.method == "POST" and "uploads" in request.query_params:
            upload = uuid.uuid4().hex
            self.uploads[upload] = Upload(key)
            return _xml("InitiateMultipartUploadResult", f"<Key>{html.escape(key)}</Key><UploadId>{upload}</UploadId>")
        upload = request.query_params["uploadId"]
        if upload not in self.uploads or self.uploads[upload].key != key:
            raise Refused(404, "NoSuchUpload")
        if request.method == "DELETE":
            del self.uploads[upload]
            return Response(status_code=204)
        if request.method == "PUT":
            self.uploads[upload].parts[int(request.query_params["partNumber"])] = body
            return Response(headers={"etag": _tag(body)})
        return self._complete(upload, body)

    def _complete(self, upload: str, body: bytes) -> Response:
        key, parts = self.uploads[upload].key, self.uploads[upload].parts
        found = re.findall(r"<Part><PartNumber>(\d+)</PartNumber><ETag>(.*?)</ETag></Part>", body.decode())
        named = [(int(number), html.unescape(tag)) for number, tag in found]
        if not named or any(number not in parts or _tag(parts[number]) != tag for number, tag in named):
            raise Refused(400, "InvalidPart")
        if [number for number, _ in named] != sorted({number for number, _ in named}):
            raise Refused(400, "InvalidPartOrder")
        if any(len(parts[number]) < LEAST_PART for number, _ in named[:-1]):
            raise Refused(400, "EntityTooSmall")
        self.objects[key] = b"".join(parts[number] for number, _ in named)
        del self.uploads[upload]
        return _xml("CompleteMultipartUploadResult", f"<Key>{html.escape(key)}</Key>")

    def _listed(self, query: QueryParams) -> Response:
        after, prefix = query.get("continuation-token", ""), query.get("prefix", "")
        found = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        page = found[: min(PAGE, int(query.get("max-keys", PAGE)))]
        inside = "".join(
            f"<Contents><Key>{html.escape(key)}</Key><Size>{len(self.objects[key])}</Size></Contents>" for key in page
        )
        more = len(page) < len(found)
        inside += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        inside += f"<NextContinuationToken>{html.escape(page[-1])}</NextContinuationToken>" if more else ""
        return _xml("ListBucketResult", inside)

    def _open_uploads(self, query: QueryParams) -> Response:
        prefix, after = query.get("prefix", ""), (query.get("key-marker", ""), query.get("upload-id-marker", ""))
        found = sorted((one.key, upload) for upload, one in self.uploads.items() if one.key.startswith(prefix))
        found = [one for one in found if one > after]
        inside = "".join(
            f"<Upload><Key>{html.escape(key)}</Key><UploadId>{upload}</UploadId></Upload>"
            for key, upload in found[:PAGE]
        )
        if len(found) > PAGE:
            key, upload = found[PAGE - 1]
            inside += f"<NextKeyMarker>{html.escape(key)}</NextKeyMarker>"
            inside += f"<NextUploadIdMarker>{upload}</NextUploadIdMarker>"
        return _xml(
            "ListMultipartUploadsResult", f"{inside}<IsTruncated>{str(len(found) > PAGE).lower()}</IsTruncated>"
        )


def _tag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _xml(root: str, inside: str, status: int = 200) -> Response:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}>{inside}</{root}>'
    return Response(text, status, media_type="application/xml")
