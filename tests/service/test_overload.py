"""Out of descriptors, memory or time: the service says so and lives, and its health is what it says."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import os
import resource
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.crash.process import Service
from tests.world import WEBHOOK_SECRET
from tests.world.e2b import e2b_spine
from tests.world.plain_http import plain_client

MESSAGES = "/gateway/anthropic/v1/messages"
GITHUB_SECONDS = 10.0
"""What GitHub gives a delivery."""
UNHEARD_SECONDS = 3.0
ROOM = 80
MEGABYTE = 1 << 20
BURN = "import time\nuntil = time.monotonic() + 30\nwhile time.monotonic() < until: pass"


@dataclass
class Strained:
    """The service as a process of its own, and who calls it; each call on a connection of its own."""

    service: Service
    pid: int

    async def ask(self, method: str, path: str, content: bytes = b"", **headers: str) -> httpx.Response:
        async with plain_client(base_url=self.service.url, timeout=30) as client:
            return await client.request(method, path, content=content, headers=headers)

    async def health(self) -> int:
        return (await self.ask("GET", "/healthz")).status_code

    async def deliver(self, size: int = 0) -> httpx.Response:
        body = b'{"zen":"' + b"z" * size + b'"}'
        signature = hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha256).hexdigest()
        names = {"X-GitHub-Event": "ping", "X-GitHub-Delivery": str(uuid.uuid4())}
        return await self.ask("POST", "/webhook", body, **names, **{"X-Hub-Signature-256": f"sha256={signature}"})

    async def until(self, status: int) -> httpx.Response:
        """Return the first answer with this status; what a loop accepted before it hung is not waited for."""
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(TimeoutError):
                    answer = await asyncio.wait_for(self.deliver(), UNHEARD_SECONDS)
                    if answer.status_code == status:
                        return answer

    async def shed(self) -> httpx.Response:
        """The next request at the gateway that is not even looked at."""
        async with asyncio.timeout(10):
            while (answer := await self.ask("POST", MESSAGES, b"{}", **{"x-api-key": "fht_any"})).status_code != 503:
                continue
        return answer

    def limit(self, what: int, most: int) -> None:
        _, hard = resource.prlimit(self.pid, what)
        resource.prlimit(self.pid, what, (most, hard))

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def address_space(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[0])
        return pages * resource.getpagesize()


@pytest.fixture
async def strained(tmp_path: Path) -> AsyncIterator[Strained]:
    """For sandboxes in the cloud, which come to the gateway at the same door as everybody."""
    async with e2b_spine(tmp_path) as (world, _):
        service = await Service.start(world, module="tests.service.strained_service")
        assert service is not None
        one = Strained(service, service.process.pid)
        try:
            async with asyncio.timeout(60):
                while (await one.ask("GET", "/readyz")).status_code != 200:
                    continue
            yield one
        finally:
            await service.stop()


@asynccontextmanager
async def connected(one: Strained) -> AsyncIterator[None]:
    """Somebody who says nothing."""
    url = httpx.URL(one.service.url)
    _, writer = await asyncio.open_connection(url.host, url.port)
    try:
        yield
    finally:
        writer.close()


@pytest.mark.acceptance("F11")
async def test_without_descriptors_it_asks_to_come_back_and_is_healthy(strained: Strained) -> None:
    assert (await strained.deliver()).status_code == 202 and await strained.health() == 200
    before = resource.prlimit(strained.pid, resource.RLIMIT_NOFILE)[0]
    strained.limit(resource.RLIMIT_NOFILE, strained.descriptors + ROOM)
    async with contextlib.AsyncExitStack() as crowd:
        answer = await strained.deliver()
        for _ in range(ROOM):
            if "too many connections" in answer.text:
                break
            await crowd.enter_async_context(connected(strained))
            answer = await strained.deliver()
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0, answer.text
        for _ in range(5):
            await crowd.enter_async_context(connected(strained))
        refused = await strained.shed()
        assert refused.json()["error"]["type"] == "overloaded_error"
        assert int(refused.headers["retry-after"]) > 0 and "x-should-retry" not in refused.headers
        assert await strained.health() == 200
        for _ in range(ROOM):
            await crowd.enter_async_context(connected(strained))
        began = time.monotonic()
        assert await strained.health() == 200
        assert time.monotonic() - began < GITHUB_SECONDS, "who says nothing does not keep others out for long"
    await strained.until(202)
    strained.limit(resource.RLIMIT_NOFILE, before)


@pytest.mark.acceptance("F11")
async def test_without_memory_it_takes_what_it_can_and_refuses_the_rest(strained: Strained) -> None:
    assert (await strained.deliver(MEGABYTE)).status_code == 202
    strained.limit(resource.RLIMIT_AS, strained.address_space + 40 * MEGABYTE)
    answers = await asyncio.gather(*(strained.deliver(20 * MEGABYTE) for _ in range(6)), return_exceptions=True)
    statuses = [one.status_code if isinstance(one, httpx.Response) else type(one).__name__ for one in answers]
    assert await strained.health() == 200, statuses
    assert (await strained.deliver()).status_code == 202, statuses
    strained.limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)
    assert (await strained.deliver(20 * MEGABYTE)).status_code == 202
    assert set(statuses) <= {202, 503, "ReadError", "WriteError", "RemoteProtocolError"}, statuses
    assert 503 in statuses, statuses


@pytest.mark.acceptance("F11")
async def test_a_loop_that_hangs_is_said_to_hang_until_it_turns_again(strained: Strained) -> None:
    assert await strained.health() == 200
    strained.service.process.send_signal(signal.SIGUSR1)
    asked = asyncio.create_task(strained.until(503))
    answer = await asked
    assert int(answer.headers["retry-after"]) > 0
    assert await strained.health() == 503
    assert (await strained.shed()).json()["error"]["type"] == "overloaded_error"
    await strained.until(202)
    assert await strained.health() == 200


@pytest.mark.acceptance("F11")
async def test_health_is_not_well_without_the_store(strained: Strained) -> None:
    async def becomes(status: int) -> None:
        async with asyncio.timeout(10):
            while await strained.health() != status:
                continue

    await becomes(200)
    strained.service.process.send_signal(signal.SIGUSR2)
    await becomes(503)
    assert "cannot be opened" in (await strained.ask("GET", "/healthz")).json()["status"]
    strained.service.process.send_signal(signal.SIGUSR2)
    await becomes(200)


@pytest.mark.acceptance("F11")
async def test_beside_busy_neighbours_deliveries_are_taken_in_time(strained: Strained) -> None:
    burning = [await asyncio.create_subprocess_exec(sys.executable, "-c", BURN) for _ in range(os.cpu_count() or 2)]
    try:
        taken = 0
        for _ in range(10):
            began = time.monotonic()
            answer = await strained.deliver()
            assert time.monotonic() - began < GITHUB_SECONDS
            assert answer.status_code in (202, 503), answer.text
            taken += answer.status_code == 202
        assert taken >= 8, "a machine that others use too may make it wait, not often"
        assert await strained.health() == 200
    finally:
        for one in burning:
            one.kill()
            await one.wait()
