"""A session's page as people use it: search, keys, links, the timeline, the replay; with and without JavaScript."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from bot.simulation.anthropic import Call, Say, Script, Step, Wait
from bot.web.pages.query import PAGE
from tests.bench.session_page import measured
from tests.browser.test_session_page import SESSION_MS, browser, pytestmark, serious, sign_in
from tests.world import World
from tests.world.long_sessions import EVERY_FAILED, lengthen

__all__ = ["pytestmark"]

CALLS = 400


async def session_of(world: World) -> str:
    world.model.default(Script([Say("Nothing to do.")]))
    world.say("/claude look around")
    assert await world.outcome() == "no_change"
    return await lengthen(world, CALLS)


async def ids(page: Page) -> list[str]:
    found = await page.locator("#reader li.entry").evaluate_all("all => all.map(one => one.id)")
    return [str(one) for one in found]


async def in_view(page: Page, locator: str) -> bool:
    script = "one => { const box = one.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight }"
    return bool(await page.locator(locator).first.evaluate(script))


async def test_session_page_is_searched_walked_and_linked(world: World) -> None:
    async with world.bot() as service:
        path = f"/sessions/{await session_of(world)}"
        async with browser(world) as (context, complaints):
            page = await context.new_page()
            await sign_in(page, service.url, "alice", path)
            await page.evaluate("window.sameDocument = true")
            count, focused = page.locator("#count"), page.locator("li.entry:focus-within")
            await expect(count).to_have_text("Entries 402 to 501 of 501")

            # Search on the server; keys do not act while somebody writes.
            await page.keyboard.press("/")
            await expect(page.get_by_label("Search the transcript")).to_be_focused()
            await page.keyboard.type("jkes?")
            await expect(page.get_by_label("Search the transcript")).to_have_value("jkes?")
            await page.get_by_label("Search the transcript").fill("discount_77")
            await page.keyboard.press("Enter")
            await expect(count).to_have_text("Entries 1 to 1 of 1 found")
            await expect(page.locator("li.entry code").first).to_have_text("discount_77")
            assert page.url.endswith("?find=discount_77")
            await page.get_by_role("link", name="Clear").click()
            await expect(count).to_have_text("Entries 402 to 501 of 501")
            await page.get_by_label("Show").select_option("Edit")
            await expect(count).to_have_text("Entries 1 to 80 of 80 found")
            await page.go_back()
            await expect(count).to_have_text("Entries 402 to 501 of 501")

            # Walk by keys, and from error to error over all parts.
            await page.keyboard.press("j")
            first = str(await focused.get_attribute("id"))
            await page.keyboard.press("j")
            await expect(page.locator(f"li#{first}")).not_to_have_class(re.compile("here"))
            await page.keyboard.press("k")
            await expect(page.locator(f"li#{first}")).to_have_class(re.compile("here"))
            await page.keyboard.press("e")
            await expect(focused.locator("summary")).to_contain_text(f"Run the tests of part {CALLS - EVERY_FAILED}")
            await page.keyboard.press("e")
            await expect(focused.locator("summary")).to_contain_text(f"Run the tests of part {CALLS}")
            await page.keyboard.press("e")
            await expect(focused.locator("summary")).to_contain_text(f"Run the tests of part {EVERY_FAILED}")
            await expect(focused.locator(".result")).to_contain_text("AssertionError")
            await expect(focused.locator(".result")).to_be_visible()
            failed = str(await focused.get_attribute("id"))

            # The help, and keys that are switched off.
            await page.keyboard.press("?")
            await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
            await page.get_by_label("Use these keys").uncheck()
            await page.keyboard.press("Escape")
            await page.locator(f"#{failed} summary").focus()
            await page.keyboard.press("j")
            await expect(page.locator(f"#{failed} summary")).to_be_focused()

            # A link to an entry of long ago, from outside: old and new form.
            assert await page.evaluate("window.sameDocument"), "the page was never loaded anew"
            for address in (f"{path}#{failed}", f"{path}?at={failed}#{failed}"):
                other = await context.new_page()
                await other.goto(f"{service.url}{address}")
                await expect(other.locator(f"#{failed}")).to_be_visible()
                assert await in_view(other, f"#{failed}")
                await other.close()
            assert serious(complaints, status="401") == []


async def test_session_page_copies_opens_scrubs_and_replays(world: World) -> None:
    async with world.bot() as service:
        path = f"/sessions/{await session_of(world)}"
        async with browser(world) as (context, complaints):
            await context.grant_permissions(["clipboard-read", "clipboard-write"], origin=service.url)
            page = await context.new_page()
            await sign_in(page, service.url, "alice", path)
            newest = await ids(page)

            call = page.locator("li.tool", has_text="Run the tests of part 395")
            await expect(call.locator("summary")).to_contain_text(re.compile(r"\d\.\d s"))
            await call.get_by_role("button", name="Copy Bash").click()
            copied = str(await page.evaluate("navigator.clipboard.readText()"))
            assert copied.startswith("python -m pytest -q tests/test_395.py\n\n395\n")
            await call.get_by_role("link", name="Link to Bash").click()
            assert page.url.endswith(f"?at={await call.get_attribute('id')}#{await call.get_attribute('id')}")

            await page.get_by_role("link", name="Expand all").click()
            assert await page.locator("details.call:not([open])").count() == 0
            await page.get_by_role("link", name="Collapse all").click()
            assert await page.locator("details.call[open]").count() == 0

            # The slider of the timeline leads through the whole session, by mouse and by keyboard.
            await page.get_by_label("Moment in the session").focus()
            await page.keyboard.press("Home")
            await expect(page.locator("#count")).to_contain_text("Entries 1 to 100")
            await expect(page).to_have_url(re.compile(r"\?at=(e\d+-0)#\1$"))  # and it has scrolled there
            box = await page.locator("#timeline svg").bounding_box()
            assert box is not None
            await page.locator("#timeline svg").click(position={"x": box["width"] / 2, "y": 25})
            await expect(page.locator("#count")).not_to_contain_text("Entries 1 to 100")
            assert newest[0] not in await ids(page)

            # The replay begins at the first entry, pauses, jumps, and ends with the whole session.
            await page.get_by_label("Speed of the replay").select_option("16")
            await page.get_by_role("button", name="Replay").click()
            moment = page.locator("#moment")
            await expect(moment).to_contain_text(re.compile(r"· \d+ of 501 · \$"))
            await expect(page.locator("#talk li.entry").first).to_contain_text("Nothing to do.")
            await page.get_by_role("button", name="Pause").click()
            still = await moment.inner_text()
            await page.get_by_label("Moment in the session").focus()
            await page.keyboard.press("End")
            await expect(moment).not_to_have_text(still)
            await page.get_by_label("Speed of the replay").select_option("0")
            await page.get_by_role("button", name="Go on").click()
            await expect(moment).to_contain_text("501 of 501", timeout=SESSION_MS)
            await expect(page.get_by_role("button", name="Replay again")).to_be_visible(timeout=SESSION_MS)
            assert (await ids(page))[-1] == newest[-1]
            await page.get_by_role("button", name="End", exact=True).click()
            await expect(page.locator("#count")).to_have_text("Entries 402 to 501 of 501")
            assert await ids(page) == newest
            assert serious(complaints, status="401") == []


async def test_session_page_without_javascript_finds_filters_and_leads_everywhere(world: World) -> None:
    async with world.bot() as service:
        path = f"/sessions/{await session_of(world)}"
        async with browser(world, script=False) as (context, _):
            page = await context.new_page()
            await sign_in(page, service.url, "alice", path)
            read = await ids(page)
            while await (older := page.get_by_role("link", name="Earlier entries")).count():
                await older.click()
                read = await ids(page) + read
            assert len(read) == len(set(read)) == 501, "every entry is reached"
            await page.get_by_role("link", name="Later entries").click()
            assert (await ids(page))[0] == read[len(read) % 100]

            await page.goto(f"{service.url}{path}")
            await page.get_by_label("Search the transcript").fill("AssertionError")
            await page.get_by_label("Errors only").check()
            await page.get_by_role("button", name="Search").click()
            await expect(page.locator("#count")).to_have_text(f"Entries 1 to 8 of {CALLS // EVERY_FAILED} found")
            await page.get_by_role("link", name="Clear").click()
            for number in (1, 2):
                await page.get_by_role("link", name="Next error").click()
                here = page.locator("li.entry:target")
                await expect(here.locator("summary")).to_contain_text(f"Run the tests of part {number * EVERY_FAILED}")
                await expect(here.locator(".result")).to_contain_text("AssertionError")
                assert await in_view(page, "li.entry:target")
            await page.get_by_role("link", name="Expand all").click()
            assert await page.locator("details.call:not([open])").count() == 0
            await page.get_by_role("button", name="Go", exact=True).click()
            await expect(page.locator("#count")).to_have_text("Entries 402 to 501 of 501")
            await expect(page.get_by_label("Follow")).to_be_hidden()
            await expect(page.get_by_role("button", name="Replay")).to_be_hidden()


async def test_session_page_follows_only_while_asked_to_and_shows_the_pull_request_by_itself(world: World) -> None:
    many = [Call("Bash", {"command": f"echo {n}", "description": f"Count to {n}"}, f"Words {n}.") for n in range(30)]
    write = Call("Bash", {"command": "echo more >> notes.md", "description": "Write"})
    script: list[Step] = [*many[:15], Wait("read"), *many[15:], Wait("followed"), write, Say("All said.")]
    world.model.default(Script(script))
    async with world.bot() as service, browser(world) as (context, complaints):
        world.say("/claude go on")
        await world.model.reached("read", timeout=60)
        path = f"/sessions/{world.states()[0]['session']}"
        page = await context.new_page()
        await sign_in(page, service.url, "alice", path)
        await expect(page.get_by_text("Words 14.")).to_be_attached()
        assert await page.evaluate("window.scrollY") == 0
        world.model.release("read")
        await expect(page.get_by_text("Words 20.")).to_be_attached(timeout=SESSION_MS)
        assert await page.evaluate("window.scrollY") == 0, "nobody asked to follow"
        await page.get_by_role("switch", name="Follow").check()
        await expect(page.get_by_text("Words 29.")).to_be_in_viewport(timeout=SESSION_MS)
        await expect(page.locator("#headline")).to_be_in_viewport()
        await expect(page.get_by_role("button", name="Stop")).to_be_in_viewport()
        await page.mouse.move(600, 400)
        await page.mouse.wheel(0, -3000)
        await expect(page.get_by_role("switch", name="Follow")).not_to_be_checked()
        await expect(page.get_by_role("link", name="pull request #")).to_have_count(0)
        world.model.release("followed")
        await expect(page.get_by_role("link", name="pull request #")).to_be_visible(timeout=SESSION_MS)
        await expect(page.locator("#headline")).to_contain_text("Opened a pull request", timeout=SESSION_MS)
        await expect(page.get_by_role("button", name="Replay")).to_be_visible()
        assert serious(complaints, status="401") == []


async def test_session_page_of_5000_calls_is_small() -> None:
    found = await measured(5000)
    assert found.entries_on_page == PAGE
    assert found.html_bytes < 400_000
    assert found.first_paint_ms < 2000, "200 on an idle machine: python -m tests.bench session_page"
    assert found.browser_heap_mb < 20
