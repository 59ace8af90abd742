"""E2B serves the last disk that it could save: what comes back from a pause is looked at before it is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.store.base import Store
from bot.store.environments import EnvironmentMarks
from sandbox.e2b.marks import Remembered
from sandbox.e2b.provider import E2BProvider
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError
from sandbox.primitives import EnvironmentPrimitives, EnvironmentSpec
from tests.e2b_stand_in import Fault
from tests.world.e2b import E2BWorld

pytestmark = pytest.mark.review("e2b-2")
SPEC = EnvironmentSpec(labels={"app": "forgehand", "session": "abcd1234"}, public_repository=True)


@pytest.fixture(autouse=True)
def saves_disks(world: E2BWorld) -> None:
    world.e2b.registry.saves_disks = True


async def twice_used(provider: E2BProvider) -> EnvironmentPrimitives:
    """By a turn that was laid to rest, and by another one that is under way."""
    first = await provider.create("one", SPEC)
    await first.write(f"{first.layout.work}/turn", b"1")
    await provider.rest("one")
    second = await provider.attach("one")
    await second.write(f"{second.layout.work}/turn", b"2")
    return second


async def test_what_was_saved_is_the_same_environment(provider: E2BProvider) -> None:
    second = await twice_used(provider)
    await provider.rest("one")
    third = await provider.attach("one")
    assert await third.read(f"{second.layout.work}/turn") == b"2"
    await provider.attach("one")


@pytest.mark.parametrize("how", ["attach", "create", "resume"])
async def test_an_older_disk_is_no_environment_of_ours(world: E2BWorld, provider: E2BProvider, how: str) -> None:
    second = await twice_used(provider)
    world.e2b.registry.pauses_fail = True
    await world.e2b.clock.advance(world.settings.longest_seconds)
    [sandbox] = world.e2b.live
    assert sandbox.state == "paused"
    assert (sandbox.folder / "work" / "turn").read_text() == "1"
    with pytest.raises(EnvironmentGone, match="older disk"):
        if how == "attach":
            await provider.attach("one")
        elif how == "create":
            await provider.create("one", SPEC)
        else:
            await second.resume()
    if how == "attach":
        assert not world.e2b.live, "nobody pays for what nobody can use"


async def test_a_rest_that_fails_is_told(world: E2BWorld, provider: E2BProvider) -> None:
    await twice_used(provider)
    world.e2b.registry.pauses_fail = True
    with pytest.raises(SandboxError):
        await provider.rest("one")


async def test_a_pause_that_is_refused_for_now_is_no_pause(world: E2BWorld, provider: E2BProvider) -> None:
    await provider.create("one", SPEC)
    world.e2b.faults.add(Fault("POST /sandboxes/*/pause", "fail", status=409))
    with pytest.raises(EnvironmentBusy, match="busy"):
        await provider.rest("one")
    await provider.rest("one")
    assert [one.state for one in world.e2b.live] == ["paused"]


async def test_somebody_elses_pause_is_one(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    world.e2b.faults.add(Fault("POST /sandboxes/*/pause", "fail_after", status=409))
    await env.pause()
    assert [one.state for one in world.e2b.live] == ["paused"]


async def test_who_dies_between_the_two_places_leaves_two_marks_that_are_good(world: E2BWorld) -> None:
    class Dying(Remembered):
        async def settle(self, environment_id: str, mark: str, instead_of: frozenset[str]) -> None:
            raise EnvironmentBusy("killed")

    marks = Remembered()
    env = await world.provider(marks=marks).create("one", SPEC)
    await env.pause()
    dying = Dying()
    dying._marks = marks._marks
    with pytest.raises(EnvironmentBusy):
        await world.provider(marks=dying).attach("one")
    again = await world.provider(marks=marks).attach("one")
    assert await again.is_running()


async def test_an_older_disk_is_not_believed_because_somebody_died_over_the_marks(world: E2BWorld) -> None:
    class Dying(Remembered):
        async def add(self, environment_id: str, mark: str) -> None:
            await super().add(environment_id, mark)
            raise EnvironmentBusy("killed")

    marks, dying = Remembered(), Dying()
    dying._marks = marks._marks
    first = await world.provider(marks=marks).create("one", SPEC)
    await first.pause()
    with pytest.raises(EnvironmentBusy, match="killed"):
        await world.provider(marks=dying).attach("one")
    second = await world.provider(marks=marks).attach("one")
    await second.write(f"{second.layout.work}/turn", b"2")
    world.e2b.registry.pauses_fail = True
    await world.e2b.clock.advance(world.settings.longest_seconds)
    with pytest.raises(EnvironmentGone, match="older disk"):
        await world.provider(marks=marks).attach("one")


async def test_marks_outlast_the_process_and_are_forgotten_with_their_environment(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "state.db")
    try:
        marks = EnvironmentMarks(store)
        await marks.add("one", "a")
        await marks.settle("one", "a", frozenset())
        await marks.add("two", "x")
        await marks.add("one", "b")
        assert await EnvironmentMarks(store).known("one") == {"a", "b"}
        await marks.add("one", "c")
        await marks.settle("one", "b", frozenset({"a"}))
        assert await marks.known("one") == {"b", "c"}, "another process may have been at it"
        await marks.forget("one")
        assert not await marks.known("one")
        assert await marks.known("two") == {"x"}
    finally:
        await store.close()
