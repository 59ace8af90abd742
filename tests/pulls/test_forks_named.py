"""A yes to a fork's code names the commit, in whatever spelling, and in its time; an approval's own name is none."""

from __future__ import annotations

import pytest

from tests.pulls.test_forks import refs
from tests.pulls.test_forks_approved import mended, said
from tests.world import World


async def test_the_approval_s_own_name_is_no_yes_to_a_fork_s_code_and_no_work(world: World) -> None:
    async with world.bot():
        fork = await mended(world)
        before, session = refs(world), world.states(fork.pull)[0]["session"]
        asked = len(world.model.requests)
        world.say(f"/claude approve {session}-1-fork", on=fork.pull)
        await said(world, fork, f"approved by its commit: `/claude approve {fork.sha[:12]}`")
        assert refs(world) == before and len(world.states(fork.pull)) == 1
        assert len(world.model.requests) == asked, "no agent is given what was meant as a yes"


@pytest.mark.parametrize("spelling", ["`{}`", "{} ", "`{}` once"])
async def test_the_commit_s_name_counts_as_people_copy_it(world: World, spelling: str) -> None:
    async with world.bot():
        fork = await mended(world)
        world.say(f"/claude approve {spelling.format(fork.sha.upper())}", on=fork.pull)
        assert await world.outcome(2, on=fork.pull) == "pull_request", world.replies(fork.pull)[-1].body


async def test_a_yes_after_its_time_counts_for_nothing_though_nobody_has_swept_yet(world: World) -> None:
    async with world.bot():
        fork = await mended(world)
        before = refs(world)
        await world.change("UPDATE approvals SET expires_at = asked_at - 5")
        world.say(f"/claude approve {fork.sha}", on=fork.pull)
        await said(world, fork, f"The time to approve `{fork.sha[:12]}` is over")
        await said(world, fork, "No longer open")
        assert refs(world) == before and len(world.states(fork.pull)) == 1


async def test_beside_an_offer_the_work_goes_on_and_words_below_a_yes_to_it_are_not_swallowed(world: World) -> None:
    async with world.bot():
        fork = await mended(world)
        world.say("/claude continue +3", on=fork.pull)
        assert await world.outcome(2, on=fork.pull) == "reviewed", world.replies(fork.pull)[-1].body
        world.say(f"/claude approve {fork.sha}\n\nThanks! Add a test as well.", on=fork.pull)
        assert await world.outcome(3, on=fork.pull) == "pull_request", world.replies(fork.pull)[-1].body
        await said(world, fork, "because this needs no agent")
