"""The lists of sessions and deliveries: paged through to the end, filtered by the address, and silent to strangers."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from pathlib import Path

import pytest

from bot.simulation.anthropic import Say, Script
from bot.store import lists
from bot.store.base import Store
from bot.store.lists import ListPosition, Wanted
from bot.words import replies
from tests.world import World
from tests.world.visitor import Visitor, visitor

MANY = 120
GUID = re.compile(r">(guid-\w+)<")
SESSION = re.compile(r'href="/sessions/([a-z0-9]{8})"')


@pytest.fixture
def other(world: World) -> int:
    """A repository that alice cannot read, with the newest sessions of all."""
    return world.github.create_repo("octo-org/secret", files={"a.txt": "a"}, private=True).id


def filled(world: World, repo: int, name: str, count: int, *, newest: bool) -> None:
    """Rows as sessions leave them, written beside the service that runs."""
    path = world.root / "data" / "state.db"
    with sqlite3.connect(path, timeout=30) as db:
        at = time.time() + (1000 if newest else -100_000)
        values = (repo, world.installation.id, "octo-org", name, at)
        db.execute(
            "INSERT INTO repos (id, installation_id, owner, name, private, default_branch, updated_at) "
            "VALUES (?, ?, ?, ?, 1, 'main', ?) ON CONFLICT (id) DO NOTHING",
            values,
        )
        for n in range(count):
            session, thread = f"{name[:2]}{n:06}", f"{repo}#{1000 + n}"
            db.execute(
                "INSERT INTO threads (id, repo_id, installation_id, number, is_pull) VALUES (?, ?, ?, ?, 0)",
                (thread, repo, world.installation.id, 1000 + n),
            )
            db.execute("INSERT INTO sessions (id, thread_id, created_at) VALUES (?, ?, ?)", (session, thread, at + n))
            outcome, who = ("failed", "bob") if n % 40 == 7 else ("pull_request", "alice")
            for turn in (1, 2):
                row = (session, turn, outcome if turn == 2 else "answered", who, n, f"t:{session}:{turn}", at + n, repo)
                db.execute(
                    "INSERT INTO turns (session_id, n, state, step, outcome, kind, prompt, requester, requester_id, "
                    "number, source, model, budget_usd, timeout_seconds, created_at, in_repo) "
                    "VALUES (?, ?, 'done', 'settle', ?, 'run', 'do', ?, 1, ?, ?, 'm', 5, 60, ?, ?)",
                    row,
                )
            db.execute(
                "INSERT INTO deliveries (guid, event, action, body_sha256, received_at, state, repo_id, number, sender)"
                " VALUES (?, 'issue_comment', 'created', '', ?, 'acted', ?, ?, ?)",
                (f"guid-{session}", at + n, repo, n, who),
            )


async def paged(who: Visitor, path: str, found: re.Pattern[str]) -> tuple[list[str], int]:
    """All that is on the pages from here to the end, and how many pages that are."""
    seen: list[str] = []
    pages = 0
    while path:
        answer = await who.get(path)
        assert answer.status_code == 200, answer.text
        pages += 1
        seen += found.findall(answer.text)
        older = re.search(r'<a href="([^"]+)" rel="next">', answer.text)
        path = older[1].replace("&amp;", "&") if older else ""
    return seen, pages


async def test_all_sessions_are_reached_page_by_page_and_by_filters(world: World, other: int) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot() as service:
        world.say("/claude ask what is this?")
        await world.outcome()
        own = str(world.states()[0]["session"])
        filled(world, world.repo.id, "shop", MANY, newest=False)
        filled(world, other, "secret", 400, newest=True)
        async with visitor(world, service.url, "alice") as alice:
            seen, pages = await paged(alice, "/", SESSION)
            assert seen[0] == own and len(seen) == len(set(seen)) == MANY + 1 and pages == 3
            failed, _ = await paged(alice, "/?state=failed", SESSION)
            assert failed == [f"sh{n:06}" for n in (87, 47, 7)]
            by_bob, _ = await paged(alice, "/?person=Bob&repo=octo-org/SHOP", SESSION)
            assert by_bob == failed
            assert (await paged(alice, "/?repo=octo-org/shop", SESSION))[0] == seen
            nothing = [await alice.get(f"/?repo=octo-org/{name}") for name in ("secret", "nowhere")]
            assert nothing[0].text.replace("secret", "nowhere") == nothing[1].text
            for wrong in ("/?before=1", "/?before=nan~a", "/?state=odd", "/deliveries?before=%00"):
                assert (await alice.get(wrong)).status_code == 422, wrong
            guids, pages = await paged(alice, "/deliveries?state=acted", GUID)
            assert len(guids) == len(set(guids)) == MANY and pages == 3
            assert not (await paged(alice, "/deliveries?person=bob&state=refused", GUID))[0]


async def test_a_stranger_learns_not_even_how_many_there_are(world: World, other: int) -> None:
    world.github.user("mallory")
    async with world.bot() as service, visitor(world, service.url, "mallory") as mallory:
        pages = ["/", "/deliveries", "/?repo=octo-org/secret", "/?person=alice", "/?state=failed"]
        before = [await shown(mallory, path) for path in pages]
        filled(world, world.repo.id, "shop", MANY, newest=False)
        filled(world, other, "secret", 400, newest=True)
        assert [await shown(mallory, path) for path in pages] == before
        asked = len([one for one in world.github.calls if "/permission" in one.path])
        assert [await shown(mallory, path) for path in pages] == before
        assert len([one for one in world.github.calls if "/permission" in one.path]) <= asked + 1, "known for a while"
        world.github.add_collaborator(world.repo, world.github.user("mallory"), "read")
        async with asyncio.timeout(20):
            while not SESSION.search((await mallory.get("/")).text):
                await world.github.idle()


async def shown(who: Visitor, path: str) -> str:
    return re.sub(r'name="csrf" value="[^"]*"', "", (await who.get(path)).text)


async def test_own_edits_are_in_the_ledger_where_somebody_asks_for_them(world: World) -> None:
    """A turn edits its comment hundreds of times: what was refused would stand pages below."""
    world.model.default(Script([Say("Done.")]))
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude fix this")
        await world.outcome()

        async def told() -> bool:
            return replies.OWN_EDIT in (await alice.get("/deliveries?noise=1")).text

        async with asyncio.timeout(30):
            while not await told():
                await world.github.changed(lambda: True, 1)
        plain = (await alice.get("/deliveries")).text
        assert replies.OWN_EDIT not in plain and "session " in plain
        assert plain.index("octo-org/shop#1</a>") < plain.index('<code class="soft">'), "the GUID comes last"
        assert f'href="{world.github.url}/octo-org/shop/issues/1"' in plain
        assert replies.OWN_EDIT not in (await alice.get("/deliveries?person=forgehand%5Bbot%5D")).text
        assert replies.OWN_EDIT in (await alice.get("/deliveries?person=forgehand%5Bbot%5D&noise=1")).text


@pytest.mark.slow
async def test_lists_of_a_hundred_thousand_rows_are_quick(world: World, other: int, tmp_path: Path) -> None:
    async with world.bot():
        pass
    filled(world, other, "secret", 100_000, newest=True)
    filled(world, world.repo.id, "shop", 5, newest=False)
    store = await Store.open_reader(world.database)
    hidden = frozenset([other])
    wishes = [Wanted(), Wanted(repo=world.repo.id), Wanted(person="nobody"), Wanted(hidden=hidden)]  # type: ignore[arg-type]
    try:
        for read in (lists.ended, lists.delivered):
            for wanted in [*wishes, Wanted(after=ListPosition(time.time() + 2000, "a")), Wanted(state="failed")]:
                began = time.perf_counter()
                await read(store, wanted, 51)
                assert time.perf_counter() - began < 2.0, wanted  # 0.2 s where nothing else runs
    finally:
        await store.close()
