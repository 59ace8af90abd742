"""Sub-agents of an agent at work: how many there may be, who says so, and that it is said."""

from __future__ import annotations

import pytest

from bot.simulation.anthropic import Call, Calls, Say, Script, Wait
from tests.world import World


def helper(number: int) -> Call:
    return Call("Agent", {"description": f"Part {number}", "prompt": f"[[scenario:part]] {number}"})


def scripted(world: World, *rounds: int) -> None:
    """So many sub-agents at once in each round."""
    numbers = iter(range(100))
    world.model.script("part", Script([Say("Part done.")]))
    calls = [Calls([helper(next(numbers)) for _ in range(count)]) for count in rounds]
    world.model.default(Script([*calls, Say("All parts are done.")]))


def started(world: World) -> int:
    """Asked of the model by a sub-agent."""
    return sum("[[scenario:part]]" in str(one.body["messages"][0]) for one in world.model.requests)


async def test_as_many_as_are_allowed_are_started_and_nothing_is_said(world: World) -> None:
    scripted(world, 1, 2)
    async with world.bot(FORGEHAND_SUBAGENTS="3", FORGEHAND_SUBAGENTS_AT_ONCE="2"):
        world.say("/claude do it in parts")
        assert await world.outcome() == "no_change"
    assert started(world) == 3
    assert "Sub-agents" not in world.replies()[0].body


@pytest.mark.parametrize("where", ["operator", "repository"])
async def test_one_more_is_refused_by_the_host_and_the_comment_says_so(world: World, where: str) -> None:
    scripted(world, 2, 2, 1)
    settings = {"FORGEHAND_SUBAGENTS": "3"}
    if where == "repository":
        world.github.commit(world.repo, "main", {".github/forgehand.yml": "subagents: {most: 3}\n"}, by="alice")
        settings = {"FORGEHAND_SUBAGENTS": "50"}
    async with world.bot(**settings):
        world.say("/claude do it in parts")
        assert await world.outcome() == "no_change"
    assert started(world) == 3
    last = str(world.model.requests[-1].body)
    assert last.count("No more sub-agents may be started in this turn. A turn may start 3.") == 2
    [live] = world.replies()
    assert (
        "**Sub-agents:** 2 were refused. A turn may start 3 in all, and at most 4 may work at the same time"
        in live.body
    )


async def test_one_that_found_no_place_may_be_started_later(world: World) -> None:
    """What is refused because others are at work does not count as started."""
    scripted(world, 3, 1, 1, 1)
    async with world.bot(FORGEHAND_SUBAGENTS="3", FORGEHAND_SUBAGENTS_AT_ONCE="1"):
        world.say("/claude do it in parts")
        assert await world.outcome() == "no_change"
    assert started(world) == 3
    assert (
        "**Sub-agents:** 3 were refused. A turn may start 3 in all, and at most 1 may work at the same time"
        in world.replies()[0].body
    )


async def test_none_are_offered_where_there_may_be_none(world: World) -> None:
    scripted(world, 1)
    async with world.bot(FORGEHAND_SUBAGENTS="0"):
        world.say("/claude do it in parts")
        assert await world.outcome() == "no_change"
    assert started(world) == 0
    assert "Agent" not in [tool["name"] for tool in world.model.requests[0].body["tools"]]


async def test_where_people_are_asked_they_are_not_asked_about_sub_agents(world: World) -> None:
    scripted(world, 2)
    world.github.commit(
        world.repo, "main", {".github/forgehand.yml": "permission: ask\nsubagents: {most: 1}\n"}, by="alice"
    )
    async with world.bot():
        world.say("/claude do it in parts")
        assert await world.outcome() == "no_change"
    assert started(world) == 1
    assert len(world.replies()) == 1


@pytest.mark.parametrize("command", ["ask", "plan"])
async def test_they_are_counted_where_the_agent_only_reads(world: World, command: str) -> None:
    scripted(world, 2, 1)
    async with world.bot(FORGEHAND_SUBAGENTS="1"):
        world.say(f"/claude {command} in parts")
        await world.outcome()
    assert started(world) == 1
    assert str(world.model.requests[-1].body).count("No more sub-agents may be started in this turn.") == 2
    assert "**Sub-agents:** 2 were refused." in world.replies()[0].body


async def test_the_count_outlives_a_restart(world: World) -> None:
    numbers = iter(range(10))
    world.model.script("part", Script([Say("Part done.")]))
    first = Calls([helper(next(numbers)) for _ in range(2)])
    world.model.default(Script([first, Wait("middle"), Calls([helper(9)]), Say("All parts are done.")]))
    async with world.bot(FORGEHAND_SUBAGENTS="2"):
        world.say("/claude do it in parts")
        await world.model.reached("middle", 60.0)
    async with world.bot(FORGEHAND_SUBAGENTS="2"):
        world.model.release("middle")
        assert await world.outcome() == "no_change"
    assert started(world) == 2
    assert "**Sub-agents:** one was refused." in world.replies()[0].body


async def test_words_that_come_meanwhile_change_no_count(world: World) -> None:
    world.model.script("part", Script([Say("Part done.")]))
    rest = Calls([helper(1), helper(2)])
    world.model.default(Script([Calls([helper(0)]), Wait("middle"), rest, Say("All parts are done.")]))
    async with world.bot(FORGEHAND_SUBAGENTS="2"):
        world.say("/claude do it in parts")
        await world.model.reached("middle", 60.0)
        said = world.say("/claude look at the tests too")
        await world.github.changed(lambda: said.reactions, 60.0)
        world.model.release("middle")
        assert await world.outcome() == "no_change"
    assert started(world) == 2
    assert "**Sub-agents:** one was refused." in world.replies()[0].body
