"""The runner of background loops: it rests longer from error to error, logs each kind once, and ends with its work."""

from __future__ import annotations

import asyncio

import pytest

from bot.errors import BotError, GitHubUnavailable
from bot.loops import Loop, background


def failing(*errors: Exception | None) -> tuple[Loop, asyncio.Event]:
    """A loop whose rounds meet these, one after the other; the event is set after the last."""
    left, done = list(errors), asyncio.Event()

    async def look() -> None:
        error = left.pop(0) if left else None
        if not left:
            done.set()
        if error is not None:
            raise error

    return Loop("cli_requests", look, 0.001), done


async def test_every_error_is_counted_and_each_kind_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "bot.loops")
    loop, done = failing(
        BotError("a"), ValueError("b"), BotError("c"), GitHubUnavailable("d"), None, ValueError("e"), None
    )
    async with background(loop.run()):
        await asyncio.wait_for(done.wait(), 10)
    assert loop.failures == 5
    assert loop.succeeded_at is not None
    told = [(one.levelname, bool(one.exc_info), vars(one).get("error")) for one in caplog.records]
    works = ("INFO", False, None)
    assert told[:4] == [("ERROR", False, "a"), ("ERROR", True, None), ("WARNING", False, "d"), works]
    assert set(told[4:]) <= {works}, "the second ValueError is not logged"


def test_the_rest_doubles_from_error_to_error_up_to_a_limit() -> None:
    rests: list[float] = []
    loop = Loop("cli_requests", lambda: asyncio.sleep(0), 4.0, rest_seconds=5.0)
    for error in (GitHubUnavailable("a"), GitHubUnavailable("b", 100.0), *[BotError("c")] * 3):
        rests.append(loop._failed(error)[0])
    assert rests == [4.0, 100.0, 10.0, 10.0, 10.0]
    patient = Loop("delivery_log", lambda: asyncio.sleep(0), 0.1, rest_seconds=300.0)
    assert [patient._failed(BotError("c"))[0] for _ in range(2)] == [300.0, 300.0]


async def test_woken_it_looks_at_once_and_what_it_began_ends_with_it() -> None:
    looks, begun = 0, asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            beside.append(loop.begin(work()))

    beside: list[asyncio.Task[None]] = []
    loop = Loop("strays", look, 3600.0)
    async with background(loop.run()):
        while looks == 0:
            await asyncio.sleep(0)
        loop.wake()
        await asyncio.wait_for(begun.wait(), 10)
    assert beside[0].cancelled() and loop.has_ended
