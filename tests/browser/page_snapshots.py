"""`python -m tests.browser.page_snapshots OUT_DIR`: every page for people as an image: desktop, dark and phone."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from bot.simulation.anthropic import Script, Wait
from tests.browser.test_session_page import BROWSER, sign_in
from tests.world import World

THEMES = {"desktop": (1200, 900, "light"), "dark": (1200, 900, "dark"), "phone": (375, 700, "light")}


async def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with World.running(Path(folder)) as world, world.bot() as service, async_playwright() as playwright:
            world.github.organization("octo-org", owners=["alice"])
            world.say("/claude fix this and keep the tests green")
            await world.outcome()
            session = str(world.states()[0]["session"])
            other = world.github.open_issue(world.repo, title="Another", by="alice")
            world.model.default(Script([Wait("stuck")]))
            world.say("/claude look at this one too", on=other)
            await world.model.reached("stuck", timeout=30)
            running = str(world.states(other)[0]["session"])
            installation = f"/installations/{world.installation.id}"
            paths = {
                "home": "/",
                "ended": f"/sessions/{session}",
                "running": f"/sessions/{running}",
                "deliveries": "/deliveries",
                "installations": "/installations",
                "settings": installation,
                "spend": f"{installation}/spend",
                "filtered": "/?repo=octo-org/shop&state=pull_request",
                "nothing": "/?person=nobody",
                "hidden": "/sessions/aaaaaaaa",
            }
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            for theme in THEMES:
                await taken(browser, service.url, theme, paths, out)
            await browser.close()
            world.model.release("stuck")
            await world.outcome(on=other)


async def taken(browser: Browser, url: str, theme: str, paths: dict[str, str], out: Path) -> None:
    width, height, scheme = THEMES[theme]
    size = {"width": width, "height": height}
    page = await browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    (out / theme).mkdir(parents=True, exist_ok=True)
    await page.goto(f"{url}/")
    await page.screenshot(path=out / theme / "sign-in.png", full_page=True)
    await sign_in(page, url, "alice")
    for name, path in paths.items():
        await page.goto(f"{url}{path}")
        for fold in await page.locator("li.tool summary").all():
            await fold.click()
        wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide, f"{name} does not fit into {width} pixels"
        await page.screenshot(path=out / theme / f"{name}.png", full_page=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
