"""The real Caddy with the Caddyfile of compose.scale.yaml, before three small replicas.

A webhook must never be repeated once a replica may have it, and a stream must pass at once in both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from bot.simulation.anthropic import Say, Script
from bot.simulation.postgres import free_port
from tests.world import World
from tests.world.postgres import PostgresServer
from tests.world.replicas import ReplicaSet

CADDY = Path(sys.executable).parent / "caddy"
CADDYFILE = Path(__file__).parents[2] / "deploy/Caddyfile"
PATIENCE = 15.0
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
BODY = b"x" * 1000


@dataclass
class Replica:
    """Speaks just enough HTTP to be ready or not, to stream, and to lose a request that it has received."""

    port: int = 0
    ready: bool = True
    loses: bool = False
    received: list[bytes] = field(default_factory=list)
    asked: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client of a stream has gone."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Die: refuse new connections, and cut those that there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for one in [*self._open]:
            one.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)
        finally:
            self._open.discard(writer)
            writer.transport.abort() if self.loses else writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
        body = await reader.readexactly(length)
        if head.startswith(b"get /readyz"):
            self.asked += 1
            status = b"200 OK" if self.ready else b"503 Service Unavailable"
            writer.write(b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        elif head.startswith(b"get /events"):
            await self._stream(reader, writer)
        else:
            self.received.append(body)
            if not self.loses:
                writer.write(HEAD + b"Content-Length: 5\r\n\r\n" + str(self.port).encode())
        if not self.loses:
            await writer.drain()

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Type: text/event-stream\r\n\r\ndata: first\n\n")
        await writer.drain()
        gone, on = asyncio.ensure_future(reader.read()), asyncio.ensure_future(self.go_on.wait())
        await asyncio.wait({gone, on}, return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            self.left.set()
        else:
            writer.write(b"data: second\n\n")
            await writer.drain()
        gone.cancel()
        on.cancel()


@dataclass
class Balanced:
    replicas: list[Replica]
    client: httpx.AsyncClient

    async def post(self) -> httpx.Response:
        return await self.client.post("/webhook", content=BODY)

    async def used(self, count: int = 12) -> set[int]:
        """The replicas that answer so many requests."""
        return {int((await self.post()).text) for _ in range(count)}

    def received(self) -> int:
        return sum(len(one.received) for one in self.replicas)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def caddy(folder: Path, ports: Sequence[int], caddyfile: Path = CADDYFILE) -> AsyncIterator[str]:
    """Run Caddy before servers at these ports of loopback; yields its address."""
    url = f"http://127.0.0.1:{free_port()}"
    environment = {
        **os.environ,
        "DOMAIN": url,
        "REPLICAS": " ".join(f"127.0.0.1:{port}" for port in ports),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    with (folder / "caddy.log").open("wb") as log:
        command = (str(CADDY), "run", "--config", str(caddyfile), "--adapter", "caddyfile")
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
    try:
        yield url
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def balanced(folder: Path, caddyfile: Path = CADDYFILE) -> AsyncIterator[Balanced]:
    replicas = [Replica() for _ in range(3)]
    for one in replicas:
        await one.start()
    try:
        async with (
            caddy(folder, [one.port for one in replicas], caddyfile) as url,
            httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client,
        ):
            await until(lambda: all(one.asked for one in replicas))
            yield Balanced(replicas, client)
    finally:
        for one in replicas:
            await one.stop()


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Balanced]:
    async with balanced(tmp_path) as running:
        yield running


async def test_all_replicas_are_used_and_a_dead_one_costs_no_request(front: Balanced) -> None:
    assert len(await front.used()) == 3
    await front.replicas[0].stop()
    answers = [await front.post() for _ in range(12)]
    assert {one.status_code for one in answers} == {200}
    await front.replicas[0].start()
    await until(lambda: front.replicas[0].asked > 1)
    async with asyncio.timeout(PATIENCE):
        while len(await front.used()) < 3:
            await asyncio.sleep(0.1)


async def test_a_replica_that_is_not_ready_gets_nothing_more(front: Balanced) -> None:
    leaving, *others = front.replicas
    leaving.ready = False
    async with asyncio.timeout(PATIENCE):
        while await front.used(24) != {one.port for one in others}:
            await asyncio.sleep(0.1)
    before = len(leaving.received)
    await front.used()
    assert len(leaving.received) == before


async def test_a_post_that_a_replica_has_received_is_not_sent_again(front: Balanced) -> None:
    for one in front.replicas:
        one.loses = True
    for count in range(1, 4):
        assert (await front.post()).status_code == 502, "GitHub's log of deliveries has it, and we read it there"
        assert front.received() == count
    for one in front.replicas:
        one.loses = False
    assert (await front.post()).status_code == 200, "one bad request switches no replica off"


async def test_a_balancer_that_repeats_requests_would_be_seen(tmp_path: Path) -> None:
    wrong = "request_buffers 64KiB\n\t\tlb_retry_match method POST\n\t\tlb_policy"
    text = CADDYFILE.read_text(encoding="utf-8").replace("lb_policy", wrong)
    (tmp_path / "Caddyfile").write_text(text, encoding="utf-8")
    async with balanced(tmp_path, tmp_path / "Caddyfile") as front:
        for one in front.replicas:
            one.loses = True
        await front.post()
        assert front.received() > 1


async def test_events_pass_at_once(front: Balanced) -> None:
    async with front.client.stream("GET", "/events") as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "data: first"
        for one in front.replicas:
            one.go_on.set()
        assert [line async for line in lines if line] == ["data: second"]


async def test_a_replica_learns_that_the_client_of_a_stream_has_gone(front: Balanced) -> None:
    """It then ends the paid request to the model."""
    async with front.client.stream("GET", "/events") as answer:
        assert await anext(answer.aiter_lines()) == "data: first"
    await until(lambda: any(one.left.is_set() for one in front.replicas))


@pytest.mark.postgres
@pytest.mark.timeout(240)
async def test_real_replicas_behind_it_lose_no_webhook_when_one_is_killed(
    world: World, postgres: PostgresServer, tmp_path: Path
) -> None:
    world.model.default(Script([Say("It is fine.")]))
    async with (
        ReplicaSet.running(world, postgres, 2, FORGEHAND_PUBLIC_URL="https://bot.example.org") as found,
        caddy(tmp_path, [int(one.url.rpartition(":")[2]) for one in found.all]) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        await ready(client)
        world.app.webhook_url = f"{url}/webhook"
        world.say("/claude ask is it fine?")
        assert await world.outcome() == "answered"
        await (await found.leader()).end()
        world.say("/claude ask is it still fine?")
        assert await world.outcome(2) == "answered"
        assert len(world.replies()) == 2


async def ready(client: httpx.AsyncClient) -> None:
    """Wait until Caddy has found a replica that is ready."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await client.get("/readyz")).status_code == 200:
                    return
            await asyncio.sleep(0.1)
