"""`python -m tests.bench session_page [--json] [CALLS…]`: a session's page in a browser: bytes, first paint, memory."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from playwright.async_api import Page, async_playwright

from bot.simulation.anthropic import Say, Script
from tests.bench.streams import _resident_mb
from tests.browser.test_session_page import BROWSER, sign_in
from tests.crash.process import Service
from tests.world import World
from tests.world.long_sessions import lengthen

SIZES = (200, 5000)
LOADS = 7
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
CAME = "performance.getEntriesByType('navigation')[0]"


@dataclass(frozen=True)
class Figures:
    calls: int
    entries_on_page: int
    html_bytes: int
    first_load_ms: float
    """The first paint when the service has not read the session yet."""
    first_paint_ms: float
    """The median of later loads."""
    answer_ms: float
    """The median time until the whole answer was there."""
    browser_heap_mb: float
    service_mb: float


async def main(sizes: list[int], *, as_json: bool) -> None:
    figures = [await measured(calls) for calls in sizes]
    if as_json:
        print(json.dumps([asdict(one) for one in figures]))
        return
    for one in figures:
        print(
            f"{one.calls} calls: {one.html_bytes:,} bytes with {one.entries_on_page} entries, answered in "
            f"{one.answer_ms:.0f} ms, first paint {one.first_paint_ms:.0f} ms (the very first {one.first_load_ms:.0f} "
            f"ms), {one.browser_heap_mb:.1f} MB in the browser, {one.service_mb:.0f} MB in the service"
        )


async def measured(calls: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        async with World.running(Path(folder)) as world, async_playwright() as playwright:
            world.model.default(Script([Say("Nothing to do.")]))
            service = await Service.start(world)
            assert service is not None
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            try:
                world.say("/claude look around")
                await world.outcome(timeout=120)
                session = await lengthen(world, calls)
                page = await browser.new_page(bypass_csp=True)  # waiting for a paint evaluates a string
                await sign_in(page, service.url, "alice")
                return await _look(page, service, f"{service.url}/sessions/{session}", calls)
            finally:
                await browser.close()
                await service.kill()


async def _look(page: Page, service: Service, url: str, calls: int) -> Figures:
    paints, answers = [], []
    for _ in range(LOADS):
        await page.goto(url)
        await page.wait_for_function(PAINTED)
        paints.append(float(await page.evaluate(PAINTED)))
        answers.append(float(await page.evaluate(f"{CAME}.responseEnd")))
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("HeapProfiler.collectGarbage")
    heap = await devtools.send("Runtime.getHeapUsage")
    return Figures(
        calls,
        entries_on_page=await page.locator("#reader li.entry").count(),
        html_bytes=int(await page.evaluate(f"{CAME}.decodedBodySize")),
        first_load_ms=round(paints[0], 1),
        first_paint_ms=round(statistics.median(paints[1:]), 1),
        answer_ms=round(statistics.median(answers[1:]), 1),
        browser_heap_mb=round(heap["usedSize"] / 1e6, 1),
        service_mb=round(_resident_mb(service), 1),
    )


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:] if one.isdecimal()]
    asyncio.run(main(given or list(SIZES), as_json="--json" in sys.argv))
