"""`kill -9` while work is checked, given back and checked again: one more run, one commit, and nothing left over."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from bot.store import conversation, sessions
from bot.store.base import Store
from tests.crash import points
from tests.crash.test_kill_points import no_strays
from tests.slices import MATRIX_SECONDS
from tests.world import World
from tests.world.checks import CHECK, HEARD_FAILURES, corrects, kept_outputs
from tests.world.places import Place

ASKED = "/claude fix this"
SHARE = 60


def begun(world: World) -> None:
    Place(world).configure(CHECK, **{"out.txt": "right\n"})
    world.model.default(corrects("wrong", "right", "echo more >> more.txt"))


async def mended(world: World) -> None:
    """All that is to be there, once."""
    [pull] = world.pulls()
    assert len(world.replies()) == 1 and world.repo.branches().keys() == {"main", pull.head}
    assert world.repo.file(pull.head, "more.txt") == b"more\n"
    assert max(sum(HEARD_FAILURES in words for words in one.spoken) for one in world.model.requests) == 1
    store = await Store.open_reader(world.database)
    try:
        [row] = await sessions.listing(store)
        [turn] = await sessions.turns_of(store, row.id)
        lines = [one.line for one in await conversation.events_of_turn(store, turn.key, 0, 10_000)]
    finally:
        await store.close()
    assert [(one["exit_code"], one["where"], one["sha"]) for one in turn.verified or ()] == [
        (0, "fresh", turn.commit_sha)
    ]
    assert turn.commit_sha == world.repo.branch_sha(pull.head)
    assert len(lines) == len(set(lines)) and sum('"type":"result"' in line for line in lines) == 2
    assert len(kept_outputs(world, row.id)) == 2
    await no_strays(world)


async def ended(world: World) -> None:
    assert await world.outcome() == "pull_request", world.replies()[0].body
    await world.github.idle()


async def killed(path: Path, point: int) -> None:
    async with World.running(path) as world:
        begun(world)
        try:
            async with points.killed(world, point, partial(world.say, ASKED), world.outcome):
                await ended(world)
                await mended(world)
        except Exception as error:
            log = (world.root / "service.log").read_text()[-3000:]
            raise AssertionError(f"at kill point {point}: {error}\n{log}") from error


@pytest.mark.acceptance("F01")
@pytest.mark.timeout(MATRIX_SECONDS)
async def test_checks_and_what_follows_survive_a_kill_after_any_transaction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with World.running(tmp_path / "golden") as world:
        begun(world)
        found = await points.in_peace(world, partial(world.say, ASKED), partial(ended, world))
        await mended(world)
    assert found > 20
    tried = points.chosen(found, SHARE)
    with capsys.disabled():
        print(f"\nkill points of checks that fail and are mended: {found}, tried here: {len(tried)}")
    for point in tried:
        await killed(tmp_path / f"at-{point}", point)
