"""What people hear of red checks: no word that is not so, none of theirs lost, and an answer to whoever has asked."""

from __future__ import annotations

from bot.simulation.anthropic import Call, ModelRequest, Say, Script, Wait
from bot.simulation.anthropic.script import Answer
from bot.simulation.github.faults import Fault
from tests.reviews.test_reviews import config, pull_of
from tests.talk.test_steering import heard, told
from tests.world import World
from tests.world.ci import ON, FastClock, agent, ci, open_our_pull, said, wait_for_webhooks, wait_until_unwatched

REFUSED = '{"message": "Resource not accessible by integration"}'


def slowly(request: ModelRequest) -> Answer:
    return Call("Bash", {"command": "echo 1 > one.txt", "description": "Write"})


async def test_nobody_is_told_to_wait_for_checks_that_have_ended(world: World) -> None:
    """Also where the App may not have them run again, as it is by default."""
    world.model.default(agent())
    async with world.bot(FastClock()):
        pull = pull_of(world)
        ci(world, pull, {"test": "failure"})
        world.say("/claude fix ci", on=pull)
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
    assert "Actions: write" in world.replies(pull)[-1].body
    assert not [one.body for one in world.replies(pull) if "still running" in one.body]


async def test_words_while_checks_are_mended_are_passed_on_and_late_checks_are_no_news(world: World) -> None:
    async with world.bot(FastClock()):
        pull = await open_our_pull(world, "checks: []\n")
        world.model.default(Script([Wait("go"), slowly, Say("Done.")]))
        head = pull.head_sha
        ci(world, pull, {"test": "failure"})
        world.say("/claude fix ci", on=pull)
        await world.model.reached("go", 40)
        world.github.run_workflow(world.repo, head, {"late": "failure"}, name="More")
        await wait_for_webhooks(world, "noted")
        beside = world.say("/claude fix ci\nand mind the rounding", on=pull)
        await told(world, beside)
        world.model.release("go")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
        await wait_until_unwatched(world)
    assert heard(world, "mind the rounding") == 1 and len(world.states(pull)) == 1
    words = "\n".join(one.body for one in world.replies(pull))
    assert "already working on these checks" not in words and "still running" not in words


async def test_who_has_asked_is_told_that_the_checks_cannot_be_read(world: World) -> None:
    world.github.faults.add(Fault(match="GET /repos/*/check-runs*", kind="fail", status=403, body=REFUSED, times=None))
    async with world.bot(FastClock()):
        pull = pull_of(world)
        world.say("/claude fix ci", on=pull)
        assert "could not read the checks" in (await said(world, pull, "/claude fix ci")).body
        await wait_until_unwatched(world)
    assert world.states(pull) == []


async def test_who_has_asked_is_told_that_the_pull_request_was_closed_meanwhile(world: World) -> None:
    async with world.bot(FastClock()):
        pull = pull_of(world)
        ci(world, pull, {"test": "failure", "slow": None})
        world.say("/claude fix ci", on=pull)
        await said(world, pull, "still running")
        world.github.close(pull, by="alice")
        await said(world, pull, "is no longer open")
        await wait_until_unwatched(world)
    assert world.states(pull) == []


async def test_checks_of_a_pull_request_beside_another_are_its_own(world: World) -> None:
    world.model.default(agent())
    async with world.bot(FastClock()):
        config(world, ON)
        theirs = pull_of(world)
        world.say("/claude write it --new-branch", on=theirs)
        assert await world.outcome(on=theirs) == "pull_request", world.replies(theirs)[-1].body
        beside = world.pulls()[1]
        ci(world, beside, {"test": "failure"})
        assert await world.outcome(on=beside) == "pushed", world.replies(beside)[-1].body
    assert world.repo.file(beside.head, "mended2.txt") == b"2\n"
