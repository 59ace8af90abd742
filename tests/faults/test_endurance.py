"""Many turns at once, one after the other, and through long outages: all end, in their order, and nothing piles up."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest

from bot.models import TokenUsage
from bot.simulation.anthropic import Call, Cut, Fail, Say, Script, Slow, Wait
from bot.simulation.github import Fault
from bot.simulation.github.threads import Issue
from sandbox.local.folders import EnvironmentsFolder
from tests.slices import EVERY
from tests.world import World
from tests.world.environments import short_folder

LOOK = "head -c 20000 /dev/urandom | base64"
WRITE = Call("Bash", {"command": "echo half > half.txt", "description": "Write"})


def issues(world: World, count: int) -> list[Issue]:
    return [world.github.open_issue(world.repo, title=f"Issue {n}", by="alice") for n in range(count)]


@asynccontextmanager
async def loop_lag() -> AsyncIterator[list[float]]:
    """By how much the loop was late, looked at every 5 ms."""
    late: list[float] = []

    async def look() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.005)
            late.append(time.monotonic() - began - 0.005)

    looking = asyncio.create_task(look())
    try:
        yield late
    finally:
        looking.cancel()


@pytest.mark.acceptance("B13")
@pytest.mark.timeout(300)
async def test_many_issues_at_once_all_end_and_no_more_run_than_may(tmp_path: Path) -> None:
    count = 20 if EVERY else 5
    async with World.running(tmp_path, FORGEHAND_MAX_SESSIONS="2") as world:
        world.model.default(Script([Wait("all"), Say("Done.")]))
        async with world.bot():
            asked = issues(world, count)
            for issue in asked:
                world.say("/claude fix this", on=issue)
            await world.github.changed(lambda: all(world.replies(issue) for issue in asked), 60)
            await world.model.reached("all", 60)
            assert 1 <= _running(world) <= 2
            await world.github.changed(lambda: _places(world, asked) == set(range(1, count - 1)), 60)
            world.model.release("all")
            ended = [await world.outcome(on=issue, timeout=200) for issue in asked]
        assert ended == ["no_change"] * count
        assert all(len(world.replies(issue)) == 1 for issue in asked)


def _running(world: World) -> int:
    with closing(sqlite3.connect(world.root / "data" / "state.db")) as db:
        return int(db.execute("SELECT COUNT(*) FROM turns WHERE state = 'running'").fetchone()[0])


def _places(world: World, asked: list[Issue]) -> set[int]:
    """The places in the queue that the comments show."""
    heads = [world.replies(issue)[0].body for issue in asked]
    return {int("".join(filter(str.isdigit, one.split("Queued, ")[1][:4]))) for one in heads if "Queued, " in one}


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_nothing_piles_up_over_thirty_sessions(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        figures = []
        for number, issue in enumerate(issues(world, 30)):
            world.say("/claude fix this", on=issue)
            assert await world.outcome(on=issue, timeout=60) == "pull_request"
            if number % 10 == 9:
                await world.github.idle()
                gc.collect()
                figures.append((_memory(), len(list(Path("/proc/self/fd").iterdir())), len(asyncio.all_tasks())))
        with capsys.disabled():
            print(f"\nRSS MB, descriptors, tasks after 10, 20, 30 sessions: {figures}")
    assert figures[2][1] - figures[0][1] <= 8
    assert figures[2][2] - figures[0][2] <= 8
    assert figures[2][0] - figures[1][0] < 12


def _memory() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return round(pages * resource.getpagesize() / 2**20, 1)


@pytest.mark.slow
@pytest.mark.acceptance("C01")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["fail", "reset", "hold"])
@pytest.mark.parametrize("step", ["prepare", "work", "publish", "settle"])
async def test_github_may_be_down_for_half_a_minute_at_any_step(world: World, kind: str, step: str) -> None:
    world.model.default(Script([WRITE, Wait("on"), Say("Done.")]))
    began = {"prepare": "GET /repos/*/contents/*", "publish": "POST *git-receive-pack", "settle": "POST /repos/*/pulls"}
    async with world.bot():
        down = Fault("*", kind, status=503, body="<html>Unicorn!</html>", times=None)  # type: ignore[arg-type]
        if step in began:
            world.github.faults.add(
                Fault(began[step], "delay", on_hit=lambda _: world.github.faults.active.insert(0, down))
            )
        world.say("/claude fix this")
        if step == "work":
            await world.model.reached("on", 30)
            world.github.faults.add(down)
        world.model.release("on")
        await asyncio.wait_for(down.reached.wait(), 60)
        await asyncio.sleep(30)
        world.github.faults.clear()
        assert await world.outcome(timeout=120) == "pull_request", world.replies()[0].body
    assert len(world.pulls()) == len(world.replies()) == 1


@pytest.mark.slow
@pytest.mark.acceptance("D13")
@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "trouble",
    [
        Fail(529, times=3),
        Fail(500, times=2),
        Fail(429, headers={"retry-after": "1"}, times=2),
        Cut(times=2),
        Cut(times=1, error="overloaded_error"),
        Slow(first_token_seconds=20.0),
    ],
    ids=["529", "500", "429", "cut", "overloaded", "slow"],
)
async def test_a_provider_in_trouble_is_ridden_out(world: World, trouble: Fail | Cut | Slow) -> None:
    world.model.default(Script([WRITE, trouble, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome(timeout=150) == "pull_request", world.replies()[0].body


@pytest.mark.slow
@pytest.mark.acceptance("F06")
async def test_a_database_locked_for_ten_seconds_costs_ten_seconds(world: World) -> None:
    world.model.default(Script([WRITE, Wait("on"), WRITE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", 30)
        with closing(sqlite3.connect(world.root / "data" / "state.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            world.model.release("on")
            await asyncio.sleep(10)
            db.execute("ROLLBACK")
        assert await world.outcome(timeout=60) == "pull_request", world.replies()[0].body


@contextmanager
def small_disk(folder: Path, megabytes: int, files: int = 0) -> Iterator[None]:
    """`files`: that it can hold; 0: as many as it likes."""
    folder.mkdir(parents=True, exist_ok=True)
    os.system(f"mount -t tmpfs -o size={megabytes}m,nr_inodes={files},mode=755 forgehand {folder}")
    try:
        yield
    finally:
        os.system(f"umount -l {folder}")


@pytest.mark.slow
@pytest.mark.acceptance("F05")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.timeout(200)
@pytest.mark.parametrize("step", ["before", "work", "collect"])
async def test_a_full_disk_is_waited_out(tmp_path: Path, step: str) -> None:
    with small_disk(tmp_path / "data", 64):
        async with World.running(tmp_path) as world:
            world.model.default(Script([WRITE, Wait("on"), WRITE, Say("Done.")]))
            async with world.bot():
                filler = tmp_path / "data" / "filler"
                if step == "before":
                    fill(filler)
                world.say("/claude fix this")
                if step == "before":
                    await asyncio.sleep(5)
                    filler.unlink()
                    await asyncio.sleep(1)
                    for guid in {one.guid for one in world.app.deliveries if one.status_code != 202}:
                        world.github.redeliver(guid)
                await world.model.reached("on", 60)
                if step != "before":
                    if step == "collect":
                        world.model.release("on")
                    fill(filler)
                    world.model.release("on")
                    await asyncio.sleep(8)
                    filler.unlink()
                world.model.release("on")
                found = await world.outcome(timeout=150)
                assert found == "pull_request", world.replies()[0].body


@pytest.mark.slow
@pytest.mark.review("suspected-1")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.timeout(200)
async def test_a_disk_that_runs_out_of_files_is_cleared_of_who_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for bytes all the time. As root, sandboxes are on a disk that need not be the store's."""
    monkeypatch.setattr("bot.sessions.moves.SMALL_FILES", 5_000)
    many = "echo half > half.txt; mkdir /tmp/m; for i in $(seq 40000); do : > /tmp/m/$i || break; done; sleep 300"
    with (
        short_folder() as root,
        small_disk(EnvironmentsFolder(root / "data" / "environments").path, 2_000, files=30_000),
    ):
        async with World.running(root) as world:
            world.model.default(Script([Call("Bash", {"command": many}), Say("unreachable")]))
            async with world.bot():
                world.say("/claude fix this")
                assert await world.outcome(timeout=150) == "killed", world.replies()[0].body
    assert "filling up" in world.replies()[0].body


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as to:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    to.write(b"x" * size)
            except OSError:
                continue


@pytest.mark.slow
@pytest.mark.acceptance("D12")
@pytest.mark.timeout(200)
async def test_a_torrent_of_output_stalls_nobody(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    calls = [
        Call("Bash", {"command": LOOK, "description": f"Look {n}"}, usage=TokenUsage(input_tokens=1, output_tokens=1))
        for n in range(60)
    ]
    world.model.default(Script([*calls, Say("Done.")]))
    async with world.bot(), loop_lag() as late:
        world.say("/claude fix this")
        assert await world.outcome(timeout=150) == "no_change", world.replies()[0].body
    size = (world.root / "data" / "state.db").stat().st_size / 2**20
    edits = sum(call.method == "PATCH" for call in world.github.calls)
    with capsys.disabled():
        print(f"\nloop late by at most {max(late) * 1000:.0f} ms; {edits} edits; state.db {size:.1f} MB")
    assert edits < 60


def _done(world: World) -> bool:
    """Every turn has ended, by the store's word: there may be no comment left to say it."""
    with closing(sqlite3.connect(world.root / "data" / "state.db")) as db:
        return bool(db.execute("SELECT COUNT(*) > 0 AND SUM(state <> 'done') = 0 FROM turns").fetchone()[0])


MEANWHILE: dict[str, tuple[Callable[[World], object], set[str]]] = {
    "uninstalled": (lambda w: w.github.uninstall(w.installation), {"stopped"}),
    "removed": (lambda w: w.github.remove_repos(w.installation, w.repo), {"stopped"}),
    "repository deleted": (lambda w: w.github.delete_repo(w.repo), {"refused", "failed", "stopped"}),
    "issue deleted": (lambda w: w.github.delete_issue(w.issue, by="alice"), {"pull_request"}),
    "issue closed": (lambda w: w.github.close(w.issue, by="alice"), {"pull_request"}),
    "issue locked": (lambda w: w.github.lock(w.issue, by="alice"), {"pull_request"}),
    "base moved": (lambda w: w.github.commit(w.repo, "main", {"README.md": "new"}), {"pull_request"}),
    "base deleted": (lambda w: w.github.set_branch(w.repo, "main", None), {"pushed"}),
    "tokens revoked": (lambda w: w.github.revoke_tokens(w.installation), {"pull_request"}),
    "key rotated": (lambda w: w.github.rotate_key(w.app, keep_old=True), {"pull_request"}),
}


@pytest.mark.slow
@pytest.mark.acceptance("B06")
@pytest.mark.parametrize("what", MEANWHILE)
async def test_whatever_people_do_meanwhile_the_turn_ends_and_its_work_is_somewhere(world: World, what: str) -> None:
    act, outcomes = MEANWHILE[what]
    world.model.default(Script([WRITE, Wait("on"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", 30)
        act(world)
        await world.github.idle()
        world.model.release("on")
        async with asyncio.timeout(60):
            while not _done(world):
                await asyncio.sleep(0.05)
    with closing(sqlite3.connect(world.root / "data" / "state.db")) as db:
        [row] = db.execute("SELECT outcome, kept, rescue_ref, commit_sha FROM turns")
    assert row[0] in outcomes
    assert any(row[1:]), "the work is nowhere"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(3))
async def test_every_command_ends_in_one_final_comment_whatever_comes_in_between(world: World, seed: int) -> None:
    chance = random.Random(seed)
    world.model.default(Script([WRITE, Slow(first_token_seconds=0.5), Say("Done.")]))
    async with world.bot():
        asked = issues(world, 8)
        await asyncio.gather(*(_pester(world, issue, random.Random(chance.random())) for issue in asked))
        async with asyncio.timeout(150):
            while not _done(world):
                await asyncio.sleep(0.1)
        await world.github.changed(lambda: all(_final(world, issue) for issue in asked), 60)
    for issue in asked:
        commands = [one for one in issue.comments if one.body.startswith("/claude do")]
        assert len(world.states(issue)) == len(commands)
        assert len({state["turn"] for state in world.states(issue)}) == len(commands)
        heads = {pull.head for pull in world.pulls() if pull.head.startswith(f"forgehand/{issue.number}-")}
        assert len(heads) <= 1


async def _pester(world: World, issue: Issue, chance: random.Random) -> None:
    """Commands, stops and deletions at odd moments."""
    for number in range(3):
        await asyncio.sleep(chance.uniform(0, 3))
        world.say(f"/claude do {number}", on=issue)
        await asyncio.sleep(chance.uniform(0, 4))
        if chance.random() < 0.5:
            world.say("/claude stop", on=issue)
        if number == 0 and chance.random() < 0.3 and world.states(issue):
            world.github.delete_comment(world.replies(issue)[0], by="alice")


def _final(world: World, issue: Issue) -> bool:
    return all(state["outcome"] for state in world.states(issue))
