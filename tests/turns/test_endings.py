"""Every way in which a turn is cut short: the work is kept, the comment says where, nothing else moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.models import TokenUsage
from bot.simulation.anthropic import Call, Fail, Say, Script, Wait
from bot.simulation.github import Fault
from tests.world import World, work_under_way
from tests.world.work_under_way import WRITE, rescued

KNOWN = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NSJ9.c2lnbmF0dXJlLXBhcnQ"


async def test_a_secret_that_has_long_been_in_the_repository_holds_no_change_of_its_file(world: World) -> None:
    files = {"test_auth.py": f"TOKEN = '{KNOWN}'\n", "moved.py": f"TOKEN = '{KNOWN}'\n"}
    world.github.commit(world.repo, "main", files, by="alice", message="Tests")
    new = "ghp_" + "A1b2C3d4E5" * 4
    first = Call("Bash", {"command": "echo 'x = 1' >> test_auth.py; mkdir of; mv moved.py of/"})
    world.model.default(Script([first, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        world.model.default(Script([Call("Bash", {"command": f"echo {new} >> test_auth.py"}), Say("Done.")]))
        world.say("/claude more")
        assert await world.outcome(2) == "refused"
    assert "looks like a secret: `test_auth.py`" in world.replies()[1].body


@pytest.mark.acceptance("B15")
async def test_stop_ends_the_agent_and_saves_its_work(world: World) -> None:
    async with world.bot():
        await work_under_way.begun(world)
        world.say("/claude stop")
        assert await world.outcome(timeout=20) == "stopped"
    [(ref, sha)] = rescued(world).items()
    live = world.replies()[0].body
    assert ref in live and "alice asked to stop" in live
    assert world.repo.file(sha, "half.txt") == b"half\n"
    assert world.repo.branches().keys() == {"main"} and not world.pulls()


async def test_stop_also_ends_what_waits_on_the_thread(world: World) -> None:
    world.model.default(Script([Wait("first"), Say("First.")]))
    async with world.bot():
        world.say("/claude first")
        await world.model.reached("first", timeout=60)
        world.say("/claude second --queue")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
        world.say("/claude stop")
        assert [await world.outcome(n) for n in (1, 2)] == ["stopped", "stopped"]
    assert len([one for one in world.model.requests if one.has_tools]) == 1


@pytest.mark.acceptance("B14")
async def test_at_the_budget_the_agent_ends_at_once_and_its_work_is_saved(tmp_path: Path) -> None:
    dear = TokenUsage(input_tokens=900_000, output_tokens=1_000)
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="0.5") as world:
        world.model.default(Script([replace(WRITE, text="Half of it first."), Say("A dear answer.", usage=dear)]))
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "over_budget", world.replies()[0].body
        assert rescued(world)
        assert "$0.50" in world.replies()[0].body
        assert "> Half of it first." in world.replies()[0].body, "and what its program says of credit is not its own"
        assert "Credit balance" not in world.replies()[0].body
        assert len([one for one in world.model.requests if one.has_tools]) == 2


async def test_where_its_turns_are_used_up_the_last_that_the_agent_said_is_shown(world: World) -> None:
    world.model.default(Script([replace(WRITE, text="Half of it first."), Say("Unreachable.")]))
    async with world.bot():
        world.say("/claude fix this --turns 1")
        assert await world.outcome() == "failed", world.replies()[0].body
    assert rescued(world)
    assert "> Half of it first." in world.replies()[0].body


async def test_out_of_time_the_agent_is_ended_and_its_work_is_saved(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_TIMEOUT_MINUTES="0.1") as world:
        world.model.default(Script([WRITE, Wait("never"), Say("unreachable")]))
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "timed_out", world.replies()[0].body
        assert rescued(world)


@pytest.mark.acceptance("F14")
@pytest.mark.acceptance("D13")
async def test_a_refused_key_ends_the_turn_at_once_with_a_neutral_sentence(world: World) -> None:
    world.model.default(Script([Fail(401), Say("unreachable")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome(timeout=30) == "failed"
    assert "provider does not accept" in world.replies()[0].body
    assert "API key" not in world.replies()[0].body, "what its program advises is not for people here"
    assert len(world.model.requests) < 4


async def test_what_the_agents_program_says_of_an_error_is_not_taken_for_the_agents_words(world: World) -> None:
    world.model.default(Script([replace(WRITE, text="Half of it first."), Fail(404), Say("unreachable")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "failed"
    ours, _, theirs = world.replies()[0].body.partition("**The agent says:**")
    assert "Its program says: `There's an issue with the selected model" in ours
    assert theirs.startswith("\n\n> Half of it first.\n")


@pytest.mark.acceptance("B04")
async def test_access_lost_meanwhile_pushes_nothing_and_keeps_the_work_here(world: World) -> None:
    world.model.default(Script([WRITE, Wait("gone"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("gone", timeout=60)
        world.repo.grant("alice", "read")
        world.model.release("gone")
        assert await world.outcome() == "refused"
    live = world.replies()[0].body
    assert "no longer has write access" in live
    assert not rescued(world) and world.repo.branches().keys() == {"main"}
    [kept] = (world.root / "data" / "kept").iterdir()
    assert kept.name in live and kept.read_bytes().startswith(b"# v2 git bundle")


@pytest.mark.acceptance("E05")
async def test_a_workflow_file_holds_the_whole_push(world: World) -> None:
    command = "mkdir -p .github/workflows && echo 'on: push' > .github/workflows/ci.yml && echo x > other.txt"
    world.model.default(Script([Call("Bash", {"command": command, "description": "Write"}), Say("Done.")]))
    async with world.bot():
        world.say("/claude add a workflow")
        assert await world.outcome() == "refused"
    assert ".github/workflows/ci.yml" in world.replies()[0].body
    assert world.repo.branches().keys() == {"main"} and not rescued(world)


async def test_a_secret_in_the_work_holds_the_push_and_is_not_shown(world: World) -> None:
    secret = "ghp_" + "A1b2C3d4E5" * 4
    world.model.default(
        Script([Call("Bash", {"command": f"echo {secret} > key.txt", "description": "Write"}), Say(f"It is {secret}.")])
    )
    async with world.bot():
        world.say("/claude add a key")
        assert await world.outcome() == "refused"
    live = world.replies()[0].body
    assert "key.txt" in live and secret not in live
    assert world.repo.branches().keys() == {"main"}


@pytest.mark.acceptance("E03")
async def test_a_protected_branch_shows_the_remotes_words_and_keeps_the_work(world: World) -> None:
    world.github.protect(world.repo, "forgehand/*", "Changes must be made by humans.")
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "refused"
    live = world.replies()[0].body
    [ref] = rescued(world)
    assert "Changes must be made by humans." in live and f"git fetch origin refs/forgehand/{ref}" in live


@pytest.mark.acceptance("C07")
async def test_a_deleted_live_comment_is_made_again_once(world: World) -> None:
    world.model.default(Script([Wait("on"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("on", timeout=60)
        [first] = world.replies()
        world.github.delete_comment(first, by="alice")
        world.model.release("on")
        assert await world.outcome() == "no_change"
    assert len(world.replies()) == 1


@pytest.mark.acceptance("C03")
@pytest.mark.slow
async def test_github_asking_us_to_wait_delays_the_comment_and_loses_nothing(world: World) -> None:
    world.github.faults.add(
        Fault("PATCH /repos/*/issues/comments/*", "fail", status=403, headers={"Retry-After": "2"}, times=2)
    )
    world.model.default(Script([Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "no_change"


async def test_what_was_cut_short_is_where_the_next_turn_goes_on(world: World) -> None:
    async with world.bot():
        await work_under_way.begun(world, "/claude write two files")
        world.say("/claude stop")
        assert await world.outcome(timeout=20) == "stopped"
        other = Call("Bash", {"command": "echo other > other.txt; ls", "description": "Write the other half"})
        world.model.default(Script([other, Say("Both are there.")]))
        world.say("/claude continue +2")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    [pull] = world.pulls()
    assert world.repo.file(pull.head, "half.txt") == b"half\n"
    assert world.repo.file(pull.head, "other.txt") == b"other\n"
    assert "of $7.00" in str([body for _, body in world.replies()[-1].history])


async def test_no_plus_passes_the_operators_limit(world: World) -> None:
    world.model.default(Script([Wait("seen"), Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude continue +50")
        await world.github.changed(lambda: any("of $50.00" in one.body for one in world.replies()), 20)
        await world.model.reached("seen", timeout=60)
        world.model.release("seen")
        assert await world.outcome() == "no_change"


async def test_retry_runs_the_last_turn_again_with_its_own_words(world: World) -> None:
    world.model.default(Script([Fail(400), Say("unreachable")]))
    async with world.bot():
        world.say("/claude write half a file")
        assert await world.outcome() == "failed"
        world.model.default(Script([WRITE, Say("Done.")]))
        world.say("/claude retry")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    assert "write half a file" in (world.pulls()[0].body or "")


async def test_why_tells_what_was_not_acted_upon(world: World) -> None:
    world.github.user("bob")
    world.repo.grant("bob", "read")
    async with world.bot():
        world.say("/claude fix this", by="bob")
        await world.github.changed(lambda: len(world.replies()) == 1, 20)
        world.say("/claude why")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
    assert "bob" in world.replies()[1].body and "it takes write access" in world.replies()[1].body
