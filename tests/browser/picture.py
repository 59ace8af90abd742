"""`python -m tests.browser.picture OUT.webp`: README's picture, taken of a demo: live comment and pull request."""

from __future__ import annotations

import asyncio
import base64
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect

from tests.browser.test_demo_page import BROWSER, SESSION_MS, demo

WIDTH, HEIGHT, SCALE = 530, 900, 1.4
DRAW = """async sources => {
  const gap = 24, pad = 20, images = await Promise.all(sources.map(async source => {
    const image = new Image(); image.src = source; await image.decode(); return image;
  }));
  const canvas = document.createElement("canvas"), sum = list => list.reduce((a, b) => a + b);
  canvas.width = sum(images.map(one => one.width + 2 * pad + gap)) + gap;
  canvas.height = Math.max(...images.map(one => one.height)) + 2 * (pad + gap);
  const ink = canvas.getContext("2d");
  ink.fillStyle = "#e7eef6"; ink.fillRect(0, 0, canvas.width, canvas.height);
  let left = gap;
  for (const one of images) {
    ink.fillStyle = "#fff"; ink.fillRect(left, gap, one.width + 2 * pad, one.height + 2 * pad);
    ink.drawImage(one, left + pad, gap + pad); left += one.width + 2 * pad + gap;
  }
  return canvas.toDataURL("image/webp", 0.8);
}"""


async def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with demo(Path(folder) / "data") as (url, _), async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            view: ViewportSize = {"width": WIDTH, "height": HEIGHT}
            page = await browser.new_page(viewport=view, device_scale_factor=SCALE, bypass_csp=True)
            await page.goto(url)
            shots = [await at_work(page), await pull_request(page)]
            out.write_bytes(await beside_each_other(browser, shots))
            await browser.close()


async def at_work(page: Page) -> bytes:
    live = page.locator(".comment.bot").first
    await expect(live).to_contain_text("edited so far", timeout=SESSION_MS)
    await live.locator("details", has_text="Last tool calls").locator("summary").click()
    return await thread(page)


async def pull_request(page: Page) -> bytes:
    await expect(page.locator(".comment.bot").first).to_contain_text("Opened a pull request", timeout=SESSION_MS)
    await page.click(".mention a")
    await expect(page.locator(".diff .add").first).to_be_visible()
    return await thread(page)


async def thread(page: Page) -> bytes:
    """What stands on GitHub: without the demo's own buttons, which come back with every change of the page."""
    return await page.locator("main #live").screenshot(style="#live .try { display: none }")


async def beside_each_other(browser: Browser, shots: list[bytes]) -> bytes:
    """Pixel by pixel, and then as WebP: a third of what PNG needs for it."""
    page = await browser.new_page()
    sources = [f"data:image/png;base64,{base64.b64encode(one).decode()}" for one in shots]
    address = str(await page.evaluate(DRAW, sources))
    return base64.b64decode(address.partition(",")[2])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
