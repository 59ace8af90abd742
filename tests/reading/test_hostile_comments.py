"""A comment that was written to take long to read holds up nobody: not its thread, no other one, and no restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.handlers.desk import LOOKED_AT
from bot.simulation.github import Fault
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Issue
from tests.world import World
from tests.world.plain_http import plain_client

KB = 1024
PERMISSION = "GET /repos/*/collaborators/{}/permission"
QUOTES, FENCES = ">#\na\n", "> ```\nfix \n"


def hostile(unit: str, size: int) -> str:
    return f"/claude \n{unit * (size // len(unit))}"[: min(size, 65_536)]


def elsewhere(world: World) -> Issue:
    """A thread that has nothing to do with it."""
    repo: Repository = world.github.create_repo("octo-org/elsewhere", files={"a.txt": "a\n"}, private=True)
    repo.grant("alice", "write")
    world.github.add_repos(world.installation, repo)
    return world.github.open_issue(repo, title="Other", body="Words.", by="alice")


def stranger(world: World) -> None:
    world.github.user("bob")
    world.repo.grant("bob", "read")
    world.repo.private = False


@asynccontextmanager
async def answering(url: str) -> AsyncIterator[None]:
    """Whoever asks for its health gets it within a second all the while. A second of the processor: what a machine
    does that others use as well is no fault of ours."""
    slowest = 0.0

    async def ask() -> None:
        nonlocal slowest
        async with plain_client(timeout=60) as client:
            asked = time.process_time()
            while True:
                assert (await client.get(f"{url}/healthz")).status_code == 200
                now = time.process_time()  # we share its loop: a pause of ours was one of its own
                slowest, asked = max(slowest, now - asked), now

    asking = asyncio.create_task(ask())
    try:
        yield
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert slowest < 1.0, slowest


@pytest.mark.review("security-1")
@pytest.mark.parametrize(
    ("by", "unit", "size"),
    [("bob", QUOTES, 15 * KB), ("bob", QUOTES, 64 * KB), ("bob", FENCES, 64 * KB), ("alice", QUOTES, 64 * KB)],
)
async def test_others_are_answered_meanwhile(world: World, by: str, unit: str, size: int) -> None:
    stranger(world)
    other = elsewhere(world)
    async with world.bot() as running, answering(running.url):
        world.say(hostile(unit, size), by=by)
        world.say("/claude status", on=other)
        [answer] = await world.github.changed(lambda: world.replies(other), 10)
        assert "Nothing is running" in answer.body


@pytest.mark.review("security-1")
async def test_a_start_that_finds_such_a_comment_is_not_held_up_by_it(world: World) -> None:
    """It was stored, and not settled: GitHub did not know yet whose it was."""
    stranger(world)
    other = elsewhere(world)
    asked = world.github.faults.add(Fault(PERMISSION.format("bob"), "fail", status=503, times=1))
    async with world.bot():
        world.say(hostile(QUOTES, 64 * KB), by="bob")
        await asked.reached.wait()
    async with world.bot() as running, answering(running.url):
        world.say("/claude status", on=other)
        [answer] = await world.github.changed(lambda: world.replies(other), 10)
        assert "Nothing is running" in answer.body


@pytest.mark.review("security-1")
@pytest.mark.parametrize(
    "body",
    [
        "> /claude fix this",
        "```\n/claude fix this\n```",
        "<!--\n/claude fix this\n-->",
        "> words\n/claude fix this",
        "please /claude fix this",
        "words\n" * (LOOKED_AT // 6) + "\n/claude fix this",
    ],
)
async def test_a_stranger_who_did_not_mean_us_is_not_turned_away(world: World, body: str) -> None:
    stranger(world)
    async with world.bot():
        world.say(body, by="bob")
        world.say("/claude why", by="alice")
        [answer] = await world.github.changed(world.replies, 20)
    assert "write access" not in answer.body


@pytest.mark.review("security-1")
@pytest.mark.parametrize("many", [LOOKED_AT // 6 - 6, 0])
async def test_a_stranger_who_meant_us_is_told_once(world: World, many: int) -> None:
    stranger(world)
    async with world.bot():
        world.say("words\n" * many + "\n/claude fix this", by="bob")
        [told] = await world.github.changed(world.replies, 20)
        world.say("/claude why", by="alice")
        why = await world.github.changed(lambda: world.replies()[1:], 20)
    assert "write access" in told.body and "read access" in why[0].body


@pytest.mark.review("security-1")
@pytest.mark.parametrize("body", ["Thanks, this looks good.", "> /claude fix this", "as /claude says"])
async def test_talk_costs_no_question_to_github(world: World, body: str) -> None:
    stranger(world)
    asked = world.github.faults.add(Fault(PERMISSION.format("bob"), "fail", status=403, times=1))
    async with world.bot():
        world.say(body, by="bob")
        world.say("/claude status", by="alice")
        await world.github.changed(world.replies, 20)
    assert not asked.hits
