"""`kill -9` while a push is taken back, while a plan is approved, while words are passed on: each is done once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script
from tests.crash import points
from tests.slices import MATRIX_SECONDS
from tests.world import World

SHARE = 48
WRITE = Script([Call("Bash", {"command": "echo one >> a.txt", "description": "Write"}), Say("Written.")])


def ended(world: World, n: int, outcome: str) -> Callable[[], Awaitable[None]]:
    async def end() -> None:
        assert await world.outcome(n) == outcome, world.replies()[-1].body

    return end


async def pushed(world: World) -> None:
    world.model.default(WRITE)
    await points.in_peace(world, partial(world.say, "/claude write"), ended(world, 1, "pull_request"))


async def planned(world: World) -> None:
    world.model.default(Script([Say("1. Write it.")]))
    await points.in_peace(world, partial(world.say, "/claude plan it"), ended(world, 1, "planned"))
    world.model.default(WRITE)


def taken_back(world: World) -> None:
    [pull] = world.pulls()
    assert world.repo.file(pull.head, "a.txt") is None
    log = world.repo.diff("main", pull.head)
    assert log == "", "the branch is as before, by one commit more"


def carried_out(world: World) -> None:
    [pull] = world.pulls()
    assert world.repo.file(pull.head, "a.txt") == b"one\n"


@pytest.mark.acceptance("F01")
@pytest.mark.timeout(MATRIX_SECONDS)
@pytest.mark.parametrize(
    ("before", "words", "outcome", "check"),
    [
        (pushed, "/claude undo", "pushed", taken_back),
        (planned, "/claude approve", "pull_request", carried_out),
    ],
    ids=["undo", "approve"],
)
async def test_killed_in_the_middle_it_is_done_once(
    tmp_path: Path, before: Callable[[World], Awaitable[None]], words: str, outcome: str, check: Callable[[World], None]
) -> None:
    async with World.running(tmp_path / "golden") as world:
        await before(world)
        found = await points.in_peace(world, partial(world.say, words), ended(world, 2, outcome))
        check(world)
    assert found > 8
    for point in points.chosen(found, SHARE):
        async with World.running(tmp_path / f"at-{point}") as world:
            await before(world)
            async with points.killed(world, point, partial(world.say, words), partial(world.outcome, 2)):
                await ended(world, 2, outcome)()
            assert len(world.replies()) == 2, f"at kill point {point}: {[one.body[:200] for one in world.replies()]}"
            check(world)
