"""Several replicas on one PostgreSQL: no turn twice, none lost, whoever dies."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.service import GIVEN_UP
from bot.sessions.setbacks import MOST_RESUMPTIONS
from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.replicas import kills
from tests.world import World
from tests.world.plain_http import plain_client
from tests.world.postgres import PostgresServer
from tests.world.replicas import PATIENCE_SECONDS, ReplicaSet

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(240)]
AWAY_SECONDS = PATIENCE_SECONDS + 4.0
STOP_SECONDS = 2.0
ENDS_SECONDS = 18.0
TAKEOVER_SECONDS = 35.0
QUIET_SECONDS = 4.0
WRITE = Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add a line"})
WAITING = Script([WRITE, Wait("on"), Say("Added a line.")])


@pytest.fixture
async def three(world: World, postgres: PostgresServer) -> AsyncIterator[ReplicaSet]:
    async with ReplicaSet.running(world, postgres) as found:
        yield found


async def at_work(three: ReplicaSet) -> World:
    """Have a turn whose agent waits until it is let go on."""
    world = three.world
    world.model.default(WAITING)
    world.say("/claude add a line")
    await world.model.reached("on", timeout=60)
    return world


async def test_a_turn_runs_on_any_of_them_and_its_comment_is_written_once(three: ReplicaSet) -> None:
    world = three.world
    world.say("/claude fix this")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    world.say("/claude ask what did you change?")
    assert await world.outcome(2) == "answered"
    assert len(world.replies()) == 2
    assert len(world.pulls()) == 1


async def test_they_share_the_turns(three: ReplicaSet) -> None:
    world = three.world
    world.model.default(WAITING)
    issues = [world.github.open_issue(world.repo, title=f"More {n}", body="Add lines.", by="alice") for n in range(3)]
    for issue in issues:
        world.say("/claude add a line", on=issue)
    running = "SELECT DISTINCT replica FROM turns WHERE replica IS NOT NULL"
    async with asyncio.timeout(60):
        while len(await three.store.many("SELECT 1 FROM turns WHERE replica IS NOT NULL")) < len(issues):
            await asyncio.sleep(0.05)
    assert len(await three.store.many(running)) > 1
    world.model.release("on")
    assert [await world.outcome(on=issue) for issue in issues] == ["pull_request"] * 3


async def test_the_turns_of_a_killed_one_are_taken_over(three: ReplicaSet) -> None:
    world = await at_work(three)
    runner = await three.runner()
    await runner.end()
    began = asyncio.get_running_loop().time()
    await three.left(2)
    assert await three.runner() is not runner
    took = asyncio.get_running_loop().time() - began
    assert took < PATIENCE_SECONDS + 5.0, took
    world.model.release("on")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    assert len(world.pulls()) == 1
    assert len(world.replies()) == 1


@pytest.mark.slow
async def test_the_longest_takeover_at_the_default_patience(world: World, postgres: PostgresServer) -> None:
    """The leader dies with the one that runs the turn: first another one has to lead."""
    async with ReplicaSet.running(world, postgres, FORGEHAND_REPLICA_SECONDS="") as three:
        await at_work(three)
        dead = {await three.runner(), await three.leader()}
        for one in dead:
            one.send(signal.SIGKILL)
        began = time.monotonic()
        for one in dead:
            await one.ended()
        await three.left(3 - len(dead))
        await three.runner()
        took = time.monotonic() - began
        world.model.release("on")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        assert len(world.pulls()) == len(world.replies()) == 1
    print(f"taken over after {took:.1f} s")
    assert took <= TAKEOVER_SECONDS


async def test_a_stopped_one_hands_over_at_once(three: ReplicaSet) -> None:
    world = await at_work(three)
    runner, leader = await three.runner(), await three.leader()
    for one in {runner.url: runner, leader.url: leader}.values():
        assert await one.end(signal.SIGTERM) == 0
    began = asyncio.get_running_loop().time()
    assert await three.runner() is not runner
    assert (await three.leader()) is not leader
    assert asyncio.get_running_loop().time() - began < 4.0
    world.model.release("on")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    assert len(world.pulls()) == 1


async def test_a_turn_outlives_more_replicas_than_it_may_lose_agents(three: ReplicaSet) -> None:
    """As in an upgrade, which ends them one after the other."""
    world = await at_work(three)
    working = "SELECT 1 FROM turns WHERE step = 'work' AND resumptions = :n"
    for n in range(1, MOST_RESUMPTIONS + 2):
        runner = await three.runner()
        assert await runner.end(signal.SIGTERM) == 0
        assert await three.runner() is not runner
        await runner.start()
        async with asyncio.timeout(60):
            while not await three.store.many(working, n=n):
                await asyncio.sleep(0.05)
    world.model.release("on")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    assert len(world.pulls()) == len(world.replies()) == 1


async def test_a_frozen_one_ends_itself_and_does_nothing_twice(three: ReplicaSet) -> None:
    world = await at_work(three)
    runner = await three.runner()
    runner.send(signal.SIGSTOP)
    await three.left(2)
    assert await three.runner() is not runner
    world.model.release("on")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    edits = world.replies()[0].body
    runner.send(signal.SIGCONT)
    assert await runner.ended() == GIVEN_UP, runner.log()[-2000:]
    assert world.replies()[0].body == edits
    assert len(world.pulls()) == 1
    assert len(world.replies()) == 1


async def test_who_says_stop_need_not_know_where_the_turn_runs(three: ReplicaSet) -> None:
    world = await at_work(three)
    await three.apart()
    began = time.monotonic()
    world.say("/claude stop")
    assert await world.outcome(early=True) == "stopped"
    assert time.monotonic() - began < STOP_SECONDS
    assert await world.outcome() == "stopped"


async def test_a_turn_that_ends_unheard_gets_its_final_comment(world: World, postgres: PostgresServer) -> None:
    """Its notice is lost, because the leader's wire is cut at that moment."""
    async with ReplicaSet.running(world, postgres, FORGEHAND_REPO_SESSIONS="8") as three:
        leader = await three.leader()
        [leading] = [one.id for one in await three.rows() if one.leads]
        sql = "SELECT replica, state FROM turns WHERE replica IS NOT NULL ORDER BY started_at DESC, created_at DESC"
        for n in range(8):
            world.model.default(Script([WRITE, Wait(f"on{n}"), Say("Added a line.")]))
            issue = world.github.open_issue(world.repo, title=f"More {n}", body="Add lines.", by="alice")
            world.say("/claude add a line", on=issue)
            await world.model.reached(f"on{n}", timeout=60)
            if (await three.store.many(sql))[0]["replica"] != leading:
                break
        await asyncio.sleep(QUIET_SECONDS)  # until nothing of its comment is due any more
        leader.wire.refusing = True
        leader.wire.cut()
        world.model.release(f"on{n}")
        async with asyncio.timeout(60):
            while (await three.store.many(sql))[0]["state"] != "done":
                await asyncio.sleep(0.05)
        leader.wire.refusing = False
        assert await world.outcome(on=issue, timeout=30) == "pull_request"


async def test_a_killed_leader_leaves_no_comment_without_an_answer(three: ReplicaSet) -> None:
    world = three.world
    leader = await three.leader()
    await leader.end()
    world.say("/claude fix this")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    assert await three.leader() is not leader
    await leader.start()
    world.say("/claude ask what did you change?")
    assert await world.outcome(2) == "answered"
    assert len(world.pulls()) == 1


async def test_a_start_in_its_place_takes_over_without_waiting_for_missed_beats(three: ReplicaSet) -> None:
    world = await at_work(three)
    runner = await three.runner()
    await runner.end()
    await runner.start()
    before = {one.id for one in await three.rows()}
    assert len(before) == 3
    await three.runner()
    world.model.release("on")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    assert {one.id for one in await three.rows()} == before, "nobody was given up"


async def test_nobody_is_given_up_while_the_database_is_away(three: ReplicaSet, postgres: PostgresServer) -> None:
    world = await at_work(three)
    before = {one.id for one in await three.rows()}
    postgres.stop()
    world.model.release("on")
    async with plain_client(timeout=30) as client:
        hook = world.github.webhook(world.app, "ping", {"zen": "Keep it logically awesome."})
        answer = await client.post(f"{three.all[0].url}/webhook", headers=hook.headers, content=hook.body)
        assert answer.status_code == 503, "GitHub keeps it for redelivery"
        assert (await client.get(f"{three.all[0].url}/healthz")).status_code == 200
    await asyncio.sleep(AWAY_SECONDS)
    postgres.start()
    assert await world.outcome() == "pull_request", world.replies()[0].body
    assert {one.id for one in await three.rows()} == before
    assert all(one.lives for one in three.all)
    assert len(world.pulls()) == 1
    assert len(world.replies()) == 1


async def test_one_that_is_stopped_while_the_database_is_away_ends_in_time(
    world: World, postgres: PostgresServer
) -> None:
    async with ReplicaSet.running(world, postgres, 1) as single:
        [only] = single.all
        world.model.default(WAITING)
        world.say("/claude add a line")
        await world.model.reached("on", timeout=60)
        postgres.stop()
        began = time.monotonic()
        await only.end(signal.SIGTERM)
        assert time.monotonic() - began < ENDS_SECONDS
        postgres.start()
        await only.start()
        world.model.release("on")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        assert len(world.pulls()) == 1


async def test_one_that_is_cut_off_ends_itself_and_the_others_go_on(three: ReplicaSet) -> None:
    world = await at_work(three)
    runner = await three.runner()
    runner.wire.passing.clear()
    await three.left(2)
    assert await three.runner() is not runner
    world.model.release("on")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    said = world.replies()[0].body
    runner.wire.passing.set()
    assert await runner.ended() == GIVEN_UP, runner.log()[-2000:]
    assert world.replies()[0].body == said
    assert len(world.pulls()) == 1
    assert len(world.replies()) == 1


async def test_a_clock_that_is_wrong_gives_nobody_up(three: ReplicaSet) -> None:
    world, wrong = three.world, three.all[1]
    await wrong.end(signal.SIGTERM)
    wrong.skew_seconds = 300.0
    await wrong.start()
    before = {one.id for one in await three.rows()}
    world.say("/claude fix this")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    leader = await three.leader()
    if leader is not wrong:
        await leader.end(signal.SIGTERM)
    await three.all[2].end(signal.SIGTERM)
    assert await three.leader() in (wrong, three.all[0])
    world.say("/claude ask what did you change?")
    assert await world.outcome(2) == "answered"
    assert {one.id for one in await three.rows()} <= before
    assert wrong.lives


async def test_a_few_kills_lose_and_double_nothing(tmp_path: Path, postgres: PostgresServer) -> None:
    """`python -m tests.replicas --kills 200` is the whole."""
    seed = int(time.time())
    async with World.running(tmp_path, **kills.SETTINGS) as world, ReplicaSet.running(world, postgres) as found:
        tally = await kills.killed(found, 4, seed)
    assert tally.holds, (seed, tally)
    assert tally.turns >= kills.AT_ONCE
