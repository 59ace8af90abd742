"""`python -m tests.gateway.histories [COUNT] [FIRST]`: random histories of requests at the gateway, and what they cost.

A provider that keeps a bill of its own answers, fails, breaks off and goes on to think, and to charge, for whoever has
left. Clients ask in parallel, leave when they like, are cut and revoked; the service is killed and started again. After
each history what is counted is at least what the provider charges, and at most the limit and one reserve.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.models import InstallationId, SessionId, TokenUsage, TurnKey
from bot.sessions.money import budget
from bot.sessions.money.budget import Consumption, Prices
from bot.settings import Secret
from bot.store import gateway as rows
from bot.store import spend
from bot.store.base import Store
from bot.web.gateway import AnthropicApi, Credential, Gateway, Tuning, model_request
from tests.world.stored import file_of

MODEL = "claude-sonnet-5-5"
PRICE = Prices().of(MODEL)
PATH = "/gateway/anthropic/v1/messages"
SLACK = 1e-9


@dataclass
class Provider:
    """Decides by chance, knows whom it charges what."""

    chance: random.Random
    bills: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    alive: int = 0
    """The process from which requests are taken; those of one that is dead cannot have been sent."""
    _lines: set[asyncio.StreamWriter] = field(default_factory=set)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """To one process: what that sends after its death, here where it only seems dead, is not taken."""
        epoch = self.alive
        server = await asyncio.start_server(lambda reader, writer: self._serve(reader, writer, epoch), "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, epoch: int) -> None:
        self._lines.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(head.lower().partition(b"content-length:")[2].split()[0])
                    body = json.loads(await reader.readexactly(length))
                    if epoch != self.alive or not await self._answer(body, writer):
                        return
        finally:
            self._lines.discard(writer)
            writer.close()

    async def _answer(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on. What is charged is decided before anything is said of it."""
        self.asked += 1
        way = self.chance.random()
        if way < 0.1:
            return await self._fail(writer)
        size = len(json.dumps(body, separators=(",", ":")))
        written = self.chance.randrange(size // 2) if "cache_control" in str(body) else 0
        usage = TokenUsage(
            self.chance.randrange(size // 2 + budget.OVERHEAD_TOKENS),
            self.chance.choice([1, body["max_tokens"] // 2, body["max_tokens"]]),
            self.chance.randrange(size // 4),
            written // 2,
        )
        owner = body["metadata"]["user_id"]
        self.bills[owner] = self.bills.get(owner, 0.0) + budget.cost(PRICE, Consumption(usage))
        if way < 0.15:  # it is charged, and never heard of
            return False
        if not body.get("stream"):
            return await self._whole(usage, writer)
        return await self._stream(usage, writer, breaks=way < 0.35)

    async def _fail(self, writer: asyncio.StreamWriter) -> bool:
        status = self.chance.choice([400, 429, 500, 529])
        said = json.dumps({"type": "error", "error": {"type": "api_error", "message": "no"}}).encode()
        await self._send(writer, status, b"application/json", said)
        return True

    async def _whole(self, usage: TokenUsage, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(self.chance.choice([0, 0, 0.004]))
        await self._send(writer, 200, b"application/json", json.dumps({"usage": told(usage)}).encode())
        return True

    async def _send(self, writer: asyncio.StreamWriter, status: int, kind: bytes, said: bytes) -> None:
        head = b"HTTP/1.1 %d X\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (status, kind, len(said))
        writer.write(head + said)
        await writer.drain()

    async def _stream(self, usage: TokenUsage, writer: asyncio.StreamWriter, *, breaks: bool) -> bool:
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        events = list(self._events(usage))
        for event in events[: self.chance.randrange(len(events))] if breaks else events:
            line = b"data: " + json.dumps(event).encode() + b"\n\n"
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await writer.drain()
            await asyncio.sleep(self.chance.choice([0, 0, 0, 0.002]))
        if breaks:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _events(self, usage: TokenUsage) -> list[dict[str, Any]]:
        start = told(usage) | {"output_tokens": 1}
        delta = {"type": "content_block_delta", "index": 0}
        hidden: list[dict[str, Any]] = [{"type": "ping"}] * self.chance.randrange(3)
        hidden += [delta | {"delta": {"type": "signature_delta", "signature": "A" * usage.output_tokens}}]
        each = max(1, usage.output_tokens // 3)
        spoken = [delta | {"delta": {"type": "text_delta", "text": "x" * self.chance.randrange(1, 4 * each + 1)}}] * 3
        shown = self.chance.choice([hidden, spoken, hidden + spoken])
        end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": told(usage)}
        return [{"type": "message_start", "message": {"usage": start}}, *shown, end, {"type": "message_stop"}]

    def kill(self) -> None:
        """The process at the other end is dead: the kernel closes its connections."""
        self.alive += 1
        for line in self._lines:
            line.transport.abort()


def told(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_creation": {"ephemeral_1h_input_tokens": 0},
    }


@dataclass
class Service:
    """One process of ours, as far as money goes."""

    store: Store
    gateway: Gateway
    way: contextlib.AsyncExitStack

    @classmethod
    async def begun(cls, path: Path, provider: Provider) -> Service:
        store, way = await Store.open(path), contextlib.AsyncExitStack()
        url = await way.enter_async_context(provider.serving())
        await spend.abandon_open(store)

        async def credential(_: InstallationId) -> Credential:
            return Credential(Secret("sk-x"))

        tuning = Tuning(patience_seconds=0.05, check_seconds=0.005)
        return cls(store, Gateway(store, AnthropicApi(url, credential), tuning=tuning), way)

    async def ended(self) -> None:
        await self.gateway.close()
        await self.store.close()
        await self.way.aclose()

    async def ask(self, token: str, body: bytes, leaves: float | None) -> None:
        """As an agent does; `leaves`: after so many seconds, whatever has come."""
        head = [(b"x-api-key", token.encode()), (b"content-length", str(len(body)).encode())]
        scope = {"type": "http", "method": "POST", "path": PATH, "query_string": b"", "headers": head}
        gone, sent = asyncio.Event(), False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            pass

        if leaves is not None:
            asyncio.get_running_loop().call_later(leaves, gone.set)
        await self.gateway(scope, receive, send)


@dataclass
class Bench:
    """One store and one provider for many histories, each of which has a session of its own."""

    folder: Path
    provider: Provider
    service: Service
    lives: int = 0

    async def crash(self) -> None:
        """The state is what the disk has at this instant; nothing of the old process comes into the new one."""
        self.provider.kill()
        self.lives += 1
        path = self.folder / f"{self.lives}.db"
        with (
            contextlib.closing(sqlite3.connect(file_of(self.service.store))) as old,
            contextlib.closing(sqlite3.connect(path)) as new,
        ):
            old.backup(new)
        self.service = await Service.begun(path, self.provider)


@asynccontextmanager
async def bench(folder: Path, seed: int) -> AsyncIterator[Bench]:
    provider = Provider(random.Random(seed))
    made = Bench(folder, provider, await Service.begun(folder / "0.db", provider))
    try:
        yield made
    finally:
        await made.service.ended()


def body_of(chance: random.Random, owner: str) -> bytes:
    block: dict[str, Any] = {"type": "text", "text": "~^" * chance.randrange(1_500)}
    if chance.random() < 0.5:
        block["cache_control"] = {"type": "ephemeral"}
    asked = {"model": MODEL, "max_tokens": chance.choice([1, 50, 500, 3_000]), "stream": chance.random() < 0.8}
    asked |= {"messages": [{"role": "user", "content": [block]}], "metadata": {"user_id": owner}}
    return json.dumps(asked, separators=(",", ":")).encode()


async def history(made: Bench, seed: int) -> tuple[float, float, float]:
    """(what the provider charges, what is counted, what may be counted at most)."""
    chance, key = random.Random(seed), TurnKey(SessionId(f"h{seed:07d}"), 1)
    limit, reserve = chance.choice([0.004, 0.02, 0.06, 0.2]), 0.0
    terms: dict[str, Any] = {"model": MODEL, "budget_usd": limit, "expires_at": made.service.store.now() + 600}
    token = (await rows.mint(made.service.store, key, InstallationId(7), concurrency=20, **terms)).reveal()
    old: list[tuple[Service, list[asyncio.Task[None]]]] = []
    for _ in range(chance.randrange(1, 6)):
        bodies = [body_of(chance, key.session) for _ in range(chance.randrange(1, 6))]
        sizes = [model_request.read(body, allowed=[MODEL]).sizes for body in bodies]
        reserve = max([reserve, *(budget.estimate(one, PRICE).usd for one in sizes)])
        leaving = [chance.random() * 0.03 if chance.random() < 0.3 else None for _ in bodies]
        service = made.service
        asking = [asyncio.create_task(service.ask(token, *one)) for one in zip(bodies, leaving, strict=True)]
        fate = chance.random()
        if fate < 0.25:
            await asyncio.sleep(chance.random() * 0.02)
            await made.crash()
            old.append((service, asking))
            continue
        if fate < 0.35:
            await asyncio.sleep(chance.random() * 0.02)
            await rows.revoke(made.service.store, key)
            token = (await rows.mint(made.service.store, key, InstallationId(7), concurrency=20, **terms)).reveal()
        await asyncio.gather(*asking)
        await holds(made, key, limit + reserve)
    for service, asking in old:
        await asyncio.gather(*asking)
        await service.ended()
    counted = await holds(made, key, limit + reserve)
    return made.provider.bills.get(key.session, 0.0), counted, limit + reserve


async def holds(made: Bench, key: TurnKey, most: float) -> float:
    """Once the last one is settled: who leaves before it is sent does not wait for that."""
    async with asyncio.timeout(10):
        while (cost := await spend.turn_cost(made.service.store, key)).open:
            assert cost.counted_usd + cost.reserved_usd <= most + SLACK, f"{key.session}: {cost} may pass {most}"
            await asyncio.sleep(0)
    assert cost.counted_usd <= most + SLACK, f"{key.session}: {cost} passes {most}"
    billed = made.provider.bills.get(key.session, 0.0)
    assert billed <= cost.counted_usd + SLACK, f"{key.session}: {billed} was charged, {cost} counted"
    return cost.counted_usd


async def run(first: int, count: int) -> None:
    began, over, closest, asked, lives = time.monotonic(), 0, 0.0, 0, 0
    for start in range(first, first + count, 200):
        with tempfile.TemporaryDirectory() as folder:
            async with bench(Path(folder), start) as made:
                for seed in range(start, min(start + 200, first + count)):
                    billed, counted, most = await history(made, seed)
                    over += billed > most
                    closest = max(closest, counted / most)
                asked, lives = asked + made.provider.asked, lives + made.lives
        done = min(start + 200, first + count) - first
        print(f"{done} histories, {asked} requests, {lives} crashes: {over} over the limit and one reserve; ", end="")
        print(f"at most {closest:.1%} of it was counted ({time.monotonic() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    asyncio.run(run(numbers[1] if len(numbers) > 1 else 0, numbers[0] if numbers else 10_000))
