"""The warm path: a snapshot of a repository that was slow to set up, made of its default branch before any agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bot.sessions.environments import warm_start
from bot.simulation.github.threads import Issue
from sandbox.e2b import cloud
from tests.e2b_stand_in import E2BStandIn
from tests.e2b_stand_in.sandbox import Wish
from tests.world import MODEL_KEY, World
from tests.world.e2b import e2b_spine

CONFIG = "setup:\n  - echo once >> .installed\n"
FILES = {".github/forgehand.yml": CONFIG, ".gitignore": ".installed\n"}
SLOW = {"FORGEHAND_E2B_SNAPSHOT_AFTER": "0.001", "FORGEHAND_KEEP_MINUTES": "0"}


async def until(check: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.02)


async def turn(world: World) -> None:
    issue: Issue = world.github.open_issue(world.repo, title="Bug", body="", by="alice")
    world.say("/claude fix this", on=issue)
    assert await world.outcome(on=issue) == "pull_request", world.replies(issue)[0].body


def of_sessions(e2b: E2BStandIn) -> list[str]:
    return [one.id for one in e2b.sandboxes if one.metadata["app"] == "forgehand"]


async def warmed(world: World, e2b: E2BStandIn) -> None:
    """After a first turn there is a snapshot, and the sandbox that it was taken of is gone."""
    await turn(world)
    await until(lambda: bool(e2b.registry.snapshots) and not e2b.live)


async def test_the_second_session_starts_from_a_snapshot_and_gets_the_difference(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, **SLOW) as (world, e2b):
        world.github.commit(world.repo, "main", FILES, message="Configure")
        async with world.bot():
            await warmed(world, e2b)
            world.github.commit(world.repo, "main", {"new.txt": "new\n"}, message="Go on")
            await turn(world)
        [name] = e2b.registry.snapshots
        first, second = of_sessions(e2b)
        assert e2b.sandbox(first).template == "forgehand"
        assert e2b.sandbox(second).template == name
        sent = b"".join(call.body for call in e2b.calls if call.path == "/files" and call.sandbox == second)
        assert b"checkout/since.pack" in sent
        assert b"checkout/base.pack" not in sent, "the difference was not enough"
        assert len(world.pulls()) == 2
        assert world.repo.file(world.pulls()[1].head, "new.txt") == b"new\n"


async def test_checks_start_from_the_snapshot_too_and_know_the_base(tmp_path: Path) -> None:
    checks = {
        **FILES,
        ".github/forgehand.yml": CONFIG + "checks: [test -s .installed, test -e never.txt, test -e shop.py]\n",
    }
    async with e2b_spine(tmp_path, **SLOW) as (world, e2b):
        world.github.commit(world.repo, "main", checks, message="Configure")
        async with world.bot():
            await warmed(world, e2b)
            world.github.commit(world.repo, "main", {"new.txt": "new\n"}, message="Go on")
            await turn(world)
        [name] = e2b.registry.snapshots
        clean = [one for one in e2b.sandboxes if one.metadata.get("purpose") == "checks"][-1]
        assert clean.template == name
        sent = b"".join(call.body for call in e2b.calls if call.path == "/files" and call.sandbox == clean.id)
        assert b"checkout/since.pack" in sent and b"checkout/base.pack" not in sent
        body = world.pulls()[1].body or ""
        assert "✓ `test -s .installed`" in body and "✓ `test -e shop.py`" in body
        assert "s (fails on the base too)" in body


async def test_nothing_of_an_agent_and_no_token_or_key_is_in_a_snapshot(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, FORGEHAND_PUBLIC_URL="", **SLOW) as (world, e2b):
        world.github.commit(world.repo, "main", FILES, message="Configure")
        async with world.bot():
            await warmed(world, e2b)
        [folder] = e2b.registry.snapshots.values()
        files = [path for path in folder.rglob("*") if path.is_file()]
        names = {path.name for path in files}
        assert (folder / "work" / ".installed").read_text() == "once\n"
        assert "shop.py" in names
        assert not names & {"gate", "gate.key", "marker", "spec.json", "stream.jsonl", "result"}
        held = b"".join(path.read_bytes() for path in files)
        assert MODEL_KEY.encode() not in held
        assert b"fht_" not in held
        assert not list((folder / "var-lib" / "forgehand").rglob("*.key"))


@pytest.mark.slow
async def test_other_setup_commands_make_another_snapshot_and_the_old_one_is_not_used(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, **SLOW) as (world, e2b):
        world.github.commit(world.repo, "main", FILES, message="Configure")
        async with world.bot():
            await warmed(world, e2b)
            changed = {".github/forgehand.yml": CONFIG + "  - echo twice >> .installed\n"}
            world.github.commit(world.repo, "main", changed, message="Configure otherwise")
            await turn(world)
            await until(lambda: len(e2b.registry.snapshots) == 2)
        assert e2b.sandbox(of_sessions(e2b)[1]).template == "forgehand"


async def test_a_snapshot_that_is_gone_is_done_without(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, **SLOW) as (world, e2b):
        world.github.commit(world.repo, "main", FILES, message="Configure")
        async with world.bot():
            await warmed(world, e2b)
            e2b.registry.snapshots.clear()
            e2b.registry.templates = {"forgehand"}
            await turn(world)
        assert e2b.sandbox(of_sessions(e2b)[1]).template == "forgehand"


async def test_with_the_app_its_snapshots_are_removed(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, **SLOW) as (world, e2b):
        world.github.commit(world.repo, "main", FILES, message="Configure")
        async with world.bot():
            await warmed(world, e2b)
            world.github.uninstall(world.installation)
            await until(lambda: not e2b.registry.snapshots)


@pytest.mark.review("e2b-7")
async def test_a_snapshot_in_use_keeps_no_other_from_being_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kept sandbox, paused, still stands on the first; it goes when that has gone."""
    monkeypatch.setattr(warm_start, "LATER_SECONDS", 0.2)
    async with e2b_spine(tmp_path, **SLOW) as (world, e2b):
        world.github.commit(world.repo, "main", FILES, message="Configure")
        async with world.bot():
            await warmed(world, e2b)
            [first] = e2b.registry.snapshots
            by_hand = await e2b.registry.create(Wish(first, 600), None)
            await e2b.registry.pause(by_hand.id)
            changed = {".github/forgehand.yml": CONFIG + "  - echo twice >> .installed\n"}
            world.github.commit(world.repo, "main", changed, message="Configure otherwise")
            await turn(world)
            await until(lambda: len(e2b.registry.snapshots) == 2)
            world.github.uninstall(world.installation)
            await until(lambda: set(e2b.registry.snapshots) == {first})
            await e2b.registry.kill(by_hand.id)
            await until(lambda: not e2b.registry.snapshots)


@pytest.mark.review("e2b-8")
async def test_what_was_in_no_list_while_it_was_snapshotted_is_ended_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_start, "SWEEP_SECONDS", 0.2)
    monkeypatch.setattr(warm_start, "MOST_TRIES", 1)
    monkeypatch.setattr(cloud, "SNAPSHOT_SECONDS", 0.5)
    async with e2b_spine(tmp_path, **SLOW) as (world, e2b):
        world.github.commit(world.repo, "main", FILES, message="Configure")
        e2b.registry.snapshots_wait_for.clear()
        async with world.bot():
            await turn(world)
            await until(lambda: any(one.snapshotting for one in e2b.live))
            await until(partial(_given_up, e2b))
            e2b.registry.snapshots_wait_for.set()
            await until(lambda: not e2b.live)


def _given_up(e2b: E2BStandIn) -> bool:
    """It was looked for, to be ended, after its snapshot had begun; and it was in no list."""
    asked = [one.path for one in e2b.calls]
    taken = next((number for number, path in enumerate(asked) if path.endswith("/snapshots")), len(asked))
    return "/v2/sandboxes" in asked[taken + 1 :]


async def test_a_quick_repository_gets_none(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, FORGEHAND_KEEP_MINUTES="0") as (world, e2b):
        world.github.commit(world.repo, "main", FILES, message="Configure")
        async with world.bot():
            await turn(world)
            await until(lambda: not e2b.live)
        assert len(e2b.sandboxes) == 1
