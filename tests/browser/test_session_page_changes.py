"""The Changes page and a public link in a real browser: live, without JavaScript, by keyboard, for a stranger."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.browser.test_session_page import BROWSER, MUST_RUN, SESSION_MS, browser, serious, sign_in
from tests.world import World

pytestmark = pytest.mark.skipif(
    not BROWSER and not MUST_RUN, reason="there is no chromium on PATH (on Debian: apt install chromium)"
)


def write(path: str, text: str) -> Call:
    return Call("Write", {"file_path": path, "content": text}, f"I write {path}.")


async def test_the_changes_of_a_running_turn_appear_and_lead_to_their_calls(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.pages.changes.LOOK_SECONDS", 0.1)
    first, second = write("shop/first.py", "one = 1\n"), write("docs/second.md", "# Two\n")
    world.model.default(Script([first, Wait("first"), second, Say("Done.")]))
    async with world.bot() as service, browser(world) as (context, complaints):
        world.say("/claude write it")
        await world.model.reached("first", timeout=60)
        session = f"/sessions/{world.states()[0]['session']}"
        page = await context.new_page()
        await sign_in(page, service.url, "alice", f"{session}/changes")
        await page.evaluate("window.sameDocument = true")
        await expect(page.locator(".diff .add")).to_contain_text("+one = 1")
        fold = page.locator("details.file", has_text="shop/first.py")
        await fold.locator("summary").click()
        await expect(fold.locator(".diff")).to_be_hidden()
        world.model.release("first")
        await expect(page.get_by_text("as it came home")).to_be_visible(timeout=SESSION_MS)
        await expect(page.locator("details.file", has_text="docs/second.md")).to_contain_text("# Two")
        await expect(fold.locator(".diff")).to_be_hidden()  # what was closed stays closed
        assert await page.evaluate("window.sameDocument"), "the page was never loaded anew"
        await page.get_by_role("link", name="second.md").click()
        await page.locator("details.file", has_text="docs/second.md").get_by_role("link", name="Write at").click()
        target = page.locator("li.tool:target")
        await expect(target).to_contain_text("docs/second.md")
        await expect(page.get_by_role("link", name="Changes", exact=True)).to_be_visible()
        assert serious(complaints, status="401") == []


async def test_the_changes_without_javascript_and_by_keyboard(world: World) -> None:
    world.model.default(Script([write("a/b/long/way/file.py", "x = 1\n"), Say("Done.")]))
    async with world.bot() as service, browser(world, script=False) as (context, complaints):
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        page = await context.new_page()
        await page.set_viewport_size({"width": 360, "height": 700})
        await sign_in(page, service.url, "alice", f"/sessions/{world.states()[0]['session']}")
        await page.get_by_role("link", name="Changes", exact=True).focus()
        await page.keyboard.press("Enter")
        await expect(page.locator(".diff .add")).to_contain_text("+x = 1")
        summary = page.locator("details.file > summary")
        await summary.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("pre.diff")).to_be_hidden()
        assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth"), "it fits a phone"
        async with page.expect_download() as downloading:
            await page.get_by_role("link", name="the patch").click()
        assert (await downloading.value).suggested_filename.endswith("-1.patch")
        assert serious(complaints, status="401") == []


async def test_a_public_link_shows_the_session_to_a_stranger(world: World) -> None:
    world.repo.private = False
    world.model.default(Script([write("shop/first.py", "one = 1\n"), Say("All said.")]))
    async with world.bot() as service, browser(world) as (context, complaints):
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        page = await context.new_page()
        await sign_in(page, service.url, "alice", f"/sessions/{world.states()[0]['session']}/share")
        await page.get_by_label("It works for").select_option("1 day")
        await page.get_by_role("button", name="Make the link").click()
        link = await page.get_by_label("Public link").input_value()
        await page.context.clear_cookies()
        await page.goto(link)
        await expect(page.get_by_text("All said.").first).to_be_visible()
        assert await page.get_by_role("button").count() == 0 and await page.locator("form").count() == 0
        await page.get_by_role("link", name="Changes", exact=True).click()
        await expect(page.locator(".diff .add")).to_contain_text("+one = 1")
        await page.get_by_role("link", name="Write at").click()
        await expect(page.locator("li.tool:target")).to_contain_text("shop/first.py")
        assert serious(complaints, status="401") == []
