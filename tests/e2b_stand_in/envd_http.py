"""envd's plain HTTP: health, and files up and down with ranges, gzip and signed addresses."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import posixpath
import re
import zlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tests.e2b_stand_in.clock import Clock
from tests.e2b_stand_in.link import GuestError
from tests.e2b_stand_in.paths import USERS, resolved
from tests.e2b_stand_in.sandbox import Sandbox

CHUNK = 64 << 10
STATUS = {"not_found": 404, "invalid_argument": 400}


class FilesEndpoint:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._answer(scope["sandbox"], request)
        await response(scope, receive, send)

    async def _answer(self, sandbox: Sandbox, request: Request) -> Response:
        query = request.query_params
        operation = "read" if request.method == "GET" else "write"
        wrong = self._unsigned(sandbox, request, operation)
        if wrong:
            return refused(401, wrong)
        username = query.get("username", "user")
        if username not in USERS:
            return refused(401, f"error looking up user '{username}': user: unknown user {username}")
        try:
            return await (self._read if operation == "read" else self._write)(sandbox, request)
        except GuestError as error:
            return refused(STATUS.get(error.code, 500), str(error))

    def _unsigned(self, sandbox: Sandbox, request: Request, operation: str) -> str:
        """What is wrong with its token or signature; empty when nothing is."""
        token = request.headers.get("x-access-token")
        if token:
            return "" if token == sandbox.access_token else "access token present in header but does not match"
        query = request.query_params
        given, expiration = query.get("signature"), query.get("signature_expiration")
        if given is None:
            return "missing signature query parameter"
        if given != signature(sandbox, operation, query):
            return "invalid signature"
        if expiration and int(expiration) < self._clock.now():
            return "signature is already expired"
        return ""

    # --- down

    async def _read(self, sandbox: Sandbox, request: Request) -> Response:
        path = resolved(request.query_params.get("path", ""), request.query_params.get("username", "user"))
        fd = await sandbox.machine.link.fd("read", path)
        if path.startswith("/proc/"):
            fd = await asyncio.to_thread(_whole, fd)
        try:
            size = os.lseek(fd, 0, os.SEEK_END)
        except OSError:
            os.close(fd)
            return refused(500, "seeker can't seek")
        ranges, accepted = request.headers.get("range"), request.headers.get("accept-encoding", "")
        if ranges is None and re.search(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", accepted):
            headers = {"content-encoding": "gzip", "vary": "Accept-Encoding"}
            return StreamingResponse(
                _zipped(_content(fd, 0, size)), headers=headers, media_type="application/octet-stream"
            )
        start, end = 0, size
        if ranges is not None and size:
            found = parse_range(ranges, size)
            if found is None:
                os.close(fd)
                return Response("invalid range: failed to overlap\n", 416, {"content-range": f"bytes */{size}"})
            start, end = found
        headers = {"content-length": str(end - start), "accept-ranges": "bytes", "vary": "Accept-Encoding"}
        status = 200
        if ranges is not None and size:
            status, headers["content-range"] = 206, f"bytes {start}-{end - 1}/{size}"
        return StreamingResponse(_content(fd, start, end), status, headers, "application/octet-stream")

    # --- up

    async def _write(self, sandbox: Sandbox, request: Request) -> Response:
        kind = request.headers.get("content-type", "")
        path, user = request.query_params.get("path"), request.query_params.get("username", "user")
        zipped = request.headers.get("content-encoding") == "gzip"
        if kind.startswith("application/octet-stream"):
            if not path:
                return refused(400, "path parameter is required")
            return JSONResponse([await _store(sandbox, path, user, _unzipped(request) if zipped else request.stream())])
        boundary = re.search(r'boundary="?([^";]+)"?', kind)
        if boundary is None:
            return refused(400, "error parsing multipart form: no multipart boundary param in Content-Type")
        body = zlib.decompress(await request.body(), 31) if zipped else await request.body()
        written: list[dict[str, Any]] = []
        for name, data in parts(body, boundary.group(1).encode()):
            target = resolved(path or name, user)
            if any(each["path"] == target for each in written):
                return refused(
                    400, f"you cannot upload multiple files to the same path '{target}' in one upload request"
                )
            written.append(await _store(sandbox, target, user, _only(data)))
        return JSONResponse(written)


def _whole(fd: int) -> int:
    """A copy of a file that the kernel writes as it is read, and that has no size."""
    copy = os.memfd_create("copy")
    with os.fdopen(fd, "rb", buffering=0) as file:
        os.write(copy, file.readall() or b"")
    return copy


def signature(sandbox: Sandbox, operation: str, query: Any) -> str:
    words = [query.get("path", ""), operation, query.get("username", ""), sandbox.access_token]
    if query.get("signature_expiration"):
        words.append(query["signature_expiration"])
    return "v1_" + base64.b64encode(hashlib.sha256(":".join(words).encode()).digest()).rstrip(b"=").decode()


def parse_range(text: str, size: int) -> tuple[int, int] | None:
    """From and up to, of the one range asked for; None when nothing of the file is in it."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", text.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return max(0, size - int(found[2])), size
    start = int(found[1])
    end = min(size, int(found[2]) + 1) if found[2] else size
    return (start, end) if start < size and start < end else None


def parts(body: bytes, boundary: bytes) -> list[tuple[str, bytes]]:
    """Names and contents of a form's parts that are called `file`."""
    found = []
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary)[1:]:
        head, separator, data = part.partition(b"\r\n\r\n")
        if not separator:
            continue
        said = re.search(rb'name="file"; filename="((?:[^"\\]|\\.)*)"', head)
        if said is not None:
            found.append((said[1].decode().replace("%22", '"'), data))
    return found


def refused(status: int, message: str) -> Response:
    return Response(json.dumps({"code": status, "message": message}), status, media_type="application/json")


async def _store(sandbox: Sandbox, path: str, user: str, chunks: AsyncIterator[bytes]) -> dict[str, Any]:
    path = resolved(path, user)
    fd = await sandbox.machine.link.fd("write", path, user)
    try:
        async for chunk in chunks:
            rest = memoryview(chunk)
            while rest:
                rest = rest[await asyncio.to_thread(os.write, fd, rest) :]
    finally:
        os.close(fd)
    return {"path": path, "name": posixpath.basename(path), "type": "file"}


async def _content(fd: int, start: int, end: int) -> AsyncIterator[bytes]:
    try:
        while start < end and (data := os.pread(fd, min(CHUNK, end - start), start)):
            start += len(data)
            yield data
    finally:
        os.close(fd)


async def _zipped(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(wbits=31)
    async for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()


async def _unzipped(request: Request) -> AsyncIterator[bytes]:
    unpacker = zlib.decompressobj(31)
    async for chunk in request.stream():
        yield unpacker.decompress(chunk)


async def _only(data: bytes) -> AsyncIterator[bytes]:
    yield data
