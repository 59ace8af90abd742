"""A session watched in a real browser, from its start to its end, over a lost connection: no line is missing."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from playwright.async_api import BrowserContext, Page, Request, async_playwright, expect

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.world import World

BROWSER = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), "")
MUST_RUN = os.environ.get("CI") == "true"
pytestmark = pytest.mark.skipif(
    not BROWSER and not MUST_RUN, reason="there is no chromium on PATH (on Debian: apt install chromium)"
)
SESSION_MS = 60_000
LOST = "net::ERR_"
"""What the browser says of a connection that we have cut ourselves."""


@asynccontextmanager
async def browser(world: World, *, script: bool = True) -> AsyncIterator[tuple[BrowserContext, list[str]]]:
    """One that speaks with us and with GitHub only, and what its console complained of."""
    complaints: list[str] = []
    ours: set[str] = {urlsplit(world.github.url).hostname or ""}

    def asked(request: Request) -> None:
        if urlsplit(request.url).hostname not in ours:
            complaints.append(f"a request to {request.url}")

    def watched(page: Page) -> None:
        page.on("console", lambda said: complaints.append(f"{said.text} {said.location}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", asked)

    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = await chromium.new_context(java_script_enabled=script)
        context.on("page", watched)
        yield context, complaints
        await chromium.close()


async def sign_in(page: Page, url: str, login: str, path: str = "/") -> None:
    """As a person does, from the page that they wanted to see."""
    await page.goto(f"{url}{path}")
    await page.get_by_role("link", name="Sign in with GitHub").click()
    await page.get_by_label("Username").fill(login)
    await page.get_by_role("button", name="Authorize").click()
    await page.wait_for_url(f"{url}{path}")


def serious(complaints: list[str], *, status: str = "") -> list[str]:
    return [one for one in complaints if "/favicon.ico" not in one and not (status and status in one)]


async def test_a_session_is_watched_from_its_start_to_its_end_over_a_lost_connection(world: World) -> None:
    steps: list[Say | Call | Wait] = []
    for n in range(6):
        steps += [
            Call("Bash", {"command": f"echo step {n}", "description": "Echo"}, f"Thought {n}."),
            Wait(f"after-{n}"),
        ]
    world.model.default(Script([*steps, Say("All said.")]))
    async with world.bot() as service, browser(world) as (context, complaints):
        world.say("/claude go on")
        await world.model.reached("after-0", timeout=60)
        path = f"/sessions/{world.states()[0]['session']}"
        page = await context.new_page()
        await sign_in(page, service.url, "alice", path)
        await page.evaluate("window.sameDocument = true")
        await expect(page.get_by_text("Thought 0.")).to_be_visible()
        fold = page.locator("li.tool details").first
        await fold.locator("summary").click()
        await expect(fold.locator(".result")).to_contain_text("step 0")
        for n in (0, 1):
            world.model.release(f"after-{n}")
            await expect(page.get_by_text(f"Thought {n + 1}.")).to_be_visible(timeout=SESSION_MS)
        assert serious(complaints, status="401") == [], "the page without a sign-in is a 401"
        await context.set_offline(True)
        port = urlsplit(service.url).port
        await cut(port)
        await expect(page.locator("#link")).to_contain_text("Connection lost", timeout=SESSION_MS)
        for n in (2, 3):
            world.model.release(f"after-{n}")
            await world.model.reached(f"after-{n + 1}", timeout=60)
        await expect(page.get_by_text("Thought 4.")).to_have_count(0)
        await context.set_offline(False)
        await expect(page.get_by_text("Thought 4.")).to_be_visible(timeout=SESSION_MS)
        for n in (4, 5):
            world.model.release(f"after-{n}")
        await expect(page.locator("#headline")).to_contain_text("Nothing was changed", timeout=SESSION_MS)
        await expect(page.get_by_text("All said.").first).to_be_visible()
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        assert await page.evaluate("window.sameDocument"), "the page was never loaded anew"
        assert await fold.get_attribute("open") is not None, "what was opened stays open"
        live = await page.locator("ol.entries > li").evaluate_all("all => all.map(one => one.id + one.innerText)")
        await page.reload()
        loaded = await page.locator("ol.entries > li").evaluate_all("all => all.map(one => one.id + one.innerText)")
        assert len(loaded) == len(live) >= 13
        assert [one.split()[0] for one in live] == [one.split()[0] for one in loaded], "in the same order"
        assert [one for one in serious(complaints, status="401") if LOST not in one] == []


async def cut(port: int | None) -> None:
    """The open streams of this process's server end, as when a network goes away."""
    import gc

    from bot.web.server import GuardedProtocol

    for one in gc.get_objects():
        if isinstance(one, GuardedProtocol) and one.transport and one.server and one.server[1] == port:
            one.transport.abort()
    await asyncio.sleep(0)


async def test_without_javascript_and_by_keyboard(world: World) -> None:
    async with world.bot() as service, browser(world, script=False) as (context, _):
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        page = await context.new_page()
        await sign_in(page, service.url, "alice")
        await page.get_by_role("link", name="octo-org/shop#").first.click()
        await expect(page.locator("#headline")).to_contain_text("Opened a pull request")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        fold = page.locator("li.tool", has_text="Edit").locator("summary").first
        await fold.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator(".diff .add").first).to_contain_text("never below zero")
        for button in await page.get_by_role("button").all():
            assert await button.inner_text(), "a button has a name"


async def test_the_front_page_shows_what_begins_and_ends_by_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.pages.front.LOOK_SECONDS", 0.1)
    world.model.default(Script([Wait("stuck"), Say("All said.")]))
    async with world.bot() as service, browser(world) as (context, complaints):
        page = await context.new_page()
        await sign_in(page, service.url, "alice")
        await page.evaluate("window.sameDocument = true")
        await expect(page.get_by_text("Nothing is running.")).to_be_visible()
        world.say("/claude look around")
        await expect(page.get_by_text("look around")).to_be_visible(timeout=SESSION_MS)
        link = page.get_by_role("link", name="octo-org/shop#")
        await link.focus()
        await world.model.reached("stuck", timeout=60)
        world.model.release("stuck")
        await expect(page.get_by_text("Nothing was changed")).to_be_visible(timeout=SESSION_MS)
        await expect(link).to_be_focused()
        await expect(page.get_by_text("Nothing is running.")).to_be_visible()
        assert await page.evaluate("window.sameDocument"), "the page was never loaded anew"
        assert serious(complaints, status="401") == []


async def test_what_a_stranger_sees(world: World) -> None:
    world.github.user("mallory")
    async with world.bot() as service, browser(world) as (context, complaints):
        world.say("/claude ask what is this?")
        await world.outcome()
        session = str(world.states()[0]["session"])
        page = await context.new_page()
        await sign_in(page, service.url, "mallory")
        await expect(page.get_by_text("No sessions yet")).to_be_visible()
        await page.goto(f"{service.url}/sessions/{session}")
        await expect(page.get_by_role("alert")).to_contain_text("or you may not see it")
        assert "octo-org" not in await page.content()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("link", name="Sign in with GitHub")).to_be_visible()
        assert [one for one in serious(complaints, status="401") if "404" not in one] == []
