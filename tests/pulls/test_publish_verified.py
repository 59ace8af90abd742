"""Pulls, publishing: with `commits: verified` a branch holds commits that GitHub has signed, or nothing at all."""

from __future__ import annotations

import pytest

from bot.simulation import faults
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import Fault, gitstore
from bot.simulation.github.gitstore import refs
from tests.world import World
from tests.world.pulls import CONFIG, WORKFLOW, WRITE, begun, does, live, parents, permit, write

SIGNED = ("- Commits must have verified signatures.",)


@pytest.fixture
def signed(world: World) -> World:
    """A repository that wants signatures on every branch of ours, and says so in its config."""
    world.github.commit(world.repo, "main", {CONFIG: "commits: verified\n"}, by="alice")
    world.github.protect(world.repo, "forgehand/*", *SIGNED, ruleset=True, only="signatures")
    return world


def commits(world: World, branch: str) -> list[str]:
    """Those that the base does not have, newest first."""
    return gitstore.git(world.repo.path, "rev-list", f"refs/heads/{branch}", "^refs/heads/main").decode().split()


def content(world: World, sha: str) -> str:
    return gitstore.git(world.repo.path, "cat-file", "commit", sha).decode()


async def test_pulls_first_push_follow_up_and_undo_are_all_verified(signed: World) -> None:
    world = signed
    command = "printf 'echo\\n' > run.sh && chmod +x run.sh && ln -s run.sh link && rm test_shop.py; true"
    world.model.default(does(command, "Add a runner"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        [pull] = world.pulls()
        [first] = commits(world, pull.head)
        assert (first in world.repo.verified and first[:12] in world.replies()[0].body) or first == pull.head_sha
        text = content(world, first)
        assert "Add a runner" in text and "Co-authored-by: alice" in text and "committer GitHub" in text
        modes = {path: mode for path, (mode, _) in gitstore.entries(world.repo.path, first).items()}
        assert modes["run.sh"] == "100755" and modes["link"] == "120000"
        world.model.default(does("echo y > b.txt"))
        world.say("/claude more")
        assert await world.outcome(2) == "pushed", world.replies()[-1].body
        world.say("/claude undo")
        assert await world.outcome(3) == "pushed", world.replies()[-1].body
    found = commits(world, pull.head)
    assert len(found) == 3 and set(found) <= world.repo.verified
    assert world.repo.file(pull.head, "b.txt") is None
    assert not refs(world.repo.path, "refs/forgehand/"), "what carried the commits is gone"


async def test_pulls_work_that_was_saved_unsigned_is_signed_when_it_is_gone_on_with(signed: World) -> None:
    world = signed
    write = Call("Bash", {"command": "echo half > half.txt", "description": "Write"})
    world.model.default(Script([write, Wait("never"), Say("unreachable")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("never", timeout=60)
        world.say("/claude stop")
        assert await world.outcome() == "stopped"
        world.model.default(does("echo rest > rest.txt"))
        world.say("/claude go on")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    [pull] = world.pulls()
    found = commits(world, pull.head)
    assert len(found) == 2 and set(found) <= world.repo.verified
    assert world.repo.file(pull.head, "half.txt") == b"half\n" and world.repo.file(pull.head, "rest.txt") == b"rest\n"


async def test_pulls_trees_that_github_does_not_know_are_made_anew(signed: World) -> None:
    signed.repo.reuses_trees = False
    signed.model.default(
        does("mkdir d && for n in $(seq 130); do echo $n > d/$n; done; echo x > run.sh; chmod +x run.sh")
    )
    async with signed.bot():
        signed.say("/claude fix this")
        assert await signed.outcome() == "pull_request", signed.replies()[0].body
    [pull] = signed.pulls()
    assert pull.head_sha in signed.repo.verified and signed.repo.file(pull.head, "d/130") == b"130\n"


@pytest.mark.acceptance("E03")
async def test_pulls_what_github_does_not_sign_is_not_pushed_unsigned(signed: World) -> None:
    signed.repo.signs = False
    signed.repo.protections.clear()  # nothing but ourselves would keep an unsigned commit away
    signed.model.default(does("echo x > run.sh && chmod +x run.sh"))
    async with signed.bot():
        signed.say("/claude fix this")
        assert await signed.outcome() == "refused", signed.replies()[0].body
    live = signed.replies()[0].body
    assert "did not sign it" in live and "`commits: verified`" in live
    assert signed.repo.branches().keys() == {"main"} and not signed.pulls()
    assert list((signed.root / "data" / "kept").iterdir()) and not refs(signed.repo.path, "refs/forgehand/")


@pytest.mark.acceptance("E03")
async def test_pulls_rules_that_refuse_the_ref_are_told(signed: World) -> None:
    signed.github.protect(signed.repo, "forgehand/*", "- Cannot create ref due to creations being restricted.")
    signed.model.default(does("echo x > a.txt"))
    async with signed.bot():
        signed.say("/claude fix this")
        assert await signed.outcome() == "refused", signed.replies()[0].body
    live = signed.replies()[0].body
    assert "creations being restricted" in live and "git fetch origin refs/forgehand/rescue/" in live
    assert signed.repo.branches().keys() == {"main"}


async def test_pulls_a_branch_that_moved_is_not_moved_by_force(signed: World) -> None:
    signed.model.default(does("echo x > a.txt"))
    async with signed.bot():
        signed.say("/claude fix this")
        assert await signed.outcome() == "pull_request", signed.replies()[0].body
        [pull] = signed.pulls()
        write = Call("Bash", {"command": "echo y > b.txt", "description": "Write"})
        signed.model.default(Script([write, Wait("moved"), Say("Done.")]))
        signed.say("/claude more")
        await signed.model.reached("moved", timeout=60)
        theirs = signed.github.commit(signed.repo, pull.head, {"theirs.txt": "x"}, by="alice")
        signed.model.release("moved")
        await signed.outcome(2)
    found = gitstore.git(signed.repo.path, "rev-list", f"refs/heads/{pull.head}").decode().split()
    assert theirs in found


async def test_pulls_a_held_commit_that_is_let_go_is_signed_as_well(signed: World) -> None:
    permit(signed)
    signed.model.default(does(WRITE))
    async with signed.bot():
        signed.say("/claude add a workflow")
        assert await signed.outcome() == "refused"
        signed.say("/claude approve")
        assert await signed.outcome(2) == "pull_request", signed.replies()[-1].body
    [pull] = signed.pulls()
    assert pull.head_sha in signed.repo.verified and signed.repo.file(pull.head, WORKFLOW) == b"on: push\n"


async def test_pulls_plain_files_that_one_way_does_not_sign_go_another_signed_way(signed: World) -> None:
    signed.repo.signs = False
    signed.repo.protections.clear()
    signed.model.default(does("printf 'x\\r\\n' > a.txt; head -c 2000 /dev/urandom > b.bin; rm test_shop.py"))
    async with signed.bot():
        signed.say("/claude fix this")
        assert await signed.outcome() == "pull_request", signed.replies()[0].body
        [pull] = signed.pulls()
        signed.model.default(does("echo y > c.txt"))
        signed.say("/claude more")
        assert await signed.outcome(2) == "pushed", signed.replies()[-1].body
    found = commits(signed, pull.head)
    assert len(found) == 2 and set(found) <= signed.repo.verified
    assert "Co-authored-by: alice" in content(signed, found[0]) and signed.repo.file(pull.head, "a.txt") == b"x\r\n"
    assert signed.repo.branches().keys() == {"main", pull.head} and not refs(signed.repo.path, "refs/forgehand/")


@pytest.mark.parametrize(
    ("lost", "signs"),
    [("POST *graphql", False), ("POST */git-receive-pack", False), ("POST /repos/*/git/refs", True)],
)
async def test_pulls_a_lost_answer_of_either_way_is_found_again(signed: World, lost: str, signs: bool) -> None:
    signed.repo.signs = signs
    signed.repo.protections.clear()
    signed.model.default(does("echo x > a.txt"))
    async with signed.bot():
        fault = signed.github.faults.add(Fault(lost, "fail_after", status=502, times=3))
        signed.say("/claude fix this")
        assert await signed.outcome() == "pull_request", signed.replies()[0].body
    [pull] = signed.pulls()
    assert fault.hits and commits(signed, pull.head) == [pull.head_sha] and pull.head_sha in signed.repo.verified


@pytest.mark.acceptance("B07")
async def test_pulls_work_put_on_top_whose_answer_was_lost_is_recognised_and_not_signed_twice(world: World) -> None:
    def pushed_since(_: faults.Call) -> None:
        world.github.commit(world.repo, "feature", {"later.txt": "3\n"}, by="alice")

    world.github.commit(world.repo, "main", {CONFIG: "commits: verified\n"}, by="alice")
    async with world.bot():
        pull = await begun(world)
        theirs = world.github.commit(world.repo, "feature", {"theirs.txt": "2\n"}, by="alice")
        world.github.faults.add(Fault("PATCH /repos/*/git/refs/*", "lose", times=1, on_hit=pushed_since))
        world.model.release("work")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    [made] = parents(world, pull.head_sha)
    assert made in world.repo.verified and parents(world, made) == [theirs]
    assert len(world.pulls()) == 1 and not refs(world.repo.path, "refs/forgehand/")


async def test_pulls_what_was_verified_is_told_under_the_name_that_people_see(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "commits: verified\nchecks: ['test -e a.txt']\n"}, by="alice")
    world.model.default(does("echo x > a.txt"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        [pull] = world.pulls()
        told = f"on a clean checkout of {pull.head_sha[:12]} in a fresh sandbox"
        assert told in world.replies()[0].body and told in str(pull.body)
        world.model.default(does("echo y > b.txt"))
        world.say("/claude more")
        assert await world.outcome(2) == "pushed", world.replies()[-1].body
    assert f"on a clean checkout of {pull.head_sha[:12]} in a fresh" in world.replies()[-1].body
    assert pull.head_sha in world.repo.verified


@pytest.mark.acceptance("E02")
async def test_pulls_a_strangers_branch_at_the_place_where_ours_would_begin_is_left_alone(signed: World) -> None:
    signed.repo.signs = False
    signed.repo.protections.clear()
    signed.model.default(write("a.txt", "x", held="work"))
    async with signed.bot():
        signed.say("/claude fix this")
        await signed.model.reached("work", timeout=60)
        name, stands = f"forgehand/1-{signed.states()[0]['session']}", signed.repo.branch_sha("main")
        signed.github.set_branch(signed.repo, name, stands)
        signed.model.release("work")
        assert await signed.outcome() == "pull_request", signed.replies()[0].body
    [pull] = signed.pulls()
    assert pull.head == f"{name}-1" and signed.repo.branch_sha(name) == stands
    assert pull.head_sha in signed.repo.verified and not refs(signed.repo.path, "refs/forgehand/")


@pytest.mark.acceptance("E02")
@pytest.mark.parametrize("signs", [True, False])
async def test_pulls_a_strangers_branch_made_while_we_were_away_is_not_taken_for_ours(
    signed: World, signs: bool
) -> None:
    """Where it stands says nothing: ours would have begun at the same commit."""

    def away(_: faults.Call) -> None:
        if lost.hits == 1:
            signed.github.set_branch(signed.repo, f"forgehand/1-{signed.states()[0]['session']}", stands)

    signed.repo.signs, stands = signs, signed.repo.branch_sha("main")
    signed.repo.protections.clear()
    signed.model.default(does("echo x > a.txt"))
    async with signed.bot():
        lost = signed.github.faults.add(Fault("POST /repos/*/git/commits", "fail", status=502, times=3, on_hit=away))
        signed.say("/claude fix this")
        assert await signed.outcome() == "pull_request", signed.replies()[0].body
    [pull], name = signed.pulls(), f"forgehand/1-{signed.states()[0]['session']}"
    assert pull.head == f"{name}-1" and signed.repo.branch_sha(name) == stands
    assert pull.head_sha in signed.repo.verified and not refs(signed.repo.path, "refs/forgehand/")
