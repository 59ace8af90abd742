"""Code of a fork becomes a branch of the repository by its own name alone, and only as long as the fork holds it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from bot.simulation.anthropic import Script, Wait
from bot.simulation.github import gitstore
from tests.pulls.test_forks import CODE, DONE, LOOK, MEND, SETUP, Fork, forked, refs, seen, works
from tests.world import World
from tests.world.pulls import cut_off_after_the_push

SECONDS = 30.0


async def mended(world: World) -> Fork:
    """A fork on which work has been done."""
    world.model.default(works(MEND))
    fork = forked(world)
    world.say("/claude fix the division", on=fork.pull)
    assert await world.outcome(on=fork.pull) == "reviewed", world.replies(fork.pull)[0].body
    return fork


async def said(world: World, fork: Fork, words: str) -> None:
    """Somebody is answered with these words."""
    await world.github.changed(lambda: any(words in one.body for one in world.replies(fork.pull)), SECONDS)


async def test_a_yes_that_names_the_commit_makes_a_branch_and_a_pull_request_of_it(world: World) -> None:
    world.github.commit(world.repo, "main", {".github/forgehand.yml": f"setup:\n  - {SETUP}\n"}, by="alice")
    async with world.bot():
        fork = await mended(world)
        before, session = refs(world), world.states(fork.pull)[0]["session"]
        world.say("/claude approve", on=fork.pull)
        await said(world, fork, f"approved by its commit: `/claude approve {fork.sha[:12]}`")
        world.say(f"/claude approve {fork.sha[:7]}", on=fork.pull)
        await said(world, fork, "at least the first twelve characters")
        world.say(f"/claude approve {'0' * 40}", on=fork.pull)
        await said(world, fork, "waiting for a yes to commit")
        world.say(f"/claude approve {fork.sha}", by="mallory", on=fork.pull)
        await said(world, fork, "I only take commands from people with write access")
        assert refs(world) == before and len(world.states(fork.pull)) == 1
        world.say(f"/claude approve {fork.sha}", on=fork.pull)
        assert await world.outcome(2, on=fork.pull) == "pull_request", world.replies(fork.pull)[-1].body
        made = {name: sha for name, sha in refs(world).items() if name not in before}
        assert list(made) == [f"heads/forgehand/{fork.pull.number}-{session}"]
        [commit] = made.values()
        assert gitstore.git(world.repo.path, "rev-parse", f"{commit}^").decode().strip() == fork.sha
        [pull] = [one for one in world.pulls() if one.issue.author is world.app.bot]
        assert (pull.base, pull.head_sha, pull.head_repo) == ("main", commit, world.repo)
        assert "alice approved" in world.replies(fork.pull)[0].body.replace("`", "")
        world.model.default(works(LOOK))
        world.say("/claude look again", on=fork.pull)
        assert await world.outcome(3, on=fork.pull) == "reviewed", world.replies(fork.pull)[-1].body
    assert "was-set-up" in seen(world), "this very commit was approved"


async def test_a_tick_beside_the_name_of_the_commit_is_such_a_yes(world: World) -> None:
    async with world.bot():
        fork = await mended(world)
        world.github.tick(world.replies(fork.pull)[0], f"approve {fork.sha[:12]}", by="alice")
        assert await world.outcome(2, on=fork.pull) == "pull_request", world.replies(fork.pull)[-1].body


async def test_a_push_to_the_fork_makes_the_yes_void(world: World) -> None:
    async with world.bot():
        fork = await mended(world)
        before, old = refs(world), fork.sha
        world.github.commit(fork.repo, "feature", {"evil.py": "x = 1\n"}, by="mallory")
        await said(world, fork, "No longer open")
        assert "/claude approve" not in world.replies(fork.pull)[0].body
        world.say(f"/claude approve {old}", on=fork.pull)
        await said(world, fork, f"its branch is at `{fork.sha[:12]}` now")
        world.say(f"/claude approve {fork.sha}", on=fork.pull)
        await said(world, fork, "waiting for a yes to commit")
        assert refs(world) == before and len(world.states(fork.pull)) == 1


@pytest.mark.acceptance("B07")
async def test_a_push_to_the_fork_between_the_yes_and_its_turn_is_seen(world: World) -> None:
    async with world.bot(FORGEHAND_MAX_SESSIONS="1"):
        fork = await mended(world)
        before, old = refs(world), fork.sha
        world.model.default(Script([Wait("go"), DONE]))
        world.say("/claude look at this")
        await world.model.reached("go", SECONDS)
        world.say(f"/claude approve {old}", on=fork.pull)
        await world.github.changed(lambda: len(world.states(fork.pull)) == 2, SECONDS)
        world.github.commit(fork.repo, "feature", {"evil.py": "x = 1\n"}, by="mallory")
        world.model.release("go")
        assert await world.outcome(2, on=fork.pull) == "refused", world.replies(fork.pull)[-1].body
        assert "no longer counts" in world.replies(fork.pull)[-1].body
        assert refs(world) == before


@pytest.mark.acceptance("B07")
async def test_what_the_fork_gets_after_the_push_does_not_make_the_work_void(world: World) -> None:
    async with world.bot():
        fork = await mended(world)
        before, old = refs(world), fork.sha
        more = partial(world.github.commit, fork.repo, "feature", {"evil.py": "x = 1\n"}, by="mallory")
        cut_off_after_the_push(world, more)
        world.say(f"/claude approve {old}", on=fork.pull)
        assert await world.outcome(2, on=fork.pull) == "pull_request", world.replies(fork.pull)[-1].body
    [commit] = [sha for name, sha in refs(world).items() if name not in before]
    assert gitstore.git(world.repo.path, "rev-parse", f"{commit}^").decode().strip() == old != fork.sha
    assert world.pulls()[-1].head_sha == commit


async def test_what_the_fork_s_own_commits_bring_is_judged_too(world: World) -> None:
    world.model.default(works(MEND))
    async with world.bot():
        fork = forked(world, {".github/workflows/steal.yml": "on: push\n"})
        before = refs(world)
        world.say("/claude fix the division", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "reviewed", world.replies(fork.pull)[0].body
        world.say(f"/claude approve {fork.sha}", on=fork.pull)
        assert await world.outcome(2, on=fork.pull) == "refused", world.replies(fork.pull)[-1].body
        assert "steal.yml" in world.replies(fork.pull)[-1].body and refs(world) == before


def deleted(world: World, fork: Fork) -> None:
    world.github.delete_repo(fork.repo)


def head_deleted(world: World, fork: Fork) -> None:
    world.github.set_branch(fork.repo, "feature", None, by="mallory")


def closed(world: World, fork: Fork) -> None:
    world.github.close(fork.pull, by="mallory")


def merged(world: World, fork: Fork) -> None:
    world.github.merge(fork.pull, by="alice")


def pushed(world: World, fork: Fork) -> None:
    world.github.commit(fork.repo, "feature", {"more.py": "x = 1\n"}, by="mallory")


def stopped(world: World, fork: Fork) -> None:
    world.say("/claude stop", on=fork.pull)


@pytest.mark.acceptance("B08")
@pytest.mark.parametrize(
    ("deed", "outcome", "words"),
    [
        (deleted, "reviewed", "suggestions"),
        (head_deleted, "stopped", "closed or merged in the meantime"),
        (closed, "stopped", "closed or merged in the meantime"),
        (merged, "stopped", "closed or merged in the meantime"),
        (pushed, "answered", "The fork's branch moved to"),
        (stopped, "stopped", "asked to stop"),
    ],
)
async def test_whatever_becomes_of_the_fork_meanwhile_the_end_is_clear_and_the_work_is_kept(
    world: World, deed: Callable[[World, Fork], None], outcome: str, words: str
) -> None:
    world.model.default(Script([MEND, Wait("go"), DONE]))
    async with world.bot():
        fork = forked(world)
        world.say("/claude fix the division", on=fork.pull)
        await world.model.reached("go", SECONDS)
        before = set(refs(world))
        deed(world, fork)
        await world.github.idle()
        world.model.release("go")
        assert await world.outcome(on=fork.pull) == outcome, world.replies(fork.pull)[0].body
        assert set(refs(world)) == before, "neither a branch nor a rescue ref"
    [live] = [one.body for one in world.replies(fork.pull) if "forgehand:session=" in one.body]
    assert words in live
    kept = world.root / "data" / "kept"
    session = world.states(fork.pull)[0]["session"]
    assert (kept / f"{session}-1.bundle").is_file()
    if outcome == "stopped":
        assert "It is kept for 30 days where Forgehand runs" in live
    else:
        assert any("forgehand:patch=" in one.body for one in world.replies(fork.pull))


async def test_a_fork_that_is_gone_is_still_read(world: World) -> None:
    world.model.default(works(LOOK))
    async with world.bot():
        fork = forked(world)
        world.github.delete_repo(fork.repo)
        world.say("/claude ask what does half do?", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "answered", world.replies(fork.pull)[0].body
    assert CODE.splitlines()[1] in seen(world)
