"""What breaks around a turn while it runs: the box, GitHub, the provider, the disk, people. The work is never lost."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bot.models import DeliveryId
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import Fault
from bot.simulation.github.gitstore import refs
from bot.simulation.github.threads import Pull
from bot.store import deliveries
from bot.store.base import Store
from bot.store.deliveries import NewDelivery
from sandbox.agents import claude_binary
from sandbox.local import folders
from sandbox.local.folders import EnvironmentsFolder
from sandbox.local.provider import LocalProvider
from tests.crash.process import Service
from tests.slices import EVERY
from tests.world import World, work_under_way
from tests.world.work_under_way import WRITE

MORE = Call("Bash", {"command": "echo more >> more.txt", "description": "Write more"})
CONFIG = ".github/forgehand.yml"


def rescued(world: World) -> list[str]:
    """What the rescue refs hold."""
    return [str(world.repo.file(sha, "half.txt")) for sha in refs(world.repo.path, "refs/forgehand/").values()]


def kept(world: World) -> list[Path]:
    return list((world.root / "data" / "kept").glob("*"))


async def shows(world: World, words: str, timeout: float = 30) -> None:
    """A live comment says so."""
    await world.github.changed(lambda: any(words in one.body for one in world.replies()), timeout)


def kill_box(world: World) -> None:
    """As the kernel does when memory runs out: the first process of each box dies, and the box with it."""
    base = EnvironmentsFolder(world.root / "data" / "environments")
    for one in base.environment_ids():
        folders.kill_all(base.folders(one).home, 5.0)


async def remove_environments(world: World) -> None:
    provider = LocalProvider(world.root / "data" / "environments", claude_binary.find())
    for found in await provider.find({}):
        await found.terminate()
    await provider.close()


@pytest.mark.acceptance("C10")
async def test_a_killed_box_ends_the_turn_and_its_work_is_saved(world: World) -> None:
    world.model.default(Script([WRITE, Wait("on"), Say("unreachable")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        kill_box(world)
        assert await world.outcome(timeout=20) == "killed"
    assert rescued(world) == [str(b"half\n")]


@pytest.mark.acceptance("C10")
@pytest.mark.slow
async def test_environments_that_are_gone_at_the_checks_do_not_take_the_work_with_them(world: World) -> None:
    """The agent's and that of the checks, which run in another one then."""
    world.github.commit(world.repo, "main", {CONFIG: "checks: [sleep 8]\n"})
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await shows(world, "Running the checks")
        await remove_environments(world)
        assert await world.outcome() == "pull_request"
    [pull] = world.pulls()
    assert world.repo.file(pull.head, "half.txt") == b"half\n"


@pytest.mark.acceptance("B15")
@pytest.mark.parametrize("step", ["setup", "checks"] if EVERY else ["checks"])
async def test_stop_does_not_wait_for_the_repositorys_own_commands(world: World, step: str) -> None:
    world.github.commit(world.repo, "main", {CONFIG: f"{step}: [sleep 60]\n"})
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await shows(world, "Running the checks" if step == "checks" else "Setting up the sandbox")
        began = time.monotonic()
        world.say("/claude stop")
        assert await world.outcome(timeout=20) == "stopped"
        assert time.monotonic() - began < 10
    assert rescued(world) == ([str(b"half\n")] if step == "checks" else [])
    assert not world.pulls()


@pytest.mark.acceptance("B15")
async def test_stop_does_not_wait_for_github_to_answer(world: World) -> None:
    held = world.github.faults.add(Fault("GET /repos/*/issues/1", "hold"))
    async with world.bot():
        world.say("/claude fix this")
        await asyncio.wait_for(held.reached.wait(), 30)
        world.say("/claude stop")
        assert await world.outcome(timeout=10) == "stopped"
        held.release.set()
    assert not world.model.requests


@pytest.mark.acceptance("B15")
async def test_stop_in_the_last_moment_opens_no_pull_request(world: World) -> None:
    permission = world.github.faults.add(Fault("GET /repos/*/collaborators/*/permission", "hold", skip=2))
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await asyncio.wait_for(permission.reached.wait(), 30)
        held = len(world.replies()) and world.states()[0]["state"]
        world.say("/claude stop")
        await world.github.changed(lambda: any("### ⏹️ Stopping" in one.body for one in world.replies()), 20)
        permission.release.set()
        assert held and await world.outcome(timeout=20) == "stopped"
    assert rescued(world) == [str(b"half\n")]
    assert not world.pulls()


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize("what", ["outage", "bug"] if EVERY else ["bug"])
async def test_work_that_cannot_be_published_stays_with_the_operator(world: World, what: str) -> None:
    world.model.default(Script([WRITE, Wait("on"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        if what == "bug":
            spoil_config(world)
        else:
            go_away = {"status": 429, "headers": {"Retry-After": "1"}, "times": None}
            world.github.faults.add(Fault("POST /app/installations/*", "fail", **go_away))  # type: ignore[arg-type]
            world.github.faults.add(Fault("GET /repos/*/collaborators/*", "fail", **go_away))  # type: ignore[arg-type]
        world.model.release("on")
        assert await world.outcome(timeout=40) == "failed"
    [bundle] = kept(world)
    assert bundle.name in world.replies()[0].body
    assert bundle.read_bytes().startswith(b"# v2 git bundle")


def spoil_config(world: World) -> None:
    """Every step that reads it from now on meets what it cannot expect."""
    with closing(sqlite3.connect(world.root / "data" / "state.db", timeout=10)) as db, db:
        db.execute("UPDATE turns SET config = '{'")


@pytest.mark.acceptance("B08")
@pytest.mark.parametrize("what", ["closed", "deleted", "merged"] if EVERY else ["closed"])
async def test_after_the_pull_request_ended_the_next_turn_opens_another(world: World, what: str) -> None:
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        [first] = world.pulls()
        if what == "merged":
            world.github.ready(first, by="alice")
            world.github.merge(first, by="alice")
        elif what == "closed":
            world.github.close(first, by="alice")
        else:
            world.github.set_branch(world.repo, first.head, None)
        world.model.default(Script([MORE, Say("Done.")]))
        world.say("/claude more")
        assert await world.outcome(2) == "pull_request", world.replies()[1].body
    second = world.pulls()[1]
    assert world.repo.file(second.head, "more.txt") == b"more\n"
    assert f"#{second.number}" in world.replies()[1].body


@pytest.mark.parametrize("before", [True, False])
async def test_a_close_and_a_command_in_one_second_are_told_apart(world: World, before: bool) -> None:
    """The close is read while the turn waits in the line. It ends the turn only if it also came after it."""
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot(FORGEHAND_MAX_SESSIONS="1"):
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        [first] = world.pulls()
        world.model.default(Script([MORE, Wait("on"), Say("Done.")]))
        world.say("/claude more", on=world.github.open_issue(world.repo, title="Other", body="Other.", by="alice"))
        await world.model.reached("on", timeout=60)
        second = time.time() // 1
        world.github.state.clock = lambda: second
        world.app.hook_active = False
        world.github.close(first, by="alice")
        await world.deliver(world.github.comment_webhook(world.say("/claude more")))
        await until(lambda: len(world.states()) == 2)
        await _note_close(world, first, second if before else time.time())
        world.app.hook_active = True
        world.model.release("on")
        assert await world.outcome(2) == ("pull_request" if before else "stopped"), world.replies()[1].body


async def _note_close(world: World, pull: Pull, received_at: float) -> None:
    """As the service would have stored its webhook then, until the service has read it."""
    events, database = world.github.actions.events, world.root / "data" / "state.db"
    about = events.pull(pull, "closed") | events.common(world.repo, world.installation, world.github.user("alice"))
    store = await Store.open(database, migrate=False)
    delivery = NewDelivery(DeliveryId("late"), "pull_request", "", json.dumps(about), "closed")
    delivery = replace(delivery, installation_id=world.installation.id, repo_id=world.repo.id, number=pull.number)
    await deliveries.add(store, delivery, received_at)
    await store.close()
    waits = "SELECT 1 FROM deliveries WHERE guid = 'late' AND state = 'received'"
    with closing(sqlite3.connect(database, timeout=10)) as db:
        await until(lambda: db.execute(waits).fetchone() is None)


async def test_a_branch_without_a_pull_request_is_gone_on_with(world: World) -> None:
    world.github.faults.add(Fault("POST /repos/*/pulls", "fail", status=422, body='{"message": "Not today."}'))
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pushed"
        world.model.default(Script([MORE, Say("Done.")]))
        world.say("/claude more")
        assert await world.outcome(2) == "pull_request", world.replies()[1].body
    [pull] = world.pulls()
    assert world.repo.file(pull.head, "half.txt") == b"half\n"
    assert world.repo.file(pull.head, "more.txt") == b"more\n"


@pytest.mark.acceptance("C07")
async def test_a_comment_deleted_while_github_is_down_is_made_again(world: World) -> None:
    world.model.default(Script([Wait("on"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        world.github.faults.add(
            Fault("POST /repos/*/issues/*/comments", "fail", status=429, headers={"Retry-After": "1"}, times=1)
        )
        world.github.delete_comment(world.replies()[0], by="alice")
        world.model.release("on")
        assert await world.outcome(timeout=30) == "no_change"
    assert len(world.replies()) == 1


@pytest.mark.acceptance("C06")
async def test_a_suspended_installation_stops_the_agent_and_hears_of_it_later(world: World) -> None:
    async with world.bot():
        await work_under_way.begun(world)
        world.github.suspend(world.installation)
        await until(lambda: bool(kept(world)))
        world.github.unsuspend(world.installation)
        assert await world.outcome(timeout=20) == "stopped"
    assert "suspended" in world.replies()[0].body


@pytest.mark.acceptance("B06")
async def test_a_repository_renamed_meanwhile_still_gets_its_pull_request(world: World) -> None:
    world.model.default(Script([WRITE, Wait("on"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        world.github.rename_repo(world.repo, "renamed")
        world.model.release("on")
        assert await world.outcome() == "pull_request", world.replies()[0].body


@pytest.mark.acceptance("F07")
@pytest.mark.parametrize("how", ["gone", "spoilt"] if EVERY else ["spoilt"])
async def test_the_engines_own_database_may_be_lost(world: World, how: str) -> None:
    """With a turn under way that only it knows to be taken up."""
    world.model.default(Script([WRITE, Wait("on"), Say("Done.")]))
    first = await Service.start(world)
    assert first is not None
    world.say("/claude fix this")
    await world.model.reached("on", timeout=60)
    await first.kill()
    for file in (world.root / "data").glob("engine.db*"):
        if how == "gone":
            file.unlink()
        else:
            file.write_bytes(b"this is not a database " * 400)
    async with world.bot():
        world.model.release("on")
        assert await world.outcome() == "pull_request"


@pytest.mark.acceptance("B03")
async def test_one_thread_that_github_keeps_waiting_does_not_hold_up_the_others(world: World) -> None:
    world.model.default(Script([Say("Done.")]))
    held = world.github.faults.add(Fault("GET /repos/*/collaborators/bob/permission", "hold"))
    world.repo.grant("bob", "write")
    async with world.bot():
        world.say("/claude fix this", by="bob")
        await asyncio.wait_for(held.reached.wait(), 20)
        other = world.github.open_issue(world.repo, title="Other", body="/claude fix this", by="alice")
        assert await world.outcome(on=other, timeout=20) == "no_change"
        held.release.set()
        assert await world.outcome() == "no_change"


@pytest.mark.acceptance("C03")
async def test_news_from_elsewhere_does_not_use_up_the_tries_of_a_waiting_command(world: World) -> None:
    asked = world.github.faults.add(
        Fault("GET /repos/*/permission", "fail", status=429, headers={"Retry-After": "60"}, times=None)
    )
    async with world.bot():
        world.say("/claude fix this")
        await asyncio.wait_for(asked.reached.wait(), 20)
        for number in range(5):
            world.github.open_issue(world.repo, title=f"Talk {number}", by="alice")
            await world.github.idle()
            await until(lambda: _waiting(world) == 1)
    assert asked.hits == 1


def _waiting(world: World) -> int:
    with closing(sqlite3.connect(world.root / "data" / "state.db")) as db:
        return int(db.execute("SELECT COUNT(*) FROM deliveries WHERE state = 'received'").fetchone()[0])


async def until(check: Callable[[], bool], seconds: float = 60.0) -> None:
    """For what happens on the host, which tells nobody."""
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.02)


@pytest.mark.acceptance("F10")
@pytest.mark.parametrize("hours", [24, -24] if EVERY else [24])
async def test_a_jump_of_the_clock_ends_nothing_and_silences_nobody(world: World, hours: int) -> None:
    world.model.default(Script([WRITE, Wait("on"), MORE, Say("Done.")]))
    jump = [0.0]

    def clock() -> float:
        return time.time() + jump[0]

    async with world.bot(clock):
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        before, jump[0] = _expiry(world), hours * 3600.0
        await until(lambda: abs(_expiry(world) - before - jump[0]) < 120)
        world.model.release("on")
        assert await world.outcome(timeout=30) == "pull_request", world.replies()[0].body


async def test_a_token_that_the_clock_has_ended_is_not_told_as_the_providers_refusal(world: World) -> None:
    """The sweep saw the jump first."""
    world.model.default(Script([WRITE, Wait("on"), MORE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        with closing(sqlite3.connect(world.root / "data" / "state.db", timeout=10)) as db, db:
            db.execute("UPDATE gateway_tokens SET revoked_at = 1")
        world.model.release("on")
        assert await world.outcome(timeout=30) == "failed"
    told = world.replies()[0].body
    assert "no longer accepted this turn's token" in told and "provider does not accept" not in told


async def test_what_the_gateway_refuses_for_good_is_told_as_what_it_was(world: World) -> None:
    world.model.default(Script([WRITE, Wait("on"), MORE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        with closing(sqlite3.connect(world.root / "data" / "state.db", timeout=10)) as db, db:
            db.execute("UPDATE gateway_tokens SET max_requests = requests")
        world.model.release("on")
        assert await world.outcome(timeout=30) == "failed"
    told = world.replies()[0].body
    assert "the turn had made as many requests as it may" in told and "provider does not accept" not in told


def _expiry(world: World) -> float:
    with closing(sqlite3.connect(world.root / "data" / "state.db")) as db:
        return float(db.execute("SELECT expires_at FROM gateway_tokens").fetchone()[0])
