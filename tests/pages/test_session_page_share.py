"""Public links to a session: who may make and end one, what it shows to whom, and everything that ends it."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass

import httpx
import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.github import Fault
from bot.store import audit
from bot.store.base import Store
from tests.webhooks.test_delivery_log import until
from tests.world import World
from tests.world.visitor import Visitor, visitor

DAY = 86_400.0
LATE = "glpat-" + "x9Y8z7W6v5U4" * 2
"""Not known as a secret when it was stored: its row is put into the store as it is."""
WRITE = Call("Write", {"file_path": "new/price.py", "content": "def price():\n    return 5\n"}, "I write it.")


@dataclass
class Shared:
    world: World
    alice: Visitor
    stranger: httpx.AsyncClient
    session: str
    skipped: list[float]

    async def make(self, who: Visitor | None = None, **fields: str) -> tuple[int, str]:
        """As the browser sends the form; return the status and the path of the link."""
        answer = await (who or self.alice).send(f"/sessions/{self.session}/share", **{"days": "7", **fields})
        found = re.search(r'value="(?:https?://[^/"]+)(/shared/[\w-]+)"', answer.text)
        return answer.status_code, found[1] if found else ""

    async def status(self, link: str) -> int:
        return (await self.stranger.get(link)).status_code


@asynccontextmanager
async def shared(world: World) -> AsyncIterator[Shared]:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    world.model.default(Script([WRITE, Say("Written.")]))
    skipped = [0.0]
    async with world.bot(lambda: time.time() + skipped[0]) as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        async with httpx.AsyncClient(base_url=service.url) as stranger:
            yield Shared(world, alice, stranger, str(world.states()[0]["session"]), skipped)


async def trail(world: World) -> list[tuple[str, str, str]]:
    store = await Store.open_reader(world.database)
    try:
        return [(one.actor, one.action, one.subject) for one in await audit.listing(store)]
    finally:
        await store.close()


async def test_a_stranger_reads_what_somebody_with_write_access_shares_and_nothing_else(world: World) -> None:
    world.repo.private = False
    world.github.user("rita")
    world.repo.grant("rita", "read")
    async with shared(world) as one:
        status, link = await one.make()
        assert status == 200 and len(link) > 45
        page = await one.stranger.get(link)
        assert page.status_code == 200 and "I write it." in page.text and "write it" in page.text
        assert page.headers["referrer-policy"] == "no-referrer" and "noindex" in page.headers["x-robots-tag"]
        assert (
            page.headers["cache-control"] == "no-store" and "script-src" not in page.headers["content-security-policy"]
        )
        changes = await one.stranger.get(f"{link}/changes")
        assert "def price():" in changes.text and f'href="{link}?at=e' in changes.text
        for text in (page.text, changes.text):
            assert not re.search(r"<form|<script|/sessions/|/patch/|/bundle/|/log|csrf", text), "no way on"
        for path in ("", "/log", "/changes", "/patch/1", "/events"):
            assert await one.status(f"/sessions/{one.session}{path}") == 401
        for wrong in (
            "/shared/x",
            f"{link}x",
            link[:-1],
            "/shared/" + "A" * 43,
            f"{link}/log",
            "/shared/%00" + "a" * 42,
        ):
            assert await one.status(wrong) == 404, wrong
        async with visitor(world, str(one.stranger.base_url).rstrip("/"), "rita") as rita:
            assert (await rita.get(f"/sessions/{one.session}/share")).status_code == 403
            assert (await one.make(rita))[0] == 403
            answer = await rita.send(f"/sessions/{one.session}/share/end")
            assert answer.status_code == 403 and await one.status(link) == 200
        forged = await one.alice.client.post(f"/sessions/{one.session}/share", data={"csrf": "0" * 64, "days": "7"})
        assert forged.status_code == 403
        with closing(sqlite3.connect(world.root / "data/state.db")) as db:
            assert link.rpartition("/")[2] not in str(db.execute("SELECT * FROM shares").fetchall())
        assert ("alice", "share link made", one.session) in await trail(world)


def uninstalled(one: Shared) -> None:
    one.world.github.uninstall(one.world.installation)


def suspended(one: Shared) -> None:
    one.world.github.suspend(one.world.installation)


def removed(one: Shared) -> None:
    one.world.github.remove_repos(one.world.installation, one.world.repo)


def private(one: Shared) -> None:
    one.world.repo.private = True
    one.skipped[0] += 61


def its_maker_lost_access(one: Shared) -> None:
    one.world.repo.grant("alice", "read")
    one.skipped[0] += 61


def expired(one: Shared) -> None:
    one.skipped[0] += 7 * DAY


@pytest.mark.parametrize("happens", [uninstalled, suspended, removed, private, its_maker_lost_access, expired])
async def test_a_link_ends_with(world: World, happens: Callable[[Shared], None]) -> None:
    world.repo.private = False
    async with shared(world) as one:
        _, link = await one.make()
        assert await one.status(link) == 200
        happens(one)

        async def ended() -> bool:
            return [await one.status(link), await one.status(f"{link}/changes")] == [404, 404]

        await until(ended, 20)


async def test_who_has_write_access_ends_it_and_another_link_replaces_it(world: World) -> None:
    world.repo.private = False
    world.github.user("bob")
    world.repo.grant("bob", "write")
    async with shared(world) as one:
        _, first = await one.make()
        _, second = await one.make(days="30")
        assert [await one.status(first), await one.status(second)] == [404, 200]
        for wrong in ("", "0", "31", "-1", "7.0", "forever"):
            assert (await one.make(days=wrong))[0] == 422
        async with visitor(world, str(one.stranger.base_url).rstrip("/"), "bob") as bob:
            assert "alice made it" in (await bob.get(f"/sessions/{one.session}/share")).text
            assert (await bob.send(f"/sessions/{one.session}/share/end")).status_code == 303
        assert await one.status(second) == 404
        assert ("bob", "share link ended", one.session) in await trail(world)


async def test_a_private_repository_needs_its_owners_consent_and_a_confirmation(world: World) -> None:
    async with shared(world) as one:
        status, link = await one.make(confirmed="yes")
        assert (status, link) == (422, ""), "forbidden unless the owner allows it"
        async with visitor(world, str(one.stranger.base_url).rstrip("/"), "olga") as olga:
            settings = f"/installations/{world.installation.id}"

            async def choose(value: str) -> int:
                found = re.search(r'name="version" value="(\d+)"', (await olga.get(settings)).text)
                assert found
                return (await olga.send(f"{settings}/sharing", version=found[1], share_links=value)).status_code

            assert await choose("everything") == 422
            assert await choose("all") == 200
            assert (await one.make())[0] == 422, "without the confirmation"
            status, link = await one.make(confirmed="yes")
            assert status == 200 and await one.status(link) == 200
            assert await choose("none") == 200
            assert await one.status(link) == 404, "at once"
            assert await choose("") == 200
            assert await one.status(link) == 404
        alice = await one.alice.send(f"{settings}/sharing", version="0", share_links="all")
        assert alice.status_code == 404, "she owns nothing of the account"


async def test_strangers_see_no_secret_that_became_known_later(world: World) -> None:
    world.repo.private = False
    async with shared(world) as one:
        with closing(sqlite3.connect(world.root / "data/state.db", timeout=10)) as db, db:
            db.execute("UPDATE events SET line = REPLACE(line, 'Written.', ?)", (f"Written with {LATE}.",))
            db.execute("UPDATE events SET line = REPLACE(line, 'return 5', ?)", (f"return '{LATE}'",))
            db.execute("UPDATE turns SET prompt = ?, detail = ?", (f"use {LATE}", f"it was {LATE}"))
        (patch,) = (world.root / "data/changes").iterdir()
        patch.write_text(patch.read_text().replace("return 5", f"return '{LATE}'"))
        _, link = await one.make()
        for path in (link, f"{link}/changes"):
            page = await one.stranger.get(path)
            assert page.status_code == 200 and "[redacted]" in page.text
            assert LATE not in page.text, path


async def test_a_secret_that_becomes_known_goes_from_pages_that_were_drawn_before(world: World) -> None:
    """The account's owner stores the key of their own gateway, which looks like no token."""
    world.repo.private = False
    key = "gateway-" + "k3y7" * 6
    world.model.api_keys.append(key)
    async with shared(world) as one:
        with closing(sqlite3.connect(world.root / "data/state.db", timeout=10)) as db, db:
            db.execute("UPDATE events SET line = REPLACE(line, 'Written.', ?)", (f"Written with {key}.",))
        (patch,) = (world.root / "data/changes").iterdir()
        patch.write_text(patch.read_text().replace("return 5", f"return '{key}'"))
        _, link = await one.make()
        for path in (link, f"{link}/changes"):
            assert key in (await one.stranger.get(path)).text, "nobody could know"
        async with visitor(world, str(one.stranger.base_url).rstrip("/"), "olga") as olga:
            at = f"/installations/{world.installation.id}/key"
            assert (await olga.send(at, name="ANTHROPIC_API_KEY", value=key)).status_code == 200
        for path in (link, f"{link}/changes"):
            page = await one.stranger.get(path)
            assert page.status_code == 200 and "[redacted]" in page.text
            assert key not in page.text, path


async def test_a_link_is_not_read_endlessly(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.web.pages.shared.PER_MINUTE_EACH", 5)
    world.repo.private = False
    async with shared(world) as one:
        _, link = await one.make()
        assert [await one.status(link) for _ in range(6)] == [200] * 5 + [429]


async def test_one_question_that_github_leaves_open_does_not_hold_up_other_visitors(world: World) -> None:
    world.repo.private = False
    async with shared(world) as one:
        _, link = await one.make()
        assert await one.status(link) == 200
        held = world.github.faults.add(Fault(f"GET *repos/{world.repo.full_name}", "hold"))
        again = asyncio.create_task(one.make())
        try:
            async with asyncio.timeout(20):
                await held.reached.wait()
                assert await one.status(link) == 200, "known for a minute"
        finally:
            held.release.set()
        assert (await again)[0] == 200 and await one.status(link) == 404


async def test_a_link_that_github_no_longer_confirms_asks_it_no_more_often(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has an old link must not use up the installation's requests."""
    monkeypatch.setattr("bot.web.pages.shared.PER_MINUTE_EACH", 5)
    world.repo.private = False
    async with shared(world) as one:
        _, link = await one.make()
        one.skipped[0] += 61
        path = f"/repos/{world.repo.full_name}"
        world.github.faults.add(Fault(f"GET *{path}", "fail", status=404, times=99))
        before = len(world.github.calls)
        assert [await one.status(link) for _ in range(9)] == [404] * 5 + [429] * 4
        assert sum(call.path.endswith(path) for call in world.github.calls[before:]) <= 5
