"""`python -m tests.browser.picture FOLDER`: README's pictures, taken of a demo: the live comment, as people see it
grow, until the pull request is there; and the session's page."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, ViewportSize, async_playwright, expect

from tests.browser.test_demo_page import BROWSER, SESSION_MS, demo

WIDTH, HEIGHT, SCALE = 720, 900, 1.25
PAD, EDGE = 16, 12
PAPER, TABLE = "#fff", "#e7eef6"
FRAME_MS, LAST_FRAME_MS = 900, 4000
CALM = "#live .try { display: none } #live .comment.bot { min-height: 0 }"
"""Without the demo's own buttons, which come back with every change of the page."""
MOST_HEIGHT = 1350
"""Of a sheet; the pull request is cut off below that."""
NEWS = """before => new Promise(done => {
  const told = () => document.querySelector("main #live").innerText.replace(/\\d+/g, "");
  const look = () => told() === before ? requestAnimationFrame(look) : done(told());
  look();
})"""


async def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with demo(Path(folder) / "data") as (url, _), async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            view: ViewportSize = {"width": WIDTH, "height": HEIGHT}
            page = await browser.new_page(viewport=view, device_scale_factor=SCALE, bypass_csp=True)
            await page.goto(url)
            shots = [shot async for shot in thread_in_motion(page)]
            own = await session_page(page)
            shots.append(await pull_request(page))
            await browser.close()
    save([_picture(one) for one in shots], out / "live-comment.webp")
    _picture(own).save(out / "session-page.webp", quality=70, method=6)


async def thread_in_motion(page: Page) -> AsyncIterator[bytes]:
    """Take the thread each time its words change, and not for its figures, until it names the pull request."""
    told, last = "", b""
    while "Opened a pull request" not in told:
        async with asyncio.timeout(SESSION_MS / 1000):
            told = str(await page.evaluate(NEWS, told))
        if (shot := await thread(page)) != last:
            yield shot
        last = shot


async def session_page(page: Page) -> bytes:
    await page.get_by_role("link", name="The session's own page").click()
    own = await page.context.wait_for_event("page")
    await own.get_by_role("link", name="Sign in with GitHub").click()
    await own.get_by_role("button", name="Authorize").click()
    await expect(own.locator("#headline")).to_contain_text("Opened a pull request")
    await own.locator(".entry.tool summary", has_text="Edit").click()
    await own.evaluate("scrollTo(0, 0)")
    shot = await own.screenshot()
    await own.close()
    return shot


async def pull_request(page: Page) -> bytes:
    await page.click(".mention a")
    await expect(page.locator(".diff .add").first).to_be_visible()
    return await thread(page)


async def thread(page: Page) -> bytes:
    return await page.locator("main #live").screenshot(style=CALM)


def _picture(shot: bytes) -> Image.Image:
    return Image.open(BytesIO(shot)).convert("RGB")


def save(frames: list[Image.Image], out: Path) -> None:
    """Lay all frames on sheets of one size, because a picture that changes its size moves the text below it."""
    width = max(one.width for one in frames) + 2 * (PAD + EDGE)
    height = min(MOST_HEIGHT, max(one.height for one in frames) + 2 * (PAD + EDGE))
    sheets = [_sheet(one, width, height) for one in frames]
    times = [FRAME_MS] * (len(sheets) - 2) + [LAST_FRAME_MS] * 2
    sheets[0].save(
        out, save_all=True, append_images=sheets[1:], duration=times, loop=0, quality=60, method=6, minimize_size=True
    )


def _sheet(shot: Image.Image, width: int, height: int) -> Image.Image:
    sheet = Image.new("RGB", (width, height), TABLE)
    sheet.paste(PAPER, (EDGE, EDGE, width - EDGE, height - EDGE))
    sheet.paste(shot.crop((0, 0, shot.width, min(shot.height, height - 2 * EDGE - PAD))), (EDGE + PAD, EDGE + PAD))
    sheet.paste(TABLE, (0, height - EDGE, width, height))
    return sheet


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
