"""What axe-core finds on each page, in light and dark, on a desk and on a phone: nothing serious."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.browser.test_session_page import BROWSER, pytestmark, sign_in
from tests.world import World
from tests.world.axe import grave_faults
from tests.world.long_sessions import lengthen

__all__ = ["pytestmark"]

DESK, PHONE = {"width": 1200, "height": 900}, {"width": 360, "height": 740}
FORMS = [("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE)]


async def opened(browser: Browser, scheme: str, size: dict[str, int], url: str) -> Page:
    context = await browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": size["width"], "height": size["height"]},
    )
    page = await context.new_page()
    await sign_in(page, url, "alice")
    return page


async def fits(page: Page) -> bool:
    return bool(await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


async def test_axe_finds_faults(world: World) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.set_content("<html><body><img src='x'><input><p style='color: #ccc'>pale</p></body></html>")
        found = " ".join(await grave_faults(page))
        assert all(rule in found for rule in ("image-alt", "label", "color-contrast", "html-has-lang"))
        await browser.close()


@pytest.mark.timeout(300)
async def test_session_page_and_the_others_have_no_serious_fault(world: World) -> None:
    world.declare_checks()
    world.github.organization("octo-org", owners=["alice"])
    async with world.bot() as service, async_playwright() as playwright:
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        ended = str(world.states()[0]["session"])
        await lengthen(world, 60, session=ended)
        other = world.github.open_issue(world.repo, title="Another", by="alice")
        failing = Call("Bash", {"command": "cat nowhere", "description": "Read what is not there"}, "I *look*.")
        world.model.default(Script([failing, Wait("stuck"), Say("Done.")]))
        world.say("/claude look around", on=other)
        await world.model.reached("stuck", timeout=60)
        running = str(world.states(other)[0]["session"])
        installation = f"/installations/{world.installation.id}"
        paths = [
            f"/sessions/{ended}",
            f"/sessions/{running}",
            f"/sessions/{ended}?find=discount&only=errors&open=all",
            f"/sessions/{ended}?find=nowhere-to-be-found",
            f"/sessions/{ended}/changes",
            f"/sessions/{ended}/share",
            "/",
            "/deliveries",
            "/installations",
            f"{installation}/mcp",
            installation,
            f"{installation}/spend",
            "/sessions/aaaaaaaa",
        ]
        browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        faults: list[str] = []
        for scheme, size in FORMS:
            page = await opened(browser, scheme, size, service.url)
            for path in paths:
                await page.goto(f"{service.url}{path}")
                faults += [f"{path} {scheme} {size['width']}: {one}" for one in await grave_faults(page)]
                assert await fits(page), f"{path} is wider than {size['width']} pixels"
            await page.goto(f"{service.url}/sessions/{ended}")
            for fold in ("details.about", "li.failed details"):
                await page.locator(f"{fold} > summary").first.click()
            await page.get_by_role("button", name="Keys").click()
            await expect(page.get_by_role("dialog")).to_be_visible()
            faults += [f"help {scheme} {size['width']}: {one}" for one in await grave_faults(page)]
            await page.get_by_role("button", name="Close").click()
            faults += [f"open {scheme} {size['width']}: {one}" for one in await grave_faults(page)]
            assert await fits(page)
            await page.context.close()
        await browser.close()
        assert faults == []
        world.model.release("stuck")
        await world.outcome(on=other)
