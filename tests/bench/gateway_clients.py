"""`python -m tests.bench.gateway_clients [ROUNDS]`: the gateway's client of the provider beside the same on aiohttp.

Both stand behind the interface of `Upstream`, over the same TLS. Each runs in a process that does nothing else, in
turns; the provider has a process of its own. Trust the CPU times, which depend little on what else the machine does.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from yarl import URL

from bot.web.gateway import exchange as ours
from bot.web.gateway.connection import MOST_BYTES, ConnectionBroken
from bot.web.gateway.exchange import Unreachable, Upstream
from tests.bench.gateway import process
from tests.world.certificates import Authority

ROUNDS = 5
ASKS = 300
REQUEST_BYTES = 100_000
STREAMS = 64
SKIPPED = ("user-agent", "accept", "content-type", "accept-encoding")


class AiohttpAnswer:
    def __init__(self, response: aiohttp.ClientResponse, read_seconds: float) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._content = response.content
        self._read_seconds = read_seconds

    async def next(self) -> bytes:
        try:
            if self._content.total_raw_bytes and (come := self._content.read_nowait(MOST_BYTES)):
                return come
            async with asyncio.timeout(self._read_seconds):
                return await self._content.read(MOST_BYTES)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionBroken(type(error).__name__) from None

    async def whole(self, limit: int) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        try:
            while burst := await self.next():
                size += len(burst)
                if size > limit:
                    return None
                parts.append(burst)
        except ConnectionBroken:
            return None
        return b"".join(parts)


class AiohttpUpstream:
    """Has a deadline for each wait, as ours: aiohttp's `sock_read` begins again with any byte."""

    def __init__(self, url: str, read_seconds: float = ours.READ_SECONDS) -> None:
        self._url = url.rstrip("/")
        self._read_seconds = read_seconds
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def ask(self, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> AsyncIterator[AiohttpAnswer]:
        session = self._opened()
        try:
            async with asyncio.timeout(self._read_seconds):
                response = await session.post(
                    URL(self._url + path, encoded=True),
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                    skip_auto_headers=SKIPPED,
                )
        except (
            aiohttp.ClientConnectorError,
            aiohttp.ConnectionTimeoutError,
            aiohttp.InvalidURL,
            UnicodeError,
        ) as error:
            raise Unreachable(type(error).__name__) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionBroken(type(error).__name__) from None
        try:
            yield AiohttpAnswer(response, self._read_seconds)
        finally:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=ours.MAX_CONNECTIONS, keepalive_timeout=ours.KEPT_SECONDS, ssl=ours._tls(), use_dns_cache=False
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                read_bufsize=MOST_BYTES,
                timeout=aiohttp.ClientTimeout(total=None, connect=ours.CONNECT_SECONDS),
            )
        return self._session


Client = Upstream | AiohttpUpstream
CLIENTS: dict[str, Callable[[str], Client]] = {"ours": Upstream, "aiohttp": AiohttpUpstream}


def words(what: str, size: int = 1) -> bytes:
    return json.dumps({"messages": [{"content": "x" * size + " " + what}]}).encode()


async def take(client: Client, body: bytes) -> tuple[float, int]:
    """Seconds to the first bytes, and how many came."""
    began = time.perf_counter()
    async with client.ask("/v1/messages", [("x-api-key", "bench")], body) as answer:
        size = len(await answer.next())
        first = time.perf_counter() - began
        while burst := await answer.next():
            size += len(burst)
    return first, size


async def requests(client: Client) -> dict[str, float]:
    body = words("1/0", REQUEST_BYTES)
    for _ in range(20):
        await take(client, body)
    before = time.process_time()
    firsts = sorted([(await take(client, body))[0] for _ in range(ASKS)])
    return {
        "CPU a request, ms": (time.process_time() - before) / ASKS * 1000,
        "first byte p50, ms": firsts[ASKS // 2] * 1000,
        "first byte p99, ms": firsts[int(ASKS * 0.99)] * 1000,
    }


async def streams(client: Client, what: str, name: str) -> dict[str, float]:
    before = time.process_time()
    sizes = await asyncio.gather(*(take(client, words(what)) for _ in range(STREAMS)))
    return {f"CPU a MB, {name}, ms": (time.process_time() - before) / sum(size for _, size in sizes) * 1e9}


async def spoken(client: Client) -> dict[str, float]:
    return await streams(client, "150/0.02", "as spoken")


async def flat_out(client: Client) -> dict[str, float]:
    return await streams(client, "3000/0", "small chunks")


async def large(client: Client) -> dict[str, float]:
    return await streams(client, "100/0/250", "large chunks")


def resident_kb() -> float:
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


async def idle(client: Client) -> dict[str, float]:
    await asyncio.gather(*(take(client, words("2/0")) for _ in range(4)))
    before = resident_kb()
    open_ = [asyncio.create_task(take(client, words("30/0.1"))) for _ in range(STREAMS)]
    await asyncio.sleep(1.5)
    found = (resident_kb() - before) / STREAMS
    await asyncio.gather(*open_)
    return {"memory an open stream, KB": found}


async def slow(client: Client) -> dict[str, float]:
    """Each of eight takes one burst of its 30 MB and waits; then all of it comes."""
    await asyncio.gather(*(take(client, words("2/0")) for _ in range(4)))
    before, ready, more = resident_kb(), asyncio.Barrier(9), asyncio.Event()

    async def one() -> int:
        async with client.ask("/v1/messages", [], words("1000/0/230")) as answer:
            size = len(await answer.next())
            await ready.wait()
            await more.wait()
            while burst := await answer.next():
                size += len(burst)
        return size

    readers = [asyncio.create_task(one()) for _ in range(8)]
    await ready.wait()
    await asyncio.sleep(1.5)
    found = (resident_kb() - before) / 8
    more.set()
    assert len(set(await asyncio.gather(*readers))) == 1
    return {"memory a slow reader, KB": found}


PARTS: dict[str, Callable[[Client], Awaitable[dict[str, float]]]] = {
    part.__name__: part for part in (requests, spoken, flat_out, large, idle, slow)
}


async def measure(name: str, url: str, part: str) -> None:
    client = CLIENTS[name](url)
    try:
        print(json.dumps(await PARTS[part](client)), flush=True)
    finally:
        await client.close()


async def main(rounds: int) -> None:
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        authority.server()
        async with process("provide", str(Path(folder) / "server.pem")) as (_, [port]):
            for part in PARTS:
                for number in range(rounds * 2):
                    name = list(CLIENTS)[(number + number // 2) % 2]  # neither is always the first
                    for what, value in (await _child(authority, name, f"https://127.0.0.1:{port}", part)).items():
                        found.setdefault(what, {each: [] for each in CLIENTS})[name].append(value)
    print(f"{f'median of {rounds}':28}" + "".join(f"{name:>12}" for name in CLIENTS) + f"{'ratio':>8}")
    for what, values in found.items():
        medians = [statistics.median(values[name]) for name in CLIENTS]
        print(f"{what:28}" + "".join(f"{value:12.2f}" for value in medians) + f"{medians[1] / medians[0]:8.2f}")


async def _child(authority: Authority, *arguments: str) -> dict[str, float]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.gateway_clients", *arguments),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "SSL_CERT_FILE": str(authority.file)},
    )
    said, _ = await child.communicate()
    return dict(json.loads(said))


if __name__ == "__main__":
    asyncio.run(measure(*sys.argv[1:]) if len(sys.argv) > 2 else main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS))
