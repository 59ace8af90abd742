"""Red checks over the wire: what is mended, what is left alone, what is told of a flake, and when people take over."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from bot.models import TokenUsage
from bot.simulation.anthropic import Call, ModelRequest, Say, Script, Wait
from bot.simulation.anthropic.script import Answer
from bot.simulation.github.faults import Fault
from tests.reviews.test_reviews import config, prompts, pull_of
from tests.reviews.test_triggers import why
from tests.world import World
from tests.world.ci import (
    ON,
    FastClock,
    agent,
    ci,
    open_our_pull,
    said,
    wait_for_attempt,
    wait_for_webhooks,
    wait_until_unwatched,
)


async def test_a_red_check_of_our_own_pull_request_is_mended_in_its_session(world: World) -> None:
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        before = pull.head_sha
        run = ci(world, pull, {"test": "failure", "lint": "success"})
        world.github.annotate(run.job("test").check, "shop.py", 6, "a price below zero")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
    assert pull.head_sha != before and world.repo.file(pull.head, "mended2.txt") == b"2\n"
    asked = prompts(world)[-1].prompt
    assert "FAIL: test_never_below_zero" in asked and "\x1b" not in asked and "10:00:01" not in asked
    assert "failing step: Run tests" in asked and "shop.py:6: failure: a price below zero" in asked
    assert "the log of test" in asked and "the log of lint" not in asked
    assert world.states(pull)[0]["session"] == world.states()[0]["session"]
    assert "Actions: write" in world.replies(pull)[-1].body, "why no flake was looked for"


@pytest.mark.parametrize("repeated", [False, True])
async def test_an_attempt_that_was_planned_first_goes_on_as_one_and_begins_no_round(
    world: World, repeated: bool
) -> None:
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        config(world, ON + "permission: plan\n")
        turns = 1
        if repeated:
            world.model.default(Script([Wait("go"), Say("unreachable")]))
            ci(world, pull, {"test": "failure"})
            await world.model.reached("go", 40)
            world.say("/claude stop ci", on=pull)
            assert await world.outcome(on=pull) == "stopped", "a plan for them is about them, too"
            world.model.default(agent())
            world.say("/claude retry", on=pull)
            turns = 2
        else:
            ci(world, pull, {"test": "failure"})
        assert await world.outcome(turns, on=pull) == "planned", world.replies(pull)[-1].body
        assert "FAIL: test_never_below_zero" in prompts(world)[-1].prompt, "a plan needs the evidence, too"
        planned = world.states(pull)[-1]
        world.say(f"/claude approve {planned['session']}-{planned['turn']}", on=pull)
        assert await world.outcome(turns + 1, on=pull) == "pushed", world.replies(pull)[-1].body
    assert "FAIL: test_never_below_zero" in prompts(world)[-1].prompt, "the evidence"
    with closing(sqlite3.connect(world.root / "data" / "state.db")) as db:
        [(now, then)] = db.execute("SELECT ci_watches.round, ci_attempts.round FROM ci_watches, ci_attempts").fetchall()
    assert now == then


async def test_what_is_red_on_the_base_too_is_left_alone_and_named(world: World) -> None:
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        world.github.run_workflow(world.repo, pull.base_sha, {"lint": "failure", "test": "success"})
        ci(world, pull, {"lint": "failure", "test": "success"})
        assert "`lint`" in (await said(world, pull, "red on the base branch too")).body
        assert world.states(pull) == []
        world.github.run_workflow(world.repo, pull.head_sha, {"extra": "failure"}, name="More")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
    asked = prompts(world)[-1].prompt
    assert "what the check extra says" in asked and "what the check lint says" not in asked
    assert "red on the base too" in asked


async def test_a_flake_is_told_by_running_it_once_more_and_no_agent_is_asked(world: World) -> None:
    world.installation.permissions["actions"] = "write"
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        run = ci(world, pull, {"test": "failure", "lint": "success"})
        await world.github.changed(lambda: run.attempt == 2, 40)
        assert [job.check.name for job in run.jobs if job.attempt == 2] == ["test"]
        asked = len(world.model.requests)
        world.github.finish_job(run, "test", "success")
        assert "`test`" in (await said(world, pull, "a flake")).body
    assert run.attempt == 2 and len(world.model.requests) == asked and world.states(pull) == []


async def test_what_fails_again_is_mended_and_run_again_once_though_the_answer_is_lost(world: World) -> None:
    world.installation.permissions["actions"] = "write"
    world.github.faults.add(Fault(match="POST /repos/*/rerun-failed-jobs", kind="lose"))
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        run = ci(world, pull, {"test": "failure"})
        await world.github.changed(lambda: run.attempt == 2, 40)
        world.github.finish_job(run, "test", "failure", b"it fails each time\n")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
    assert run.attempt == 2 and "it fails each time" in prompts(world)[-1].prompt
    assert "Actions: write" not in world.replies(pull)[-1].body


async def test_after_three_attempts_people_get_the_evidence(world: World) -> None:
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        heads = []
        for n in range(1, 4):
            heads.append(pull.head_sha)
            ci(world, pull, {"test": "failure"})
            assert await world.outcome(n, on=pull) == "pushed", world.replies(pull)[-1].body
        ci(world, pull, {"test": "failure"})
        words = (await said(world, pull, "need a person")).body
        assert all(head[:12] in words for head in [*heads, pull.head_sha]) and words.count("pushed") >= 3
        assert "`test`" in words and "/claude fix ci" in words
        world.say("/claude fix ci\n\nLook at the rounding.", on=pull)
        assert await world.outcome(4, on=pull) == "pushed", world.replies(pull)[-1].body
    assert "Look at the rounding." in prompts(world)[-1].prompt
    assert len(world.states(pull)) == 4


async def test_it_is_done_on_request_where_the_trigger_is_off_and_followed_to_the_end(world: World) -> None:
    world.model.default(agent())
    async with world.bot(FastClock()):
        pull = pull_of(world)
        run = ci(world, pull, {"test": "failure", "slow": None})
        await wait_for_webhooks(world, "we did not push")
        world.say("/claude fix ci\nand keep the tests", on=pull)
        await said(world, pull, "still running")
        assert world.states(pull) == []
        world.github.finish_job(run, "slow", "success")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
        ci(world, pull, {"test": "failure"})
        assert await world.outcome(2, on=pull) == "pushed", "what was asked for is followed"
        ci(world, pull, {"test": "success"})
        await said(world, pull, "so there is nothing to fix")
    assert "and keep the tests" in prompts(world)[0].prompt


async def test_nobody_is_helped_unasked(world: World) -> None:
    """Neither on the pull requests of people, nor at their pushes to ours, nor where the repository is silent."""
    async with world.bot(FastClock()):
        pull = await open_our_pull(world, "checks: []\n")
        asked = len(world.model.requests)
        ci(world, pull, {"test": "failure"})
        theirs = pull_of(world)
        world.github.run_workflow(world.repo, theirs.head_sha, {"test": "failure"})
        await wait_for_webhooks(world, "we did not push")
        config(world, ON)
        world.github.commit(world.repo, pull.head, {"more.txt": "more"}, by="alice")
        ci(world, pull, {"test": "failure"})
        await wait_for_webhooks(world, "we did not push")
        await wait_until_unwatched(world)
    assert len(world.model.requests) == asked and not world.states(pull) and not world.states(theirs)


async def test_a_burst_of_twenty_checks_is_one_turn(world: World) -> None:
    """Also where some of them, and deliveries that come twice, are heard of while it is under way."""
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        head = pull.head_sha
        ci(world, pull, {f"test {n}": "failure" for n in range(15)})
        await world.github.changed(lambda: world.states(pull), 40)
        world.github.run_workflow(world.repo, head, {f"late {n}": "failure" for n in range(5)}, name="More")
        for delivery in [one for one in world.app.deliveries if one.event == "check_run"][-5:]:
            world.github.redeliver(delivery.guid)
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
        await wait_for_webhooks(world)
        await wait_until_unwatched(world)
    assert len(world.states(pull)) == 1
    assert "too many at once" in prompts(world)[-1].prompt


async def test_a_push_in_the_middle_voids_what_had_settled(world: World) -> None:
    clock = FastClock()
    async with world.bot(clock):
        pull = await open_our_pull(world)
        ci(world, pull, {"test": "failure", "slow": None})
        await world.github.idle()
        world.github.commit(world.repo, pull.head, {"more.txt": "more"}, by="alice")
        await wait_for_webhooks(world, "noted")
        clock.seconds += 31 * 60
        await wait_until_unwatched(world)
    assert world.states(pull) == []


async def test_a_restart_while_checks_settle_changes_nothing(world: World) -> None:
    clock = FastClock()
    async with world.bot(clock):
        pull = await open_our_pull(world)
        run = ci(world, pull, {"test": "failure", "slow": None})
        await wait_for_webhooks(world, "noted")
    async with world.bot(clock):
        world.github.finish_job(run, "slow", "success")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
    async with world.bot(clock):
        await wait_for_webhooks(world, "noted")
    assert len(world.states(pull)) == 1


async def test_checks_that_never_end_are_not_waited_for_for_ever(world: World) -> None:
    clock = FastClock()
    async with world.bot(clock):
        pull = await open_our_pull(world)
        ci(world, pull, {"test": "failure", "hangs": None})
        await wait_for_webhooks(world, "noted")
        assert world.states(pull) == []
        clock.seconds += 31 * 60
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
    assert "had not ended by then: `hangs`" in prompts(world)[-1].prompt
    assert "had not ended by then" in world.replies(pull)[-1].body


async def test_a_second_run_that_never_ends_is_not_called_a_flake(world: World) -> None:
    world.installation.permissions["actions"] = "write"
    clock = FastClock()
    async with world.bot(clock):
        pull = await open_our_pull(world)
        run = ci(world, pull, {"test": "failure"})
        await world.github.changed(lambda: run.attempt == 2, 40)
        clock.seconds += 31 * 60
        words = (await said(world, pull, "have not ended")).body
        assert "`test`" in words and "/claude fix ci" in words
        await wait_until_unwatched(world)
        assert not any("a flake" in one.body for one in world.replies(pull)) and world.states(pull) == []
        world.github.finish_job(run, "test", "success")
        assert "`test`" in (await said(world, pull, "a flake")).body, "told once it has ended after all"


async def test_who_asks_is_told_of_checks_that_never_ended_were_cancelled_or_never_began(world: World) -> None:
    clock = FastClock()
    async with world.bot(clock):
        pull = await open_our_pull(world, "")
        world.say("/claude fix ci", on=pull)
        await said(world, pull, "No check has reported")
        run = ci(world, pull, {"test": "cancelled", "hangs": None})
        world.say("/claude fix ci", on=pull)
        await said(world, pull, "still running")
        clock.seconds += 31 * 60
        assert "`hangs`" in (await said(world, pull, "have not ended")).body
        world.github.finish_job(run, "hangs", "success")
        world.say("/claude fix ci", on=pull)
        assert "`test (cancelled)`" in (await said(world, pull, "Neither passed nor failed")).body
    assert not any(one.body.endswith("so there is nothing to fix.") for one in world.replies(pull))


async def test_of_two_workflows_with_a_job_of_one_name_only_that_is_left_alone_which_is_red_on_the_base(
    world: World,
) -> None:
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        world.github.run_workflow(world.repo, pull.base_sha, {"build": "failure"}, name="Docs")
        world.github.run_workflow(world.repo, pull.base_sha, {"build": "success"}, name="CI")
        world.github.run_workflow(world.repo, pull.head_sha, {"build": "failure"}, name="Docs")
        await said(world, pull, "red on the base branch too")
        ci(world, pull, {"build": "failure"})
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
    assert "FAIL: test_never_below_zero" in prompts(world)[-1].prompt


async def test_a_person_can_switch_it_off_and_on_for_a_pull_request(world: World) -> None:
    world.github.user("eve")
    world.repo.grant("eve", "read")

    def slowly(request: ModelRequest) -> Answer:
        return Call("Bash", {"command": "echo 1 > one.txt", "description": "Write"})

    async with world.bot(FastClock()):
        pull = await open_our_pull(world, script=Script([slowly, Say("Done.")]))
        world.model.default(Script([Wait("go"), slowly, Say("Done.")]))
        ci(world, pull, {"test": "failure"})
        await world.model.reached("go", 40)
        world.say("/claude stop ci", on=pull, by="eve")
        await why(world, pull, "write access")
        world.say("/claude stop ci", on=pull)
        assert await world.outcome(on=pull) == "stopped", "also what is being done about them"
        await said(world, pull, "leave the checks of this pull request alone")
        world.model.release("go")
        ci(world, pull, {"test": "failure"})
        await wait_for_webhooks(world, "switched CI fixes off")
        assert len(world.states(pull)) == 1
        world.model.default(agent())
        world.say("/claude fix ci", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", world.replies(pull)[-1].body


async def test_a_stop_is_heard_by_a_round_that_is_just_about_to_begin(world: World) -> None:
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        held = Fault(match="GET /repos/*/collaborators/alice/permission", kind="hold")
        world.github.faults.add(held)  # the last question before the turn: all else is settled by then
        ci(world, pull, {"test": "failure"})
        await asyncio.wait_for(held.reached.wait(), 40)
        world.say("/claude stop ci", on=pull)
        await said(world, pull, "leave the checks of this pull request alone")
        held.release.set()
        await wait_for_attempt(world)
    assert world.states(pull) == [], "nothing begins after that was said"


async def test_checks_for_which_there_was_no_money_go_on_once_it_is_added(world: World) -> None:
    """As the sentence promises; the refusal was none of the three attempts, and the money begins nothing else."""
    write = Call("Bash", {"command": "echo 1 > one.txt", "description": "Write it"})
    async with world.bot(FastClock()):
        pull = await open_our_pull(world, script=Script([write, Say("Dear.", usage=TokenUsage(450_000, 100))]))
    async with world.bot(FastClock(), FORGEHAND_SESSION_BUDGET="0.5"):
        ci(world, pull, {"test": "failure"})
        told = (await said(world, pull, "so nothing was started")).body
        assert "To continue with 3 dollars more, comment `/claude continue +3`" in told
        await wait_until_unwatched(world)
        world.model.default(agent())
        world.say("/claude continue +3", on=pull)
        assert "I will look at the failed checks again" in (await said(world, pull, "may now spend")).body
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
        assert "FAIL: test_never_below_zero" in prompts(world)[-1].prompt
        await wait_until_unwatched(world)
    assert len(world.states(pull)) == 1
