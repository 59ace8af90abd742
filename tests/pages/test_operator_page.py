"""The operator's page: for the operator alone, with everything that runs, and a way to replay what has failed."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time

import pytest

from bot.simulation.anthropic import Say, Script, Wait
from bot.store import audit
from bot.store.base import Store
from tests.world import World
from tests.world.visitor import Visitor, visitor

PAGES = ("/operator", "/operator/now", "/operator/spend.csv")


def failed(world: World, words: str, *, by: str = "alice") -> str:
    """Put a comment's delivery into the ledger that nobody could handle."""
    world.app.webhook_url, world.app.hook_active = None, False
    hook = world.github.comment_webhook(world.say(words, by=by))
    with sqlite3.connect(world.root / "data" / "state.db", timeout=30) as db:
        db.execute(
            "INSERT INTO repos (id, installation_id, owner, name, private, default_branch, updated_at) "
            "VALUES (?, ?, 'octo-org', 'shop', 1, 'main', 1) ON CONFLICT (id) DO NOTHING",
            (world.repo.id, world.installation.id),
        )
        db.execute(
            "INSERT INTO deliveries (guid, event, action, body_sha256, body, received_at, state, reason, repo_id, "
            "installation_id, number, sender) "
            "VALUES (?, 'issue_comment', 'created', '', ?, ?, 'failed', ?, ?, ?, 1, ?)",
            (
                hook.guid,
                hook.body.decode(),
                time.time(),
                "GitHub did not answer",
                world.repo.id,
                world.installation.id,
                by,
            ),
        )
    return hook.guid


@pytest.fixture
def people(world: World) -> World:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    for login, permission in (("rita", "read"), ("ada", "admin")):
        world.github.user(login)
        world.repo.grant(login, permission)
    world.github.user("mallory")
    world.github.user("root")
    return world


async def test_only_the_operator_sees_it(people: World) -> None:
    world = people
    async with world.bot(FORGEHAND_OPERATORS="Root, somebody-else") as service:
        async with visitor(world, service.url) as nobody:
            assert [(await nobody.get(page)).status_code for page in PAGES] == [401] * 3
        for login in ("mallory", "rita", "alice", "ada", "olga"):
            async with visitor(world, service.url, login) as other:
                assert [(await other.get(page)).status_code for page in PAGES] == [404] * 3, login
                assert 'href="/operator"' not in (await other.get("/")).text
        async with visitor(world, service.url, "root") as root:
            assert [(await root.get(page)).status_code for page in PAGES] == [200] * 3
            assert 'href="/operator"' in (await root.get("/")).text


async def test_a_name_given_up_opens_nothing(people: World) -> None:
    world = people
    async with world.bot(FORGEHAND_OPERATORS="root") as service, visitor(world, service.url, "root") as seller:
        world.github.rename_user(world.github.user("root"), "retired")
        assert (await seller.get("/operator")).status_code == 404, "nobody has that name now"
        world.github.rename_user(world.github.user("mallory"), "root")
        assert (await seller.send("/deliveries/replay", guid="g")).status_code == 404, "asked anew before a change"


async def test_without_the_setting_it_is_the_person_who_owns_the_app(people: World) -> None:
    world = people
    async with world.bot() as service:
        async with visitor(world, service.url, world.app.owner.login) as one:
            assert (await one.get("/operator")).status_code == 200
        async with visitor(world, service.url, "olga") as olga:
            assert (await olga.get("/operator")).status_code == 404


async def test_it_shows_what_runs_what_waits_and_what_is_wrong(people: World) -> None:
    world = people
    world.model.default(Script([Wait("on"), Say("Done.")]))
    async with world.bot(FORGEHAND_OPERATORS="root", FORGEHAND_MAX_SESSIONS="1") as service:
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        session = str(world.states()[0]["session"])
        other = world.github.open_issue(world.repo, title="Another", by="alice")
        world.say("/claude fix that as well, you know the secret plan", on=other)
        await world.github.changed(lambda: bool(world.states(other)), 20)
        async with visitor(world, service.url, "root") as root:
            page = (await root.get("/operator")).text
            assert re.search(rf"Running \(1\).*{session}.*Queue \(1\).*octo-org/shop#{other.number}", page, re.DOTALL)
            assert "alice" in page and "of $50.00" in page and "admission" in page
            assert "secret plan" not in page, "an operator need not read the threads"
            assert "Checking everything now" in page
            async with asyncio.timeout(90):
                while "checks" not in (now := (await root.get("/operator/now")).text):
                    await world.github.idle()
            assert re.search(r"checks (need a look|passed)", now)
            assert "Checking everything now" not in (await root.get("/operator?refresh=1")).text
            spent = await root.get("/operator/spend.csv")
            assert spent.headers["content-type"].startswith("text/csv") and session in spent.text
        world.model.release("on")
        world.model.default(Script([Say("Done.")]))
        assert await world.outcome() == "no_change"
        assert await world.outcome(on=other) == "no_change"


async def test_a_failed_delivery_is_replayed_once_and_noted(people: World) -> None:
    world = people
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot(FORGEHAND_OPERATORS="root") as service:
        guid = failed(world, "/claude look around")
        async with visitor(world, service.url, "root") as root:
            assert guid in (await root.get("/operator")).text
            forged = await root.client.post("/deliveries/replay", data={"guid": guid, "back": "/operator"})
            assert forged.status_code == 403
            again = [await root.send("/deliveries/replay", guid=guid, back="/operator") for _ in range(2)]
            assert [one.status_code for one in again] == [303, 422], "it has not failed any more"
            assert again[0].headers["location"] == "/operator"
            elsewhere = await root.send("/deliveries/replay", guid=guid, back="https://evil.example")
            assert elsewhere.status_code == 422
        assert await world.outcome(timeout=40) == "no_change"
    assert await noted(world) == [("root", guid)]


async def test_an_administrator_replays_deliveries_of_their_repository_alone(people: World) -> None:
    world = people
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot(FORGEHAND_OPERATORS="root") as service:
        guid = failed(world, "/claude look around")
        for login in ("mallory", "rita", "alice"):
            async with visitor(world, service.url, login) as other:
                known = await other.send("/deliveries/replay", guid=guid)
                unknown = await other.send("/deliveries/replay", guid="no-such-guid")
                assert (known.status_code, plain(known.text)) == (404, plain(unknown.text)), login
        assert await noted(world) == []
        async with visitor(world, service.url, "ada") as ada:
            assert "Replay" in (await ada.get("/deliveries")).text
            assert (await ada.send("/deliveries/replay", guid=guid)).headers["location"] == "/deliveries"
        assert await world.outcome(timeout=40) == "no_change"
    assert await noted(world) == [("ada", guid)]


def plain(text: str) -> str:
    return re.sub(r'name="csrf" value="[^"]*"', "", text)


async def noted(world: World) -> list[tuple[str, str]]:
    store = await Store.open_reader(world.database)
    try:
        return [(one.actor, one.subject) for one in await audit.listing(store) if one.action == "delivery replayed"]
    finally:
        await store.close()


async def test_the_person_sees_the_page_in_the_words_of_the_gate(people: World) -> None:
    async with people.bot() as service, visitor(people, service.url, "rita") as rita:
        assert "you may not see it" in await shown(rita, "/operator")


async def shown(who: Visitor, path: str) -> str:
    return (await who.get(path)).text
