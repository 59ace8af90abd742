"""`python -m tests.browser.page_snapshots OUT_DIR`: every page for people as an image, also dark and on a phone."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from bot import setup as setting_up
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.state import Repository
from tests.browser.test_session_page import BROWSER, sign_in
from tests.pages.test_setup import without_app
from tests.world import World
from tests.world.long_sessions import lengthen

SECONDS = 300.0
THEMES = {
    "desktop": (1200, 900, "light"),
    "dark": (1200, 900, "dark"),
    "phone": (360, 800, "light"),
    "phone-dark": (360, 800, "dark"),
}
LONG = "octo-org/the-service-that-answers-questions-about-orders-that-were-never-sent"
TODO = [
    {"content": "Find where the discount is applied", "status": "completed", "activeForm": "Looking"},
    {
        "content": "Clamp the price at zero and say so in the docstring",
        "status": "in_progress",
        "activeForm": "Clamping",
    },
    {"content": "Run the tests", "status": "pending", "activeForm": "Running the tests"},
]
AT_WORK: list[Call | Wait] = [
    Call("TodoWrite", {"todos": TODO}, "I look at the code first."),
    Call("Bash", {"command": "ls -la && git log --oneline | head -3", "description": "Look around"}),
    Call("Bash", {"command": "cat nowhere.py", "description": "Read a file that is not there"}),
    Wait("stuck"),
]


async def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            await people(browser, Path(folder), out)
            await set_up(browser, Path(empty), out)
            await browser.close()


async def people(browser: Browser, root: Path, out: Path) -> None:
    async with World.running(root) as world, world.bot(FORGEHAND_OPERATORS="alice") as service:
        world.declare_checks()
        world.github.organization("octo-org", owners=["alice"])
        world.say("/claude fix this and keep the tests green")
        await world.outcome(timeout=SECONDS)
        session = str(world.states()[0]["session"])
        await many(world)
        far = world.github.open_issue(world.repo, title="A long one", by="alice")
        world.say("/claude look at everything", on=far)
        await world.outcome(on=far, timeout=SECONDS)
        long = await lengthen(world, 5000, session=str(world.states(far)[0]["session"]))
        other = world.github.open_issue(world.repo, title="Another", by="alice")
        world.model.default(Script(AT_WORK))
        world.say("/claude look at this one too", on=other)
        await world.model.reached("stuck", timeout=SECONDS)
        running = str(world.states(other)[0]["session"])
        _fail_a_delivery(world)
        installation = f"/installations/{world.installation.id}"
        paths = {
            "home": "/",
            "ended": f"/sessions/{session}",
            "changes": f"/sessions/{session}/changes",
            "share": f"/sessions/{session}/share",
            "running": f"/sessions/{running}",
            "long": f"/sessions/{long}",
            "errors": f"/sessions/{long}?find=pytest&only=errors&open=all",
            "deliveries": "/deliveries",
            "installations": "/installations",
            "mcp": f"{installation}/mcp",
            "settings": installation,
            "spend": f"{installation}/spend",
            "operator": "/operator",
            "filtered": "/?repo=octo-org/shop&state=pull_request",
            "nothing": "/?person=nobody",
            "hidden": "/sessions/aaaaaaaa",
        }
        for theme in THEMES:
            page = await opened(browser, theme, out)
            await page.goto(f"{service.url}/")
            await shot(page, out, theme, "sign-in")
            await sign_in(page, service.url, "alice")
            for name, path in paths.items():
                await page.goto(f"{service.url}{path}")
                for fold in await page.locator("li.tool summary").all() if name not in ("long", "errors") else []:
                    await fold.click()
                await shot(page, out, theme, name)
        world.model.release("stuck")
        await world.outcome(on=other)


def _fail_a_delivery(world: World) -> None:
    with sqlite3.connect(world.root / "data" / "state.db", timeout=30) as db:
        db.execute(
            "INSERT INTO deliveries (guid, event, action, body_sha256, body, received_at, state, reason, repo_id, "
            "number, sender) VALUES ('72d3162e-cc78-11e3-81ab-4c9367dc0958', 'issue_comment', 'created', '', '{}', ?, "
            "'failed', 'GitHub did not answer within 30 seconds (`502`)', ?, 1, 'bartholomew-fitzgerald-the-third')",
            (time.time(), world.repo.id),
        )
        db.execute(
            "UPDATE repos SET config_state = 'error', config_read_at = ?, "
            "config_problem = 'Line 4: `chekcs` is no key (did you mean `checks`?)' WHERE id = ?",
            (time.time(), world.repo.id),
        )


async def many(world: World) -> None:
    """Ends of other kinds, elsewhere, asked for by others, and in a repository with a long name."""
    long: Repository = world.github.create_repo(LONG, files={"README.md": "# Orders\n"}, private=True)
    world.github.user("bartholomew-fitzgerald-the-third")
    for repo in (long, world.repo):
        repo.grant("alice", "write")
        repo.grant("bartholomew-fitzgerald-the-third", "write")
    world.github.add_repos(world.installation, long)
    asked = {
        "/claude ask what does this do, and why is it so long that nobody has read it to its end in all these years? "
        "Please answer in a table.": Say(ANSWER),
        "/claude mend the orders": Say("There is nothing to mend here."),
    }
    for words, answer in asked.items():
        world.model.default(Script([answer]))
        thread = world.github.open_issue(long, title="Orders", by="alice")
        world.say(words, by="bartholomew-fitzgerald-the-third", on=thread)
        await world.outcome(on=thread, timeout=SECONDS)


ANSWER = """## What it does

It answers questions about *orders*, see `orders/answer.py`:

| question | answered by | how often |
|---|---|---:|
| where is it? | `where()` | 3 |
| was it ever sent? | `sent(order, *, since=datetime(2026, 1, 1), a_rather_long_argument=None)` | 12 |

1. It reads the order.
2. It looks into the [book](https://example.org/book).

```python
def sent(order: Order) -> bool:
    return order.sent_at is not None and order.sent_at < now() and not order.was_lost and order.customer.is_awake
```

> Nobody has asked for it since 2019.
"""


async def set_up(browser: Browser, root: Path, out: Path) -> None:
    async with World.running(root) as world:
        for theme in THEMES:
            data = root / theme
            async with setting_up.serving(without_app(world, FORGEHAND_DATA_DIR=str(data))) as setup:
                page = await opened(browser, theme, out)
                await page.goto(f"{setup.url}/setup")
                await shot(page, out, theme, "setup-door")
                await page.get_by_label("Token").fill(setup.token)
                await page.keyboard.press("Enter")
                await page.get_by_label("App ID").wait_for(state="attached")
                await shot(page, out, theme, "setup")
                await page.get_by_text("Use an existing App").click()
                await page.get_by_label("App ID").fill(str(world.app.id))
                await page.get_by_label("Private key").fill("not a key")
                store = page.locator("form", has=page.get_by_label("App ID")).get_by_role("button", name="Store it")
                await store.click()
                await shot(page, out, theme, "setup-wrong")
                await page.get_by_label("App ID").fill(str(world.app.id))
                await page.get_by_label("Private key").fill(world.app.private_key_pem)
                await store.click()
                await page.get_by_text("is stored").first.wait_for()
                await shot(page, out, theme, "setup-app")
                await page.goto(f"{setup.url}/setup/check", timeout=90_000)
                await shot(page, out, theme, "setup-check")


async def opened(browser: Browser, theme: str, out: Path) -> Page:
    width, height, scheme = THEMES[theme]
    (out / theme).mkdir(parents=True, exist_ok=True)
    size = {"width": width, "height": height}
    return await browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]


async def shot(page: Page, out: Path, theme: str, name: str) -> None:
    wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide, f"{name} does not fit into {THEMES[theme][0]} pixels"
    await page.screenshot(path=out / theme / f"{name}.png", full_page=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
