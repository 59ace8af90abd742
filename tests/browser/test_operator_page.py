"""The operator's and the spend page in a real browser: they follow what runs, by keyboard and on a phone, too."""

from __future__ import annotations

from playwright.async_api import expect

from bot.simulation.anthropic import Say, Script, Wait
from tests.browser import test_session_page
from tests.browser.test_session_page import SESSION_MS, browser, serious, sign_in
from tests.pages.test_operator_page import failed
from tests.world import World

pytestmark = test_session_page.pytestmark
PHONE = {"width": 360, "height": 740}


async def test_it_follows_what_runs_and_replays_by_keyboard(world: World) -> None:
    world.model.default(Script([Wait("on"), Say("Done.")]))
    async with world.bot(FORGEHAND_OPERATORS="alice") as service, browser(world) as (context, complaints):
        page = await context.new_page()
        await sign_in(page, service.url, "alice", "/operator")
        await expect(page.get_by_text("Nothing runs.")).to_be_visible()
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        await expect(page.get_by_role("heading", name="Running (1)")).to_be_visible(timeout=SESSION_MS)
        await expect(page.get_by_text("of $50.00")).to_be_visible()
        world.model.release("on")
        assert await world.outcome() == "no_change"
        await expect(page.get_by_text("Nothing runs.")).to_be_visible(timeout=SESSION_MS)
        world.model.default(Script([Say("Nothing to do.")]))
        failed(world, "/claude look around")
        replay = page.get_by_role("button", name="Replay delivery")
        await expect(replay).to_be_visible(timeout=SESSION_MS)
        await replay.focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"{service.url}/operator")
        await expect(page.get_by_role("button", name="Replay delivery")).to_have_count(0)
        assert await world.outcome(2) == "no_change"
        await expect(page.get_by_text("checks")).not_to_have_count(0, timeout=SESSION_MS)
        assert not serious(complaints, status="401")


async def test_without_a_script_it_is_whole_and_fits_a_phone(world: World) -> None:
    world.github.organization("octo-org", owners=["alice"])
    world.model.default(Script([Say("Nothing to do.")]))
    async with (
        world.bot(FORGEHAND_OPERATORS="alice") as service,
        browser(world, script=False) as (context, complaints),
    ):
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
        failed(world, "/claude look around")
        page = await context.new_page()
        await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        await sign_in(page, service.url, "alice", "/operator")
        await expect(page.get_by_role("button", name="Replay delivery")).to_be_visible()
        assert await page.locator("noscript").count() == 1, "it loads itself again"
        for path in ("/operator", "/deliveries", f"/installations/{world.installation.id}/spend"):
            await page.goto(f"{service.url}{path}")
            box = await page.locator("main").bounding_box()
            assert box is not None and box["width"] <= PHONE["width"], path
        await page.get_by_label("From").fill("2025-01-01")
        await page.get_by_label("To", exact=True).fill("2025-01-31")
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_text("from 2025-01-01 to 2025-01-31")).to_be_visible()
        assert not serious(complaints, status="401")
