"""The forwarder as a process of its own, as every environment starts it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.world.environments import shell, short_folder

FORWARDER = Path(__file__).parents[2] / "sandbox/runner/forwarder.py"


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as found:
        yield found


@asynccontextmanager
async def started(folder: Path, *command: str, options: tuple[str, ...] = ()) -> AsyncIterator[Process]:
    sockets = ["--gateway", str(folder / "gateway.sock"), "--egress", str(folder / "egress.sock")]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(FORWARDER),
        *sockets,
        *options,
        "--",
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate(b"")  # the command, if it lives, reads the end of its input


async def finished(folder: Path, *command: str) -> tuple[int | None, bytes, bytes]:
    async with started(folder, *command) as process:
        out, err = await asyncio.wait_for(process.communicate(b"in"), 20)
        return process.returncode, out, err


async def test_exit_codes_and_streams_are_the_commands(folder: Path) -> None:
    assert await finished(folder, *shell("cat; echo err >&2; exit 7")) == (7, b"in", b"err\n")
    assert (await finished(folder, *shell("kill -KILL $$")))[0] == 137
    assert (await finished(folder, "no-such-command"))[0] == 127
    assert (await finished(folder, str(folder)))[0] == 126


async def test_signals_are_passed_on(folder: Path) -> None:
    async with started(folder, *shell("trap 'exit 9' TERM; echo up; read x; exit 3")) as process:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 20) == b"up\n"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 9


async def gateway_port(process: Process) -> int:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 20)
    return int(line.rsplit(b":", 1)[1])


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write(b"|end")
    writer.close()


async def exchange(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send() -> None:
        writer.write(data)
        await writer.drain()
        writer.write_eof()

    async with asyncio.timeout(20):
        _, answer = await asyncio.gather(send(), reader.read())
    writer.close()
    return answer


SAY = shell('echo "$FORGEHAND_GATEWAY"; read x')


async def test_bytes_go_both_ways_with_half_close(folder: Path) -> None:
    server = await asyncio.start_unix_server(echo, folder / "gateway.sock")
    async with started(folder, *SAY) as process:
        port = await gateway_port(process)
        blob = bytes(range(256)) * 8000
        answers = await asyncio.gather(*(exchange(port, blob) for _ in range(5)))
        assert all(answer == blob + b"|end" for answer in answers)
    server.close()


async def test_a_host_that_restarts_is_waited_for(folder: Path) -> None:
    path = folder / "gateway.sock"
    async with started(folder, *SAY) as process:
        port = await gateway_port(process)
        early = asyncio.create_task(exchange(port, b"early"))
        reached, _ = await asyncio.wait([early], timeout=0.3)
        assert not reached
        first = await asyncio.start_unix_server(echo, path)
        assert await early == b"early|end"
        first.close()
        path.unlink()
        late = asyncio.create_task(exchange(port, b"late"))
        second = await asyncio.start_unix_server(echo, path)
        assert await late == b"late|end"
        second.close()


async def test_a_log_takes_the_output_and_ready_is_said(folder: Path) -> None:
    async with started(folder, *shell("echo out; echo err >&2"), options=("--log", str(folder / "log"))) as process:
        out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (out, err) == (b"ready\n", b"")
    assert (folder / "log").read_bytes() == b"out\nerr\n"


async def test_an_exposed_port_answers_or_is_closed(folder: Path) -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    way_in = folder / "expose.sock"
    async with started(folder, *SAY, options=("--expose", str(way_in))) as process:
        await gateway_port(process)
        answers = []
        for asked in (b"%d\n" % port, b"1\n", b"nonsense\n", b"99999999\n"):
            reader, writer = await asyncio.open_unix_connection(way_in)
            writer.write(asked + b"hello")
            writer.write_eof()
            with suppress(ConnectionResetError):
                answers.append(await asyncio.wait_for(reader.read(), 20))
            writer.close()
    server.close()
    assert answers == [b"+hello|end", b"", b"", b""]


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As the egress proxy: one host is let through, whose answer is an echo."""
    head = await reader.readuntil(b"\r\n\r\n")
    good = head.startswith(b"CONNECT good.example:443 ")
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n" if good else b"HTTP/1.1 403 Forbidden\r\n\r\n")
    if good:
        await echo(reader, writer)
    else:
        writer.close()


async def test_what_the_egress_proxy_refuses_is_noted(folder: Path) -> None:
    server = await asyncio.start_unix_server(refuse, folder / "egress.sock")
    say = shell('echo "$HTTPS_PROXY"; read x')
    async with started(folder, *say, options=("--denied", str(folder / "denied"))) as process:
        port = await gateway_port(process)
        answer = await exchange(port, b"CONNECT good.example:443 HTTP/1.1\r\n\r\n" + bytes(100_000))
        assert answer == b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100_000) + b"|end"
        for request in (b"CONNECT bad.example:443 HTTP/1.1\r\n\r\n", b"GET http://bad.example/ HTTP/1.1\r\n\r\n"):
            assert b" 403 " in await exchange(port, request)
        assert await exchange(port, b"CONNECT cut.exam") == b""
    server.close()
    noted = [json.loads(line) for line in (folder / "denied").read_text().splitlines()]
    assert [(one["host"], one["port"]) for one in noted] == [("bad.example", "443"), ("bad.example", "80")]


@pytest.mark.parametrize(
    "arguments", [[], ["--gateway", "x"], ["--gateway", "x", "--egress", "y", "--"], ["--what", "x"]]
)
async def test_wrong_arguments_are_said(arguments: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, str(FORWARDER), *arguments, stderr=PIPE)
    _, err = await process.communicate()
    assert process.returncode == 1
    assert err.startswith(b"forwarder: ")
