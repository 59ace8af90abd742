"""Set-up in a real browser without JavaScript: from the token through GitHub's own pages to the check-up, and dark."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, async_playwright, expect

from bot import setup as setting_up
from bot.checkup import NOWHERE
from tests.pages.test_setup import without_app
from tests.world import World

BROWSER = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), "")
MUST_RUN = os.environ.get("CI") == "true"
pytestmark = pytest.mark.skipif(
    not BROWSER and not MUST_RUN, reason="there is no chromium on PATH (on Debian: apt install chromium)"
)
CHECK_MS = 60_000


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = await browser.new_context(java_script_enabled=False, color_scheme="dark")
        page = await context.new_page()
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(f"{said.text} {said.location}"))
        yield page
        await browser.close()
        assert not [one for one in complaints if "/favicon.ico" not in one], "GitHub's stand-in has none"


async def test_from_the_token_to_a_check_up(world: World, page: Page) -> None:
    async with setting_up.serving(without_app(world)) as setup:
        await page.goto(f"{setup.url}/setup")
        await page.get_by_label("Token").fill(setup.token)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="The GitHub App")).to_be_visible()
        assert (
            await page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor") != "rgb(255, 255, 255)"
        )
        await page.get_by_label("Organisation").fill("octo-org")
        await page.get_by_label("Name of the App").fill("Smithy")
        await page.get_by_role("button", name="Continue to GitHub").click()
        await page.get_by_role("button", name="Create it on").click()
        await page.get_by_role("button", name="Create GitHub App for octo-org").click()
        await expect(page.get_by_role("status")).to_contain_text("GitHub created smithy")
        await page.get_by_role("link", name="Continue").click()
        await expect(page.get_by_text("smithy (id")).to_be_visible()
        async with page.expect_popup() as opened:
            await page.get_by_role("link", name="Install it").click()
        at_github = await opened.value
        await at_github.get_by_role("button", name="Install").click()
        await expect(at_github.get_by_role("heading")).to_contain_text("was installed")
        await page.get_by_role("link", name="Check everything").click(timeout=CHECK_MS)
        await expect(page.get_by_role("status")).to_contain_text("All checks passed", timeout=CHECK_MS)
        await page.get_by_role("link", name="Back").click()
        await page.get_by_role("button", name="Finish").click()
        await expect(page.get_by_role("status")).to_contain_text("Set-up is done")
        assert setup.finished.is_set()


async def test_an_app_that_exists_is_polled_without_a_webhook_secret(world: World, page: Page) -> None:
    async with setting_up.serving(without_app(world)) as setup:
        await page.goto(f"{setup.url}/setup")
        await page.get_by_label("Token").fill(setup.token)
        await page.keyboard.press("Enter")
        await page.get_by_text("Use an existing App").click()
        await page.get_by_label("App ID").fill(str(world.app.id))
        await page.get_by_label("Private key").fill(world.app.private_key_pem)
        await page.locator("form", has=page.get_by_label("App ID")).get_by_role("button", name="Store it").click()
        await expect(page.get_by_role("status")).to_contain_text("forgehand is stored")
        await page.get_by_role("link", name="Check everything").click(timeout=CHECK_MS)
        unwell = page.locator(".findings .bad")
        await expect(unwell).to_contain_text("keeps no log of deliveries", timeout=CHECK_MS)
        await expect(unwell).to_contain_text(NOWHERE)
        world.app.webhook_url = NOWHERE
        await page.get_by_role("link", name="Check again").click(timeout=CHECK_MS)
        await expect(page.get_by_role("status")).to_contain_text("All checks passed", timeout=CHECK_MS)


async def test_every_field_has_a_name_and_the_keyboard_reaches_all(world: World, page: Page) -> None:
    async with setting_up.serving(without_app(world)) as setup:
        await page.goto(f"{setup.url}/setup")
        await page.get_by_label("Token").fill(setup.token)
        await page.get_by_role("button", name="Open").click()
        fields = page.locator("input:not([type=hidden]), textarea")
        for index in range(await fields.count()):
            named = await fields.nth(index).evaluate("one => one.labels.length")
            assert named == 1, await fields.nth(index).evaluate("one => one.outerHTML")
        await page.goto(f"{setup.url}/setup")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        reached = set()
        for _ in range(20):
            await page.keyboard.press("Tab")
            reached.add(await page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        assert {"name", "organisation", "public_url", "Continue to GitHub", "api_key"} <= reached


async def test_the_page_looks_by_itself_whether_all_works_and_again_when_somebody_comes_back(world: World) -> None:
    async with setting_up.serving(without_app(world)) as setup, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(f"{setup.url}/setup")
        await page.get_by_label("Token").fill(setup.token)
        await page.keyboard.press("Enter")
        await page.get_by_text("Use an existing App").click()
        await page.get_by_label("App ID").fill(str(world.app.id))
        await page.get_by_label("Private key").fill("no key")
        store = page.locator("form", has=page.get_by_label("App ID")).get_by_role("button", name="Store it")
        await store.click()
        await expect(page.get_by_role("alert")).to_contain_text("not a private key")
        await expect(page.get_by_label("App ID")).to_have_value(str(world.app.id))
        await expect(page.get_by_label("Private key")).to_have_value("")
        await page.get_by_label("Private key").fill(world.app.private_key_pem)
        await store.click()
        found = page.locator("#findings")
        await expect(found.locator("li.bad")).to_contain_text("keeps no log of deliveries", timeout=CHECK_MS)
        world.app.webhook_url = NOWHERE
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await expect(found.get_by_role("status")).to_contain_text("All checks passed", timeout=CHECK_MS)
        await browser.close()
