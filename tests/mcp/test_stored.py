"""MCP servers of an account: stored, tried and forgotten, on the page and on the command line; a secret never shows."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.simulation.mcp import SimulatedMcp
from bot.store import audit, outside_services
from bot.store.base import Store
from bot.store.outside_services import Purpose
from tests.world import World
from tests.world.command_line import Ran, forgehand
from tests.world.mcp import BEARER, OPENED
from tests.world.visitor import visitor


@pytest.fixture
async def server() -> AsyncIterator[SimulatedMcp]:
    async with SimulatedMcp.running(f"Bearer {BEARER}") as running:
        yield running


async def test_an_owner_stores_tries_and_forgets_a_server(world: World, server: SimulatedMcp) -> None:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    path = f"/installations/{world.installation.id}/mcp"
    given = {"name": "tracker", "address": server.url, "credential": "bearer", "secret": BEARER, "tools": "find_issue"}
    async with world.bot(**OPENED) as service, visitor(world, service.url, "olga") as olga:
        async with visitor(world, service.url, "alice") as alice:
            assert (await alice.get(path)).status_code == 404
            assert (await alice.send(f"{path}/store", **given)).status_code == 404
        for wrong, words in (
            ({"address": "http://10.0.0.1/mcp"}, "Use https://"),
            ({"credential": "client"}, "needs the address that gives out"),
            ({"secret": ""}, "needs its secret"),
            ({"tools": "a b*"}, "as the server does"),
            ({"name": "No Name"}, "lower-case letters"),
        ):
            answer = await olga.send(f"{path}/store", **{**given, **wrong})
            assert answer.status_code == 422 and words in answer.text, (wrong, answer.text[:2000])
            assert BEARER not in answer.text
        stored = await olga.send(f"{path}/store", **given)
        assert "tracker answers. Its tools: find_issue, create_issue, delete_all, repeat." in stored.text
        assert "repositories may open find_issue" in stored.text and BEARER not in stored.text
        server.accepted = "Bearer another"
        tried = await olga.send(f"{path}/test", name="tracker")
        assert "does not accept the stored credential" in tried.text and BEARER not in tried.text
        assert "is forgotten" in (await olga.send(f"{path}/forget", name="tracker")).text
        assert "is not stored" in (await olga.send(f"{path}/forget", name="tracker")).text
    store = await Store.open_reader(world.database)
    assert await outside_services.every(store, Purpose.MCP) == []
    trail = [(one.actor, one.action) for one in await audit.listing(store)]
    await store.close()
    assert trail == [("olga", "mcp removed"), ("olga", "mcp stored")]


async def test_the_operator_stores_tries_and_forgets_a_server(world: World, server: SimulatedMcp) -> None:
    environment = {**world.environment, **OPENED}

    async def run(*arguments: str, stdin: str = "") -> Ran:
        return await forgehand(environment, "mcp", *arguments, stdin=stdin)

    closed = await forgehand(world.environment, "mcp", "add", "tracker", server.url)
    assert closed.code == 1 and "FORGEHAND_INSIDE_HOSTS" in closed.err
    added = await run("add", "tracker", server.url, "--credential", "bearer", "--ask", stdin=f"{BEARER}\n")
    assert added.code == 0 and "tracker is stored for everybody. tracker answers." in added.out, added.text
    [listed] = (await run("list", "--json")).json
    assert listed["credential"] == "a bearer token" and "people are asked about each call" in listed["rules"]
    server.accepted = "Bearer another"
    tried = await run("test", "tracker")
    assert tried.code == 1 and "does not accept the stored credential" in tried.err
    again = await run("add", "tracker", server.url, "--credential", "bearer", stdin="wrong")
    assert again.code == 0 and "But: The MCP server tracker does not accept" in again.out
    assert (await run("remove", "tracker")).code == 0
    gone = await run("remove", "tracker")
    assert gone.code == 1 and "There is no MCP server tracker stored for everybody" in gone.err
    texts = [one.text for one in (closed, added, tried, again, gone)]
    assert not [text for text in texts if BEARER in text]
