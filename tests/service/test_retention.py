"""What is forgotten of repositories that were taken away, on disk and in the store, and when rescued work expires."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import Fault, gitstore
from bot.simulation.github.threads import Issue
from bot.store import audit, repos
from bot.store.base import Database, Store
from bot.store.rows import many
from tests.pulls.test_forks import forked
from tests.webhooks.test_delivery_log import until
from tests.world import World
from tests.world.visitor import visitor

CANARY = "canary-of-what-was-said"
WRITE = Call("Bash", {"command": f"echo {CANARY} > half.txt", "description": f"Write {CANARY}"}, f"I see {CANARY}.")
DAY = 86_400.0
FORGOTTEN, EXPIRED = "repository forgotten", "rescue ref expired"


@asynccontextmanager
async def reader(world: World) -> AsyncIterator[Store]:
    store = await Store.open_reader(world.database)
    try:
        yield store
    finally:
        await store.close()


async def told(world: World, action: str) -> list[str]:
    async with reader(world) as store:
        return [one.detail or "" for one in await audit.listing(store) if one.action == action]


async def is_told(world: World, action: str) -> None:
    async def heard() -> bool:
        return bool(await told(world, action))

    await until(heard, 60)


async def is_due(world: World) -> bool:
    """It is known that the repository was taken away, and nothing of it runs: the next start, which looks at once,
    forgets it, if that has not happened yet."""
    async with reader(world) as store:
        return bool(await repos.to_purge(store)) or bool(await told(world, FORGOTTEN))


async def tables_with(world: World, word: str) -> list[str]:
    """Those that say it in any of their rows."""
    async with reader(world) as store:
        names = await store.read(lambda db: many(db, "SELECT name FROM sqlite_master WHERE type = 'table'"))
        found = [one["name"] for one in names if word in await store.read(partial(_dumped, one["name"]))]
        return sorted(found)


def _dumped(table: str, db: Database) -> str:
    return str(many(db, f'SELECT * FROM "{table}"'))


async def test_nothing_of_a_removed_repository_stays_but_the_work_that_its_removal_cut_short(world: World) -> None:
    data = world.root / "data"
    other = world.github.open_issue(world.repo, title=f"Another {CANARY}", body=f"Say {CANARY}.", by="alice")
    world.model.default(Script([WRITE, Say(f"Done with {CANARY}.")]))
    world.github.faults.add(Fault("POST *git-receive-pack", "fail", status=403, times=9))
    async with world.bot():
        world.say(f"/claude write {CANARY}")
        assert await world.outcome() == "refused", "its work is kept here"
        [old] = (data / "kept").iterdir()
        assert set(await tables_with(world, CANARY)) >= {"events", "turns"} and list((data / "transcripts").iterdir())
        assert list((data / "changes").iterdir())
        world.model.default(Script([WRITE, Wait("never"), Say("unreachable")]))
        world.say(f"/claude fix {CANARY}", on=other)
        await world.model.reached("never", timeout=60)
        world.github.uninstall(world.installation)

        async def cut() -> bool:
            return len(list((data / "kept").iterdir())) == 2 and await is_due(world)

        await until(cut, 30)
    async with world.bot():
        await is_told(world, FORGOTTEN)
    [left] = (data / "kept").iterdir()
    assert left != old
    for folder in ("transcripts", "changes", "turns", "repositories"):
        held = [path for path in (data / folder).rglob("*") if path.is_file()]
        assert not held, folder
    assert await tables_with(world, CANARY) == []


async def test_what_was_made_of_a_fork_and_said_at_lines_goes_with_its_repository(world: World) -> None:
    kept = world.root / "data" / "kept"
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        fork = forked(world, {"calc.py": f"# {CANARY}\n"})
        world.github.review_line(fork.pull, ("calc.py", 1), "/claude write it", by="alice")
        assert await world.outcome(on=fork.pull) == "answered", world.replies(fork.pull)[0].body
        assert ".patch" in [one.suffix for one in kept.iterdir()] and "turns" in await tables_with(world, CANARY)
        world.github.uninstall(world.installation)
        await until(partial(is_due, world))
    async with world.bot():
        await is_told(world, FORGOTTEN)
    assert not list(kept.iterdir()) and await tables_with(world, CANARY) == []


def rescues(world: World) -> list[str]:
    out = gitstore.git(world.repo.path, "for-each-ref", "--format=%(refname)", "refs/forgehand/rescue/")
    return out.decode().split()


async def is_gone(world: World, ref: str) -> bool:
    """And on record as gone."""
    return ref not in rescues(world) and len(await told(world, EXPIRED)) == 2


async def stopped(world: World, on: Issue | None = None) -> str:
    """The ref under which the work of a run that was stopped is saved."""
    before, wait = rescues(world), Wait("never" if on is None else "ever")
    world.model.default(Script([WRITE, wait, Say("unreachable")]))
    world.say("/claude write it", on=on)
    await world.model.reached(wait.name, timeout=60)
    world.say("/claude stop", on=on)
    assert await world.outcome(on=on) == "stopped"
    [ref] = [one for one in rescues(world) if one not in before]
    return ref


async def test_rescued_work_expires_on_the_day_that_its_comment_names(world: World) -> None:
    skipped = [0.0]

    def clock() -> float:
        return time.time() + skipped[0]

    async with world.bot(clock, FORGEHAND_RESCUE_DAYS="7"):
        ref = await stopped(world)
        day = datetime.fromtimestamp(time.time() + 7 * DAY, UTC).strftime("%Y-%m-%d")
        assert f"is saved until {day} as `{ref}`" in world.replies()[0].body
    other = world.github.open_issue(world.repo, title="Another", body="", by="alice")
    async with world.bot(clock, FORGEHAND_RESCUE_DAYS="1"):
        await stopped(world, other)
    skipped[0] = 6.9 * DAY
    async with world.bot(clock, FORGEHAND_RESCUE_DAYS="1"):  # what was promised holds
        await is_told(world, EXPIRED)
        assert rescues(world) == [ref]
    skipped[0] = 7.1 * DAY
    lost = world.github.faults.add(Fault("POST *git-receive-pack", "lose", times=1))
    async with world.bot(clock) as service, visitor(world, service.url, "alice") as alice:
        await until(partial(is_gone, world, ref))
        page = await alice.get(f"/sessions/{world.states()[0]['session']}")
        assert f"was kept at <code>{ref}</code>" in page.text and "is kept at" not in page.text
    assert lost.hits and not rescues(world)
    assert await told(world, EXPIRED) == ["removed", "removed"]


async def test_a_rescue_ref_that_somebody_has_moved_is_left(world: World) -> None:
    skipped = [0.0]

    def clock() -> float:
        return time.time() + skipped[0]

    async with world.bot(clock):
        ref = await stopped(world)
    theirs = world.repo.branch_sha("main")
    gitstore.git(world.repo.path, "update-ref", ref, str(theirs))
    skipped[0] = 31 * DAY
    async with world.bot(clock):
        await is_told(world, EXPIRED)
    assert gitstore.ref(world.repo.path, ref) == theirs
    assert "was left" in (await told(world, EXPIRED))[0]
