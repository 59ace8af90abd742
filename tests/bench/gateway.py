"""`python -m tests.bench.gateway`: what the gateway adds to an answer of the model, against a direct connection.

Three processes: a bare provider, the gateway on a store of its own, and this one as the client, which asks both in
turns. Trust the differences and the ratios; the goals stand beside the figures.

"Flat out" the provider sends events of 130 bytes as fast as it can, far faster than any model speaks, and the
direct way has one process less to find a core for. So below it stands the time of CPU that each process took, which
depends little on what else the machine does, and the ratio that follows from it: at best on this number of cores, were
they idle, and where each process has one to itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.models import InstallationId, SessionId, TurnKey
from bot.sessions.money.spending_limits import Ceilings
from bot.settings import Secret
from bot.store import gateway as rows
from bot.store.base import Store
from bot.web.gateway import AnthropicApi, Credential, Gateway
from bot.web.server import Server, tcp_socket
from tests.world.gateway import MESSAGES, MODEL

ASKS = 300
ROUNDS = 5
STREAMS = 20
PIECES = 1_500
SPEECH = (150, 0.02)
"""Pieces of an answer, and the seconds between them: faster than any model speaks."""
OPEN = 100
REQUEST_BYTES = 100_000
PARTIES = ("provider", "gateway", "client")
END = b"0\r\n\r\n"


def event(kind: str, **data: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


START = event("message_start", message={"usage": {"input_tokens": 10, "output_tokens": 1}})
DELTA = event("content_block_delta", index=0, delta={"type": "text_delta", "text": "a few words of it "})
STOP = event("message_delta", usage={"output_tokens": 9}) + event("message_stop")


@dataclass
class Line:
    """One connection of a client that does as little as possible, kept from request to request."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    path: str
    token: str

    @classmethod
    @asynccontextmanager
    async def open(cls, port: int, path: str, token: str) -> AsyncIterator[Line]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 << 20)
        try:
            yield cls(reader, writer, path, token)
        finally:
            writer.close()

    async def ask(self, words: str) -> tuple[float, int]:
        """Seconds to the first byte of the answer's body, and how many bytes came."""
        began = time.perf_counter()
        self.writer.write(self._request(words))
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.splitlines()[0], head
        await self.reader.readuntil(b"\n")
        first = time.perf_counter() - began
        return first, len(await self.reader.readuntil(END))

    def _request(self, words: str) -> bytes:
        content = [{"role": "user", "content": words}]
        # as the CLI asks: with fewer, the answers would be longer than the provider's can be, and paid for in cents
        body = json.dumps({"model": MODEL, "max_tokens": 32_000, "stream": True, "messages": content}).encode()
        head = f"POST {self.path} HTTP/1.1\r\nHost: x\r\nx-api-key: {self.token}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


# The provider: the number of pieces, the pause between them and how often each is repeated stand in the request's last
# word.


async def provide(certificate: str = "") -> None:
    context = None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, limit=64 << 20, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        said = json.loads(await reader.readexactly(size))["messages"][0]["content"]
        pieces, pause, times = (*said.split()[-1].split("/"), "1")[:3]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for piece in (START, *[DELTA * int(times)] * int(pieces), STOP):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
                await asyncio.sleep(float(pause))
            writer.write(END)


async def keep_gate(upstream: str, folder: str) -> None:
    async def credential(_: InstallationId) -> Credential:
        return Credential(Secret("sk-ant-api03-bench"))

    store = await Store.open(Path(folder) / "state.db")
    token = await rows.mint(
        store,
        TurnKey(SessionId("bench000"), 1),
        InstallationId(1),
        model=MODEL,
        budget_usd=1e6,
        expires_at=time.time() + 3600,
        max_requests=1_000_000,
        concurrency=1000,
    )
    gateway = Gateway(store, AnthropicApi(upstream, credential), ceilings=Ceilings(day_usd=1e6, month_usd=1e6))
    listener = tcp_socket("127.0.0.1", 0)
    async with Server(gateway, listener):  # as sandboxes come to it
        print(listener.getsockname()[1], token.reveal(), flush=True)
        await asyncio.Event().wait()


@asynccontextmanager
async def process(*arguments: str, module: str = "tests.bench.gateway") -> AsyncIterator[tuple[int, list[str]]]:
    command = [sys.executable, "-m", module, *arguments]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    try:
        yield child.pid, (await child.stdout.readline()).decode().split()
    finally:
        child.kill()
        await child.wait()


@dataclass(frozen=True)
class Ways:
    direct: tuple[int, str, str]
    gateway: tuple[int, str, str]

    def both(self) -> tuple[tuple[int, str, str], tuple[int, str, str]]:
        return self.direct, self.gateway


async def first_bytes(ways: Ways) -> None:
    words = "x" * REQUEST_BYTES + " 1/0"
    async with Line.open(*ways.direct) as direct, Line.open(*ways.gateway) as gateway:
        seen: dict[str, list[float]] = {"direct": [], "gateway": []}
        for number in range(ASKS + 20):
            for name, line in (("direct", direct), ("gateway", gateway)):
                first, _ = await line.ask(words)
                if number >= 20:
                    seen[name].append(first * 1000)
    straight, through = sorted(seen["direct"]), sorted(seen["gateway"])
    for name, values in seen.items():
        print(f"first byte, {name:12} p50 {statistics.median(values):7.2f} ms   p99 {_p99(values):7.2f} ms")
    added = statistics.median(through) - statistics.median(straight)
    print(f"{'added by the gateway':24} p50 {added:7.2f} ms   p99 {_p99(through) - _p99(straight):7.2f} ms   goal 3 ms")


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


async def throughput(ways: Ways, pids: Sequence[int], what: str, pieces: int, pause: float) -> None:
    rates: dict[int, list[float]] = {0: [], 1: []}
    took: dict[int, list[list[float]]] = {0: [], 1: []}
    for _ in range(ROUNDS):
        for number, way in enumerate(ways.both()):
            began, before = time.perf_counter(), [_cpu_seconds(pid) for pid in pids]
            sizes = await asyncio.gather(*(_one(way, f"hi {pieces}/{pause}") for _ in range(STREAMS)))
            size = sum(sizes) / 1e6
            rates[number].append(size / (time.perf_counter() - began))
            took[number].append([(_cpu_seconds(pid) - one) / size for pid, one in zip(pids, before, strict=True)])
    direct, gateway = (statistics.median(rates[number]) for number in (0, 1))
    ratio = statistics.median(mine / theirs for theirs, mine in zip(rates[0], rates[1], strict=True))
    print(
        f"{STREAMS} streams, {what:12} direct {direct:7.2f} MB/s   gateway {gateway:7.2f} MB/s   {ratio:.2f}   goal 0.8"
    )
    if not pause:
        _cpu([[statistics.mean(one) for one in zip(*took[number], strict=True)] for number in (0, 1)])


def _cpu(seconds: Sequence[Sequence[float]]) -> None:
    """Of each process, directly and through the gateway."""
    for name, spent in zip(("direct", "gateway"), seconds, strict=True):
        told = ", ".join(f"{who} {1000 * one:.0f}" for who, one in zip(PARTIES, spent, strict=True) if one > 0.001)
        print(f"{'':24} {name:8} ms of CPU for a MB: {told}")
    cores = os.cpu_count() or 1
    here, alone = (_rate(seconds[1], number) / _rate(seconds[0], number) for number in (cores, len(PARTIES)))
    print(f"{'':24} so {here:.2f} on {cores} idle cores, {alone:.2f} with a core for each process")


def _rate(seconds: Sequence[float], cores: int) -> float:
    """MB a second, at best: nobody is quicker than one core, and all together not than all of them."""
    return min(1 / max(seconds), cores / sum(seconds))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _one(way: tuple[int, str, str], words: str) -> int:
    async with Line.open(*way) as line:
        return (await line.ask(words))[1]


async def memory(ways: Ways, pid: int) -> None:
    """After what was before has warmed it up: what streams that are open take beside that."""
    before = _resident(pid)
    streams = [asyncio.create_task(_one(ways.gateway, "hi 30/0.1")) for _ in range(OPEN)]
    await asyncio.sleep(1.5)
    print(f"memory: {before / 1024:.0f} MB at rest, {(_resident(pid) - before) / OPEN:.0f} KB a stream ({OPEN} open)")
    await asyncio.gather(*streams)


def _resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with process("provide") as (providing, [provider]):
            upstream = f"http://127.0.0.1:{provider}"
            async with process("gate", upstream, folder) as (pid, [port, token]):
                pids = (providing, pid, os.getpid())
                ways = Ways((int(provider), "/v1/messages", "x"), (int(port), MESSAGES, token))
                await first_bytes(ways)
                await throughput(ways, pids, "as spoken", *SPEECH)
                await throughput(ways, pids, "flat out", PIECES, 0)
                await memory(ways, pid)


if __name__ == "__main__":
    PARTS = {"provide": provide, "gate": keep_gate}
    asyncio.run(PARTS[sys.argv[1]](*sys.argv[2:]) if sys.argv[1:] else main())  # type: ignore[operator]
