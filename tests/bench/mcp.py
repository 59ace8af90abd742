"""`python -m tests.bench mcp`: what the gateway adds to a call of an MCP tool, against a direct connection.

Three processes: the stand-in for the server, the gateway's door on a separate store, and this one as the client. It
calls the same tool both ways in turns, over kept connections. Trust the difference; the goal is 3 ms at the median."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

from bot.simulation.mcp import SimulatedMcp
from tests.bench.gateway import process
from tests.world.mcp import BEARER, rigged

CALLS = 400
WARM = 40
PAUSE_SECONDS = 0.02
"""Between calls: an agent thinks for seconds, and the end of a call is stored after its answer."""
GOAL_MS = 3.0
MODULE = "tests.bench.mcp"
ASKED = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "find_issue", "arguments": {"word": "Round"}}}
VERSION = {"mcp-protocol-version": "2025-11-25", "accept": "application/json, text/event-stream"}


async def serve() -> None:
    async with SimulatedMcp.running(f"Bearer {BEARER}") as server:
        print(server.url.rpartition(":")[2].partition("/")[0], flush=True)
        await asyncio.Event().wait()


async def keep_door(url: str, folder: str) -> None:
    server = SimulatedMcp("")
    server.url = url
    async with rigged(Path(folder), server) as rig:
        token = rig.client.headers["authorization"].removeprefix("Bearer ")
        print(rig.client.base_url.port, token, flush=True)
        await asyncio.Event().wait()


async def session(client: httpx.AsyncClient, path: str) -> dict[str, str]:
    """Begin a session with the server itself; return the headers of its requests."""
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
    answer = await client.post(path, json=hello, headers=VERSION)
    return {**VERSION, "mcp-session-id": answer.headers["mcp-session-id"]}


async def call(client: httpx.AsyncClient, path: str, number: int, headers: dict[str, str]) -> float:
    began = time.perf_counter()
    answer = await client.post(path, json={**ASKED, "id": number}, headers=headers)
    took = time.perf_counter() - began
    assert answer.json()["result"]["content"][0]["text"] == "Round the discount", answer.text
    return took * 1000


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with process("serve", module=MODULE) as (_, [server]):
            url = f"http://127.0.0.1:{server}/mcp"
            async with process("door", url, folder, module=MODULE) as (_, [door, token]):
                direct, through = await measured(url, f"http://127.0.0.1:{door}/gateway/anthropic/mcp/tracker", token)
    for name, found in (("direct", direct), ("through the gateway", through)):
        p95 = statistics.quantiles(found, n=20)[-1]
        print(f"{name:20} p50 {statistics.median(found):6.2f} ms   p95 {p95:6.2f} ms")
    added = statistics.median(through) - statistics.median(direct)
    print(f"{'added':20} p50 {added:6.2f} ms   (goal: {GOAL_MS:.0f} ms)")


async def measured(url: str, door: str, token: str) -> tuple[list[float], list[float]]:
    direct: list[float] = []
    through: list[float] = []
    async with (
        httpx.AsyncClient(headers={"authorization": f"Bearer {BEARER}"}) as near,
        httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}) as far,
    ):
        headers = await session(near, url)
        for number in range(1, CALLS + WARM):
            direct.append(await call(near, url, number, headers))
            through.append(await call(far, door, number, VERSION))
            await asyncio.sleep(PAUSE_SECONDS)
    return direct[WARM:], through[WARM:]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            asyncio.run(serve())
        case ["door", url, folder]:
            asyncio.run(keep_door(url, folder))
        case _:
            asyncio.run(main())
