"""What machines cost is counted once, whatever was seen how often, and never less than they ran."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bot.models import InstallationId, Outcome, Repo, RepoId, SessionId, Thread, TurnKey
from bot.store import environments, machines, operations, sessions, spend
from bot.store.base import Address, Store
from bot.store.machines import MachineRun
from bot.store.sessions import NewTurn
from tests.world import stored

THREAD = Thread(Repo(RepoId(7), "octo", "calc", True, "main"), InstallationId(1), 5, False)
RUN = MachineRun("box", run_at=1000.0, ends_by=1660.0, cpus=2, memory_gib=4, cpu_usd=0.001, gib_usd=0.0005)
SECOND_USD = 0.004
FIRST, NEXT = TurnKey(SessionId("abcd1234"), 1), TurnKey(SessionId("abcd1234"), 2)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(address: Address, clock: Clock) -> AsyncIterator[Store]:
    opened = await Store.open(address, clock=clock)
    yield opened
    await opened.close()


async def begun(store: Store) -> TurnKey:
    new = NewTurn(THREAD, "run", "fix it", "alice", 11, "comment:1", "claude-sonnet-5-5", 5.0, 3600.0)
    key = await sessions.begin_turn(store, new)
    assert key is not None
    return key


async def seconds(store: Store, key: TurnKey = FIRST) -> float:
    cost = await machines.turn_cost(store, key)
    assert cost.vcpu_seconds == 2 * cost.seconds
    assert cost.gib_seconds == 4 * cost.seconds
    assert cost.usd == pytest.approx(SECOND_USD * cost.seconds)
    return cost.seconds


async def test_a_run_counts_once_however_often_it_is_seen_and_ended(store: Store, clock: Clock) -> None:
    for at in (1001.0, 1050.0, 1050.0, 1090.0):
        clock.now = at
        await machines.seen(store, FIRST, replace(RUN, ends_by=at + 660))
    clock.now = 1100.0
    assert await seconds(store) == 100, "also while it runs"
    await machines.end(store, FIRST)
    clock.now = 9000.0
    await machines.end(store, FIRST)
    assert await seconds(store) == 100


async def test_what_nobody_saw_end_counts_until_it_must_have_ended(store: Store, clock: Clock) -> None:
    await machines.seen(store, FIRST, RUN)
    clock.now = 1_000_000.0
    assert await seconds(store) == 660
    await machines.end(store, FIRST)
    assert await seconds(store) == 660


async def test_a_pause_is_not_paid_for(store: Store, clock: Clock) -> None:
    await machines.seen(store, FIRST, RUN)
    clock.now = 5010.0
    await machines.seen(store, FIRST, replace(RUN, run_at=5000.0, ends_by=5660.0))
    clock.now = 5030.0
    await machines.end(store, FIRST)
    assert await seconds(store) == 660 + 30


async def test_a_machine_that_was_replaced_at_once_is_not_counted_beside_its_successor(
    store: Store, clock: Clock
) -> None:
    await machines.seen(store, FIRST, RUN)
    clock.now = 1101.0
    await machines.seen(store, FIRST, replace(RUN, run_at=1100.0, ends_by=1760.0))
    clock.now = 1150.0
    await machines.end(store, FIRST)
    assert await seconds(store) == 150


async def test_a_run_that_serves_two_turns_is_shared_between_them(store: Store, clock: Clock) -> None:
    await machines.seen(store, FIRST, RUN)
    clock.now = 1100.0
    await machines.end(store, FIRST)
    clock.now = 1300.0
    await machines.seen(store, NEXT, RUN)
    clock.now = 1350.0
    await machines.seen(store, NEXT, RUN)
    assert (await seconds(store), await seconds(store, NEXT)) == (100, 250), "between them it ran for the second"
    assert (await stored.session_machines(store, FIRST.session)).seconds == 350


async def test_a_price_that_changes_changes_nothing_of_the_past(store: Store, clock: Clock) -> None:
    await machines.seen(store, FIRST, RUN)
    clock.now = 1010.0
    await machines.seen(store, FIRST, replace(RUN, cpu_usd=1.0))
    assert (await machines.turn_cost(store, FIRST)).usd == pytest.approx(10 * SECOND_USD)


async def test_a_provider_s_clock_that_is_ahead_makes_nothing_negative(store: Store, clock: Clock) -> None:
    await machines.seen(store, FIRST, replace(RUN, run_at=1200.0))
    await machines.end(store, FIRST)
    assert await seconds(store) == 0


async def test_machines_stand_beside_the_model_in_every_sum(store: Store, clock: Clock) -> None:
    key = await begun(store)
    await machines.seen(store, key, RUN)
    clock.now = 1100.0
    assert (await machines.thread_cost(store, "7#5")).usd == pytest.approx(0.4)
    for by, name in (("day", 0), ("repo", "octo/calc"), ("user", "alice"), ("session", key.session)):
        [row] = await spend.summed(store, by, 0.0)
        assert (row[by], row["cost_usd"], row["requests"]) == (name, 0, 0)
        assert row["sandbox_usd"] == pytest.approx(0.4)
    assert await spend.summed(store, "day", 1001.0) == []
    [day] = await machines.summed(store, "day", 0.0)
    assert (day["day"], day["sessions"], day["vcpu_seconds"], day["gib_seconds"]) == (0, 1, 200, 400)
    [session] = await machines.summed(store, "session", 0.0)
    assert (session["session"], session["thread"], session["turns"]) == (key.session, "octo/calc#5", 1)


async def test_samples_tell_the_last_and_the_peak_and_are_pruned_with_the_turn(store: Store, clock: Clock) -> None:
    key = await begun(store)
    assert await machines.latest_sample(store, key) is None
    for memory in (100, 900, 300):
        clock.now += 10
        await machines.add_sample(store, key, 35.0, memory, 7)
    last = await machines.latest_sample(store, key)
    assert last == machines.Sample(clock.now, 35.0, 300, 7, 900)
    clock.now += 100 * operations.DAY
    assert (await operations.prune(store, 30))["samples"] == 0, "the turn has not ended"
    await sessions.finish(store, key, Outcome.ANSWERED)
    clock.now += 31 * operations.DAY
    assert (await operations.prune(store, 30))["samples"] == 3


async def test_a_turn_whose_end_was_missed_ends_where_the_next_one_takes_over(store: Store, clock: Clock) -> None:
    await machines.seen(store, FIRST, RUN)
    clock.now = 1100.0
    await machines.seen(store, NEXT, RUN)
    clock.now = 1150.0
    assert (await seconds(store), await seconds(store, NEXT)) == (100, 50)


async def test_what_was_missed_is_noted_and_what_was_seen_is_not_noted_again(store: Store, clock: Clock) -> None:
    await machines.seen(store, FIRST, RUN)
    clock.now = 1100.0
    await machines.end_of(store, RUN.environment_id)
    clock.now = 3000.0
    for run_at in (1000.0, 1000.000001, 2000.0, 2000.0):
        await machines.missed(store, NEXT, replace(RUN, run_at=run_at, ends_by=2060.0))
    assert (await seconds(store), await seconds(store, NEXT)) == (100, 60)


async def test_a_twin_that_nobody_saw_end_is_gone_when_the_older_one_is_seen(store: Store, clock: Clock) -> None:
    await machines.seen(store, FIRST, RUN)
    await machines.missed(store, FIRST, replace(RUN, run_at=1050.0))
    clock.now = 1100.0
    await machines.seen(store, FIRST, RUN)
    assert await seconds(store) == 100 + 50


async def test_a_turn_s_end_is_not_that_of_a_machine_which_is_still_to_be_ended(store: Store, clock: Clock) -> None:
    key = await begun(store)
    row = await environments.take_for_checks(store, key)
    await environments.give_up(store, row.id)
    await machines.seen(store, key, replace(RUN, environment_id=row.id))
    await machines.seen(store, key, RUN)
    clock.now = 1100.0
    await machines.end(store, key)
    clock.now = 1125.0
    assert await seconds(store, key) == 100 + 125, "the sweep has not come yet"
    await machines.end_of(store, row.id)
    clock.now = 1200.0
    assert await seconds(store, key) == 100 + 125


async def test_whose_a_machine_is_is_known_without_its_row_too(store: Store) -> None:
    key = await begun(store)
    row = await environments.take(store, key, "any")
    assert await environments.turn_of(store, row.id) == key
    for name in ("abcd1234-2", "abcd1234-2-checks"):
        assert await environments.turn_of(store, name) == NEXT
    for name in ("abcd1234", "abcd1234-x", "by-hand", "abcd1234-12345678901"):
        assert await environments.turn_of(store, name) is None
