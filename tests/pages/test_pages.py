"""The pages for people over the wire: who sees what, and that what they show is true, escaped and kept to itself."""

from __future__ import annotations

import asyncio
import html
import json
import re
import sqlite3
import time
from contextlib import closing

import httpx
import pytest

from bot.models import SessionId, TurnKey
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.store import conversation
from bot.store.base import Store
from tests.world import World
from tests.world.visitor import hear, visitor

LONG = 32 << 20
MANY_LINES = """
WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < :count)
INSERT INTO events (session_id, turn, seq, at, kind, line)
SELECT :session, 1, (SELECT MAX(seq) FROM events WHERE session_id = :session) + n, 0, 'agent', hex(zeroblob(:size / 2))
FROM more
"""
TICKED = "<code>discounted</code> now never goes below zero"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def shell(word: str, words: str) -> Call:
    return Call("Bash", {"command": f"echo {word}", "description": "Echo"}, words)


@pytest.mark.quick("bot.web.pages")
async def test_a_session_can_be_read_by_who_can_read_its_repository_and_by_nobody_else(world: World) -> None:
    world.declare_checks()
    world.github.user("mallory")
    world.github.user("rita")
    world.repo.grant("rita", "read")
    async with world.bot() as service:
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        session = str(world.states()[0]["session"])
        async with visitor(world, service.url) as nobody:
            for path in ("/", f"/sessions/{session}", "/deliveries", "/installations"):
                answer = await nobody.get(path)
                assert answer.status_code == 401
                assert session not in answer.text.replace(f"next=%2Fsessions%2F{session}", "")
            for path in ("log", "checks", "events"):
                assert (await nobody.get(f"/sessions/{session}/{path}")).status_code == 401
        async with visitor(world, service.url, "mallory") as stranger:
            known, unknown = await stranger.get(f"/sessions/{session}"), await stranger.get("/sessions/aaaaaaaa")
            assert known.status_code == unknown.status_code == 404
            assert known.text.replace(stranger_csrf(known), "") == unknown.text.replace(stranger_csrf(unknown), "")
            for path in ("log", "checks", "events"):
                assert (await stranger.get(f"/sessions/{session}/{path}")).status_code == 404
            assert session not in (await stranger.get("/")).text
        async with visitor(world, service.url, "rita") as reader:
            page = await reader.get(f"/sessions/{session}")
            assert page.status_code == 200
            for words in (
                "fix this",
                "python3 -m unittest",
                "Opened a pull request",
                TICKED,
                'class="add"',
                "Asked by alice",
            ):
                assert words in page.text, words
            assert "Verified by Forgehand, on a clean checkout of " in page.text
            printed = await reader.get(f"/sessions/{session}/checks")
            assert printed.text.startswith("$ python3 -m unittest -q\n") and "\n[exit 0, " in printed.text
            kept_as = printed.headers["content-disposition"]
            assert kept_as == f'attachment; filename="forgehand-{session}-checks.log"'
            assert "sandbox" in printed.headers["content-security-policy"]
            assert session in (await reader.get("/")).text
            assert "Stop</button>" not in page.text, "a reader may not stop it"


def stranger_csrf(answer: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', answer.text)
    assert found
    return found[1]


async def test_what_repositories_and_agents_say_is_shown_as_text(world: World) -> None:
    world.model.default(
        Script(
            [
                Call("Bash", {"command": f"echo '{HOSTILE}'", "description": HOSTILE}, HOSTILE),
                Call("Write", {"file_path": "x.html", "content": HOSTILE}),
                Say("Done."),
            ]
        )
    )
    async with world.bot() as service:
        world.say(f"/claude say {HOSTILE}")
        await world.outcome()
        session = str(world.states()[0]["session"])
        async with visitor(world, service.url, "alice") as alice:
            for path in (f"/sessions/{session}", "/", "/deliveries"):
                page = await alice.get(path)
                assert "<script>alert" not in page.text
                assert "<img src=x" not in page.text
                policy = page.headers["content-security-policy"]
                assert "script-src 'self'" in policy and "unsafe" not in policy
                assert page.headers["cache-control"] == "no-store"
            page = await alice.get(f"/sessions/{session}")
            assert page.text.count("&lt;script&gt;alert(1)") >= 4, "said, asked, written and printed"
            raw = await alice.get(f"/sessions/{session}/log")
            assert raw.headers["content-type"].startswith("text/plain")
            assert raw.headers["content-disposition"] == f'attachment; filename="forgehand-{session}.log"'
            assert raw.headers["x-content-type-options"] == "nosniff"
            assert "alert(1)" in raw.text


async def test_a_stream_goes_on_after_the_line_that_was_heard_last(world: World) -> None:
    world.model.default(
        Script(
            [
                shell("one", "First words."),
                Wait("middle"),
                shell("two", "Second words."),
                Say("Last words."),
            ]
        )
    )
    async with world.bot() as service, visitor(world, service.url) as alice:
        world.say("/claude talk")
        await world.model.reached("middle", timeout=60)
        session = str(world.states()[0]["session"])
        await alice.sign_in("alice")
        told: dict[str, str] = {}
        last = ""
        async with alice.client.stream("GET", f"/sessions/{session}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            async for heard in hear(stream):
                if heard.name == "lines":
                    told |= {one["id"]: one["html"] for one in heard.data}
                    last = heard.id
                    break
        world.model.release("middle")
        await world.outcome()
        async with alice.client.stream("GET", f"/sessions/{session}/events", headers={"Last-Event-ID": last}) as stream:
            async for heard in hear(stream):
                if heard.name == "lines":
                    assert not {one["id"] for one in heard.data} & {
                        name for name in told if "First words" in told[name]
                    }
                    told |= {one["id"]: one["html"] for one in heard.data}
                    break
        page = await alice.get(f"/sessions/{session}")
        shown = re.findall(r'<li id="(e\d+-\d+)"', page.text)
        assert set(shown) == set(told) and len(shown) >= 4
        assert all(told[name].strip() in page.text for name in shown), "streamed or loaded: the same"


async def test_a_stream_ends_when_the_permission_does(world: World) -> None:
    world.github.user("rita")
    world.repo.grant("rita", "read")
    world.model.default(Script([shell("one", "First."), Wait("middle"), shell("two", "Second."), Say("Third.")]))
    skipped = [0.0]
    async with world.bot(lambda: time.time() + skipped[0]) as service, visitor(world, service.url) as rita:
        world.say("/claude talk")
        await world.model.reached("middle", timeout=60)
        session = str(world.states()[0]["session"])
        await rita.sign_in("rita")
        said = []
        async with rita.client.stream("GET", f"/sessions/{session}/events") as stream:
            async for heard in hear(stream):
                said.append(heard)
                if heard.name == "lines":
                    world.repo.grant("rita", "none")
                    skipped[0] += 120
                    world.model.release("middle")
        assert said[-1].name == "gone", "the stream has ended by itself"
        assert "Second" not in str(said)
        assert (await rita.get(f"/sessions/{session}")).status_code == 404
        await world.outcome()


async def test_a_long_file_is_handed_out_in_portions_and_ends_when_the_permission_does(world: World) -> None:
    world.github.user("rita")
    world.model.default(Script([shell("one", "First."), Say("Second.")]))
    skipped = [0.0]
    async with world.bot(lambda: time.time() + skipped[0]) as service, visitor(world, service.url) as rita:
        world.say("/claude ask how is it?")
        assert await world.outcome() == "answered"
        session = str(world.states()[0]["session"])
        printed = world.root / "data" / "checks" / f"{session}-000001-0.log"
        printed.parent.mkdir(exist_ok=True)
        with printed.open("wb") as file:
            file.truncate(LONG)
        with closing(sqlite3.connect(world.root / "data" / "state.db", timeout=10)) as db, db:
            db.execute(MANY_LINES, {"session": session, "count": 2000, "size": LONG // 2000})
        await rita.sign_in("rita")
        for name in ("checks", "log"):
            world.repo.grant("rita", "read")
            skipped[0] += 61
            async with rita.client.stream("GET", f"/sessions/{session}/{name}") as answer:
                assert answer.status_code == 200
                portions = answer.aiter_raw()
                taken = len(await anext(portions))
                world.repo.grant("rita", "none")
                skipped[0] += 61
                async for portion in portions:
                    taken, last = taken + len(portion), portion
            assert last.endswith(b"\n[Cut off here. You no longer have access to this session.]\n"), name
            assert taken < LONG // 2, "what the sockets held was on its way"


async def test_the_buttons_stop_and_repeat_for_who_may_write(world: World) -> None:
    world.github.user("rita")
    world.repo.grant("rita", "read")
    world.model.default(Script([shell("one", "First."), Wait("stuck"), Say("Second.")]))
    async with world.bot() as service, visitor(world, service.url) as alice, visitor(world, service.url) as rita:
        world.say("/claude talk")
        await world.model.reached("stuck", timeout=60)
        session = str(world.states()[0]["session"])
        await alice.sign_in("alice")
        await rita.sign_in("rita")
        page = f"/sessions/{session}"
        refused = await rita.send(f"{page}/stop")
        assert refused.status_code == 403 and "write access" in refused.text
        forged = await alice.client.post(f"{page}/stop", data={"csrf": "0" * 64})
        assert forged.status_code == 403
        elsewhere = {"csrf": await alice.csrf(page)}
        answer = await alice.client.post(f"{page}/stop", data=elsewhere, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403
        assert world.states()[0]["state"] == "running"
        assert (await alice.send(f"{page}/stop")).headers["location"] == page
        assert await world.outcome() == "stopped"
        assert "alice asked to stop" in (await alice.get(page)).text
        world.model.default(Script([Say("Nothing to do.")]))
        answers = [await alice.send(f"{page}/retry") for _ in range(2)]
        assert answers[0].status_code == 303, answers[0].text
        assert await world.outcome(2) == "no_change"
        assert "Turn 2" in (await alice.get(page)).text
    assert len(world.states()) == 2, "pressed twice it is one turn more"


async def test_session_page_has_the_newest_long_entries_leads_to_all_and_streams_them_in_portions(world: World) -> None:
    world.model.default(Script([Say("Done.")]))
    async with world.bot() as service:
        world.say("/claude fix this")
        assert await world.outcome() == "no_change"
        key = TurnKey(SessionId(str(world.states()[0]["session"])), 1)
        store = await Store.open(world.database, migrate=False)
        block = {"type": "text", "text": "word " * 4_000}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block]}
        line = json.dumps({"type": "assistant", "message": message, "session_id": "s"})
        for _ in range(400):
            await store.write(lambda db: conversation.note_event(db, key, conversation.STREAM, line, 0.0))
        await store.close()
        async with visitor(world, service.url, "alice") as alice, asyncio.timeout(60):
            page = await alice.get(f"/sessions/{key.session}")
            assert "left out" not in page.text and len(page.text) < 4 << 20
            read, part = shown_on(page), page
            while older := re.search(
                r'<nav class="pages" aria-label="Earlier entries"><a [^>]*href="([^"]+)"', part.text
            ):
                part = await alice.get(f"/sessions/{key.session}{html.unescape(older[1])}")
                assert part.text.count("word " * 4_000) >= len(shown_on(part)) - 1, "also of those read long ago"
                read = shown_on(part) + read
            told: list[str] = []
            async with alice.client.stream("GET", f"/sessions/{key.session}/events?after=0") as response:
                async for heard in hear(response):
                    if heard.name != "lines":
                        continue
                    assert sum(len(one["html"]) for one in heard.data) < 1 << 20
                    told += [one["id"] for one in heard.data]
                    if int(heard.id) >= int(seq_of(page)):
                        break
    assert len(told) == len(set(told)) == len(read) == len(set(read)) >= 400
    assert set(told) == set(read)


def shown_on(page: httpx.Response) -> list[str]:
    return re.findall(r'<li id="(e\d+-\d+)"', page.text)


def seq_of(page: httpx.Response) -> str:
    found = re.search(r'data-seq="(\d+)"', page.text)
    assert found
    return found[1]
