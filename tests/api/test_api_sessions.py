"""A program starts, follows and stops a session with a token; the thread and the audit trail show whose it is."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from bot.simulation.anthropic import Say, Script
from bot.store import audit
from bot.store.base import Store
from tests.api.tokens import api_client
from tests.world import World
from tests.world.visitor import hear


async def test_api_starts_a_session_like_a_comment_once_for_each_key(world: World) -> None:
    async with world.bot() as service, api_client(world, service.url) as program:
        number = world.issue.number
        first, again = await asyncio.gather(
            *(program.start(number, key="run-1", prompt="fix the discount") for _ in range(2))
        )
        assert first.status_code == again.status_code == 201, first.text
        assert first.json() == again.json() and first.json()["turn"] == 1
        other = await program.start(number, key="run-1", prompt="fix something else")
        assert other.status_code == 409 and other.json()["error"]["code"] == "conflict"
        session = first.json()["session"]
        assert await world.outcome() == "pull_request"

        found = (await program.get(f"/sessions/{session}")).json()
        assert (found["state"], found["outcome"]) == ("done", "pull_request") and found["pull_url"]
        assert [one["token"] for one in found["turns"]] == ["ci"] and found["turns"][0]["requester"] == "olga"
        body = world.replies()[0].body
        assert "> **olga** (API token `ci`): fix the discount" in body

        async with program.http.stream("GET", f"/api/v1/sessions/{session}/events", headers=program._headers()) as got:
            told = [one async for one in hear(got)]
        assert got.headers["content-type"].startswith("text/event-stream") and told[-1].name == "over"
        entries = [entry for one in told if one.name == "entries" for entry in one.data]
        assert {"said", "tool"} <= {entry["kind"] for entry in entries}
        last = [one.id for one in told if one.id][-1]
        headers = {**program._headers(), "Last-Event-ID": last}
        async with program.http.stream("GET", f"/api/v1/sessions/{session}/events", headers=headers) as got:
            assert not [one for one in [x async for x in hear(got)] if one.name == "entries"], "nothing twice"

        with closing(sqlite3.connect(world.root / "data/state.db")) as db:
            assert program.secret not in "\n".join(db.iterdump())
        store = await Store.open_reader(world.database)
        trail = {(one.actor, one.action, one.detail) for one in await audit.listing(store)}
        await store.close()
        assert ("olga", "API: start", "with the token ci") in trail
        world.say("/claude why", by="alice")
        await asyncio.wait_for(_said(world, "with the token `ci` of `olga`"), 30)


async def _said(world: World, words: str) -> None:
    while not any(words in one.body for one in world.replies()):
        await asyncio.sleep(0.05)


async def test_api_refuses_what_the_token_may_not_and_tells_strangers_nothing(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    other = world.github.create_repo("octo-org/secret", private=True)
    world.installation.repos.append(other)
    fields = {"kind_ask": "yes", "kind_run": "", "token_budget": "0.50"}
    async with world.bot() as service, api_client(world, service.url, **fields) as program:
        number = world.issue.number
        world.say("/claude fix this")
        assert await world.outcome() in ("no_change", "answered", "pull_request")
        session = str(world.states()[0]["session"])
        stranger = await program.http.post("/api/v1/sessions", json={})
        assert stranger.status_code == 401 and stranger.headers["www-authenticate"] == "Bearer"
        for path in (f"/sessions/{session}", "/sessions/aaaaaaaa", f"/sessions/{session}/events"):
            answer = await program.get(path)
            assert answer.status_code == 404 and answer.json()["error"]["code"] == "not_found", "not one of its own"
        assert (await program.post(f"/sessions/{session}/stop")).status_code == 404
        broken = await program.post("/sessions/two%0Alines/stop")
        assert (broken.status_code, broken.json()["error"]["code"]) == (404, "not_found")
        hidden = [
            await program.post("/sessions", {"repository": name, "number": 1, "kind": "ask"})
            for name in ("octo-org/secret", "octo-org/no-such")
        ]
        assert {one.status_code for one in hidden} == {404} and hidden[0].text == hidden[1].text
        assert (await program.start(number)).status_code == 403, "run is not among its kinds"
        wrong: list[tuple[Any, int]] = [
            ({"repository": "x", "number": 1}, 422),
            ({"repository": program.repository}, 422),
            ({"repository": program.repository, "number": number, "colour": 1}, 422),
            ({"repository": program.repository, "number": number, "prompt": "x" * 200_000}, 413),
        ]
        for body, status in wrong:
            assert (await program.post("/sessions", body)).status_code == status
        none = await program.start(999, kind="ask")
        assert none.status_code == 403 and "no issue or pull request #999" in none.json()["error"]["message"]
        keyless = await program.http.post("/api/v1/sessions", json=wrong[0][0], headers=program._headers())
        assert keyless.status_code == 422
        asked = await program.start(number, kind="ask", prompt="why?", budget_usd=90)
        assert asked.status_code == 201
        assert await world.outcome(2) == "answered"
        with closing(sqlite3.connect(world.root / "data/state.db")) as db:
            assert db.execute("SELECT budget_usd FROM turns WHERE n = 2").fetchone()[0] == pytest.approx(0.5)
        assert (await program.get(f"/sessions/{session}")).status_code == 200, "a turn of it is its own now"
        for header in ("access-control-allow-origin", "set-cookie"):
            assert header not in asked.headers
        world.github.organization("octo-org", members=["olga"])
        world.repo.grant("olga", "read")
        refused = await program.start(number, kind="ask", prompt="and now?")
        assert refused.status_code == 403 and refused.json()["error"]["code"] == "refused"
        assert "`ci`" in refused.json()["error"]["message"] and "write access" in refused.json()["error"]["message"]
