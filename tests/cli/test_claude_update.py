"""The newest Claude Code, fetched by the real updater over TLS from a place of downloads on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509

from sandbox.agents import claude_binary
from sandbox.choice import choose
from sandbox.primitives import EnvironmentSpec
from tests.world import World
from tests.world.certificates import Authority
from tests.world.command_line import ROOT
from tests.world.environments import short_folder

HOST = "downloads.claude.ai"
NEWER = "2.999.0"


class Downloads:
    """Behind a proxy for CONNECT, as operators have them: nothing else is let out."""

    def __init__(self, folder: Path, program: str) -> None:
        self.authority = Authority(folder)
        self._tls = self.authority.server(x509.DNSName(HOST))
        self._program = program.encode()
        self.asked: list[str] = []

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            await server.wait_closed()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        if not asked.startswith(f"CONNECT {HOST}:443 ".encode()):
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await writer.start_tls(self._tls)
        while line := await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            path = line.decode().split()[1].partition("?")[0]
            self.asked.append(path)
            body = self._body(path)
            status = "404 Not Found" if body is None else "200 OK"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body or b'')}\r\n\r\n".encode() + (body or b""))
            await writer.drain()
        writer.close()

    def _body(self, path: str) -> bytes | None:
        if path.endswith("/latest"):
            return NEWER.encode()
        if path.endswith(f"/{NEWER}/manifest.json"):
            of_one = {"checksum": hashlib.sha256(self._program).hexdigest(), "size": len(self._program)}
            platforms = ("linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl")
            return json.dumps({"version": NEWER, "platforms": dict.fromkeys(platforms, of_one)}).encode()
        return self._program if path.endswith("/claude") else None


def program(said: str) -> str:
    return f'#!/bin/sh\necho "{said} (Claude Code)"\n'


def way_out(monkeypatch: pytest.MonkeyPatch, proxy: str, authority: Authority) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(authority.file))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-canary")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "claude"


async def test_the_newest_is_fetched_and_works_in_a_box(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = Downloads(tmp_path, program(NEWER))
    with short_folder() as root:
        async with downloads.served() as proxy:
            way_out(monkeypatch, proxy, downloads.authority)
            choice = await choose(root, newest_in=home)
        environment = await choice.provider.create("one", EnvironmentSpec({}, public_repository=False))
        said = await environment.exec([environment.layout.agent, "--version"], timeout=30)
        await environment.terminate()
        await choice.provider.close()
    assert choice.not_newest == ""
    assert said.stdout.decode().startswith(NEWER)
    assert any(path.endswith("/claude") for path in downloads.asked)
    assert home.stat().st_mode & 0o077 == 0
    assert not [one for one in home.rglob("*") if one.is_file() and b"sk-ant-canary" in one.read_bytes()]


async def test_where_nothing_is_reached_the_tested_one_works_on(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    found = await claude_binary.newest(home, tested := claude_binary.find())
    assert found.program == tested
    assert "Failed to fetch version" in found.failure


async def test_an_updater_that_hangs_is_ended(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_binary, "UPDATE_SECONDS", 0.3)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    hangs = tmp_path / "hangs"
    hangs.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 2.1.326 && exit\nsleep 60 > {pipe} &\nwait\n')
    hangs.chmod(0o755)
    reading = asyncio.create_task(asyncio.to_thread(pipe.read_bytes))
    found = await claude_binary.newest(home, hangs)
    assert found == claude_binary.Newest(hangs, "it took more than 0.3 seconds")
    assert await asyncio.wait_for(reading, 10) == b"", "what it had started has let go of the pipe"


@pytest.mark.parametrize("brought", ["2.1.0", "nothing of a version"])
async def test_what_is_older_than_the_tested_one_or_odd_is_not_used(home: Path, brought: str) -> None:
    kept = home / ".local/bin/claude"
    kept.parent.mkdir(parents=True)
    kept.write_text(program(brought))
    kept.chmod(0o755)
    assert await claude_binary.present(home, tested := claude_binary.find()) == tested
    kept.write_text(program(NEWER))
    assert await claude_binary.present(home, tested) == kept
    kept.write_bytes(b"")
    assert await claude_binary.present(home, tested) == tested, "of an update that was cut short"


async def test_a_service_that_is_told_to_stop_while_it_updates_stops_in_time(world: World) -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    given = {"FORGEHAND_CLAUDE_VERSION": "latest", "HTTPS_PROXY": proxy, "FORGEHAND_PORT": "0"}
    argv = [sys.executable, "-m", "bot", "serve"]
    process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, env={**world.environment, **given})
    try:
        await asyncio.wait_for(asked.wait(), 60)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 15) == 0
    finally:
        if process.returncode is None:
            process.kill()
        server.close()
