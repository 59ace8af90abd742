"""The demo's page in a real browser: it follows the session by itself, and its form reaches Forgehand."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import ConsoleMessage, Page, Request, async_playwright, expect

from tests.world.postgres import require_programs

BROWSER = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), "")
MUST_RUN = os.environ.get("CI") == "true"
pytestmark = pytest.mark.skipif(
    not BROWSER and not MUST_RUN, reason="there is no chromium on PATH (on Debian: apt install chromium)"
)
WATCH = re.compile(r"Watch it here:\s+(\S+)")
START_SECONDS, SESSION_MS = 90.0, 60_000


@asynccontextmanager
async def demo(data_dir: Path, *options: str) -> AsyncIterator[tuple[str, Process]]:
    """The command as a person starts it, and the address that it names."""
    environment = {**os.environ, "FORGEHAND_DATA_DIR": str(data_dir)}
    command = (sys.executable, "-m", "bot", "demo", "--port", "0", *options)
    process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=PIPE)
    assert process.stderr is not None
    said = ""
    try:
        async with asyncio.timeout(START_SECONDS):
            while (found := WATCH.search(said)) is None:
                line = await process.stderr.readline()
                assert line, f"the demo ended: {said}"
                said += line.decode()
        rest = asyncio.create_task(process.stderr.read())
        yield found[1], process
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        async with asyncio.timeout(START_SECONDS):
            await process.wait()
            assert "Traceback" not in (await rest).decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def browser_page(url: str) -> AsyncIterator[Page]:
    """A page that may speak with the demo only, and whose console stays silent."""
    complaints: list[str] = []
    host = urlsplit(url).netloc

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def asked(request: Request) -> None:
        if urlsplit(request.url).netloc != host:
            complaints.append(f"a request to {request.url}")

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = await browser.new_page()
        page.on("console", said)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", asked)
        await page.goto(url)
        yield page
        assert complaints == []
        await browser.close()


async def test_the_page_shows_the_session_to_its_end_and_takes_comments(tmp_path: Path) -> None:
    async with demo(tmp_path / "data") as (url, _), browser_page(url) as page:
        await page.evaluate("window.sameDocument = true")
        live = page.locator(".comment.bot").first
        await expect(live).to_contain_text("Now:", timeout=SESSION_MS)
        fold = live.locator("details", has_text="Last tool calls")
        await fold.locator("summary").click()
        await page.fill("#body", "half a sentence")
        await expect(live).to_contain_text("✅ Reproduce the failure", timeout=SESSION_MS)
        await expect(fold).to_have_attribute("open", "", timeout=1_000)
        await expect(live).to_contain_text("Opened a pull request", timeout=SESSION_MS)
        await expect(page.locator("#body")).to_have_value("half a sentence")
        await expect(page.locator("#body")).to_be_focused()

        await page.fill("#body", "/claude status")
        await page.click("text=Comment >> nth=-1")
        await expect(page.locator(".comment.bot").last).to_contain_text("Nothing is running", timeout=SESSION_MS)
        assert await page.evaluate("window.sameDocument"), "the page was never loaded anew"

        await page.click(".mention a")
        await expect(page.locator(".diff .add").first).to_contain_text("never below zero")


async def test_a_box_that_is_ticked_on_the_page_is_a_command(tmp_path: Path) -> None:
    async with demo(tmp_path / "data") as (url, _), browser_page(url) as page:
        live = page.locator(".comment.bot").first
        await expect(live).to_contain_text("Now:", timeout=SESSION_MS)
        await live.locator("input[data-task]").first.check()
        await expect(live).to_contain_text("asked to stop", timeout=SESSION_MS)
        await expect(live.locator("input[data-task]").first).not_to_be_checked()
        await expect(live).to_contain_text("/claude continue")


async def test_a_plan_is_approved_by_a_tick_in_the_rendered_comment(tmp_path: Path) -> None:
    async with demo(tmp_path / "data", "--scenario", "plan") as (url, _), browser_page(url) as page:
        live = page.locator(".comment.bot")
        await expect(page.locator(".try")).to_contain_text("tick “Approve the plan”")
        await expect(live).to_contain_text("clamp the price at zero", timeout=SESSION_MS)
        await live.locator("li", has_text="Approve the plan").locator("input[data-task]").check()
        await expect(live.nth(1)).to_contain_text("Opened a pull request", timeout=SESSION_MS)
        await expect(live.first.locator("input[data-task]")).to_have_count(0)


async def test_a_review_is_shown_with_its_suggestions_and_again_after_the_author_s_push(tmp_path: Path) -> None:
    async with demo(tmp_path / "data", "--scenario", "review") as (url, _), browser_page(url) as page:
        review = page.locator(".comment.review")
        await expect(review.first.locator(".suggestion")).to_have_count(2, timeout=SESSION_MS)
        dearest = review.first.locator(".line", has_text="sorted(prices)[0]")
        await expect(dearest.locator(".suggestion .del")).to_have_text("-    return sorted(prices)[0]")
        await expect(dearest.locator(".suggestion .add")).to_have_text("+    return max(prices)")
        await expect(page.locator(".check .annotation")).to_have_count(2, timeout=SESSION_MS)
        await page.get_by_role("button", name="Push the author's fix").click()
        await expect(dearest.locator("h3")).to_contain_text("resolved by forgehand", timeout=SESSION_MS)
        await expect(review).to_have_count(1)  # the second one has found nothing new


@pytest.mark.slow
async def test_words_and_a_crash_by_the_buttons_and_the_session_goes_on(tmp_path: Path) -> None:
    async with demo(tmp_path / "data") as (url, _), browser_page(url) as page:
        live, panel = page.locator(".comment.bot"), page.locator(".try")
        await expect(live.first).to_contain_text("Now:", timeout=SESSION_MS)
        await panel.get_by_role("button", name="Say something to the agent").click()
        crash = panel.get_by_role("button", name="Crash Forgehand")
        await crash.dblclick()
        await expect(panel).to_contain_text("restarted 1 ×", timeout=SESSION_MS)
        await expect(crash).to_be_focused()
        await expect(live.first).to_contain_text("Opened a pull request", timeout=SESSION_MS)
        await expect(live.first).to_contain_text("a test for a discount of 100 %")
        await expect(live).to_have_count(1)
        await expect(page.locator(".mention")).to_have_count(1)
        await panel.get_by_role("button", name="Take the last push back").click()
        await expect(live.nth(1)).to_contain_text("Pushed", timeout=SESSION_MS)


@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_the_page_shows_which_replica_was_killed_and_which_goes_on(tmp_path: Path) -> None:
    require_programs()
    async with demo(tmp_path / "data", "--replicas", "3") as (url, _), browser_page(url) as page:
        status = page.locator(".try [role=status]")
        await expect(status).to_contain_text(re.compile(r"Replica \d runs the turn"), timeout=SESSION_MS)
        await expect(status).to_contain_text(re.compile(r"Replica \d was killed; the others wait"), timeout=SESSION_MS)
        told = re.compile(r"Replica (\d) was killed while it ran the turn; replica (?!\1)\d took over")
        await expect(status).to_contain_text(told, timeout=SESSION_MS)
        await expect(page.locator(".comment.bot").first).to_contain_text("Opened a pull request", timeout=SESSION_MS)
        await expect(page.locator(".comment.bot")).to_have_count(1)
        await expect(page.locator(".mention")).to_have_count(1)


async def test_the_sessions_own_page_is_a_sign_in_away_and_follows_too(tmp_path: Path) -> None:
    async with demo(tmp_path / "data") as (url, _), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(url)
        async with page.expect_popup(timeout=SESSION_MS) as opened:
            await page.get_by_role("link", name="The session's own page").click(timeout=SESSION_MS)
        own = await opened.value
        await own.get_by_role("link", name="Sign in with GitHub").click()
        await expect(own.get_by_label("Username")).to_have_value("maya")
        await own.get_by_role("button", name="Authorize").click()
        await expect(own.locator("#headline")).to_contain_text("Opened a pull request", timeout=SESSION_MS)
        await expect(own.get_by_role("button", name="Retry")).to_be_visible()
        assert await page.locator(".comment.bot a", has_text="session").first.get_attribute("href") == (
            f"http://{urlsplit(url).netloc}/watch/forgehand/sessions/{own.url.rpartition('/')[2]}"
        )
        await browser.close()


async def test_a_crash_is_asked_for_by_the_page_alone(tmp_path: Path) -> None:
    async with demo(tmp_path / "data") as (url, _), httpx.AsyncClient() as client:
        site = urlsplit(url)
        answer = await client.post(
            f"http://{site.netloc}/watch/crash", headers={"origin": "https://elsewhere.example"}, timeout=START_SECONDS
        )
        assert answer.status_code == 403


@pytest.mark.quick("bot.simulation.pages")
async def test_a_page_whose_demo_has_ended_says_so(tmp_path: Path) -> None:
    async with demo(tmp_path / "data") as (url, process):
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": 375, "height": 700})
            await page.goto(url)
            await expect(page.locator(".comment").first).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            process.send_signal(signal.SIGINT)
            await expect(page.locator(".gone")).to_be_visible(timeout=SESSION_MS)
            await browser.close()
        assert await process.wait() == 130, "in the middle of the story"
