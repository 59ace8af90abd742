"""A remote for git: bare repositories behind the real `git http-backend`, with a token, hooks and faults."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "dev",
    "GIT_AUTHOR_EMAIL": "dev@example.org",
    "GIT_COMMITTER_NAME": "dev",
    "GIT_COMMITTER_EMAIL": "dev@example.org",
    "GIT_AUTHOR_DATE": "@1700000000 +0000",
    "GIT_COMMITTER_DATE": "@1700000000 +0000",
}


def git(where: Path, *argv: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
    return git_bytes(where, *argv, stdin=stdin, env=env).decode("utf-8", "surrogateescape").strip()


def git_bytes(where: Path, *argv: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
    done = subprocess.run(
        ["git", "-C", str(where), *argv], input=stdin, env={**ENV, **(env or {})}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout


@dataclass
class Request:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def is_push(self) -> bool:
        return self.method == "POST" and self.path.endswith("git-receive-pack")


@dataclass
class GitRemote:
    """A git server. It cuts off answers of `lose` pushes after their effect, and holds pushes until `hold` is set."""

    root: Path
    token: str
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    lose: int = 0
    break_off: int = 0
    status: int | None = None
    words: str = ""
    """The body of an answer with `status`."""
    hold: asyncio.Event | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    handlers: set[asyncio.Task[None]] = field(default_factory=set)

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, root: Path, token: str) -> AsyncIterator[GitRemote]:
        remote = cls(root, token)
        server = await asyncio.start_server(remote._serve, "127.0.0.1", 0)
        remote.port = server.sockets[0].getsockname()[1]
        async with server:
            yield remote
            while remote.handlers:
                await asyncio.wait(remote.handlers, timeout=10)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}.git"

    def path(self, name: str) -> Path:
        return self.root / f"{name}.git"

    def create(self, name: str, *flags: str) -> Path:
        path = self.path(name)
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", *flags, str(path)], env=ENV, check=True)
        git(path, "config", "http.receivepack", "true")
        return path

    def hook(self, name: str, script: str) -> None:
        hook = self.path(name) / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{script}\n")
        hook.chmod(0o755)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self.handlers.add(handler)
        handler.add_done_callback(self.handlers.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await self._read(reader)
            self.requests.append(request)
            answer = await self._answer(request)
            if answer is not None:
                writer.write(answer)
                await writer.drain()
        writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        else:
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        path, _, query = target.partition("?")
        return Request(method, path, query, headers, body)

    async def _answer(self, request: Request) -> bytes | None:
        if self.status is not None:
            head = f"Location: http://127.0.0.1:1/\r\nContent-Type: text/plain\r\nContent-Length: {len(self.words)}"
            return f"HTTP/1.1 {self.status} No\r\n{head}\r\n\r\n{self.words}".encode()
        expected = "Basic " + base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        if request.headers.get("authorization") != expected:
            return b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
        if request.is_push and self.hold is not None:
            self.arrived.set()
            await self.hold.wait()
        if request.is_push and self.break_off:
            self.break_off -= 1
            return None
        answer = await self._backend(request)
        if request.is_push and self.lose:
            self.lose -= 1
            return None
        return answer

    async def _backend(self, request: Request) -> bytes:
        env = {
            **ENV,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "x-access-token",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
        }
        process = await asyncio.create_subprocess_exec(
            "git", "http-backend", stdin=-1, stdout=-1, stderr=-3, env=env, cwd="/"
        )
        output, _ = await process.communicate(request.body)
        head, _, body = output.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"status:")]
        status = next((line[8:] for line in head.split(b"\r\n") if line.lower().startswith(b"status:")), b"200 OK")
        lines += [b"Content-Length: %d" % len(body), b"Connection: close"]
        return b"HTTP/1.1 " + status + b"\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + body
