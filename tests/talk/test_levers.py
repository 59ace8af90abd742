"""A question to an agent at work: answered beside its work and at its own cost, or else by the next turn."""

from __future__ import annotations

import re

from bot.models import TokenUsage
from bot.simulation.anthropic import Call, ModelRequest, Say, Script, Wait
from bot.simulation.anthropic.script import Answer
from bot.store import audit
from bot.store.base import Store
from bot.web.gateway.model_request import QUESTION
from tests.crash.process import Service
from tests.world import World

LOOK = Call("Bash", {"command": "ls", "description": "Look around"})


def is_question(request: ModelRequest) -> bool:
    return QUESTION.match(request.prompt) is not None


def script(answer: Say, *steps: object) -> Script:
    """Answer questions beside the work as given, and the work by the steps."""

    def first(request: ModelRequest) -> Answer:
        return answer if is_question(request) else LOOK

    return Script([first, *steps])  # type: ignore[list-item]


def asked(world: World) -> list[ModelRequest]:
    return [one for one in world.model.requests if is_question(one)]


async def test_a_running_agent_answers_beside_its_work_at_its_own_cost(world: World) -> None:
    because = Say("Because *it* is <b>small</b>, @bob.", usage=TokenUsage(20_000, 100, 0, 0))
    world.model.default(script(because, Wait("on"), LOOK, Say("Done.")))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        said = world.say("/claude ask why sqlite? <!-- hidden -->")
        await world.github.changed(lambda: len(world.replies()) == 2, 30)
        reply = world.replies()[1].body
        assert "state=running" in world.replies()[0].body, "the turn goes on"
        world.model.release("on")
        assert await world.outcome() == "no_change", world.replies()[0].body
    assert re.match(r"<!-- forgehand:answer=[a-z0-9]{8}-1 -->\n\n> \*\*alice\*\*: why sqlite?", reply), reply
    assert "Because *it* is" in reply and "@bob" not in reply
    assert "Answered beside turn 1, whose work goes on as before · $0.04</sub>" in reply
    assert len(world.states()) == 1 and len(world.replies()) == 2, "no turn of its own"
    assert [one.content for one in said.reactions] == ["eyes"]
    [question] = asked(world)
    assert "alice, who may write to the repository:\n\nwhy sqlite?" in question.prompt
    assert "hidden" not in question.prompt
    assert "why sqlite" not in str(world.model.requests[-1].body), "the work does not know of it"
    store = await Store.open_reader(world.database)
    [row] = [one for one in await audit.listing(store) if one.action == "question answered"]
    rows = await store.many("SELECT question, cost_usd FROM spend WHERE question IS NOT NULL")
    await store.close()
    assert (row.actor, row.detail) == ("alice", "beside turn 1")
    assert [round(float(one["cost_usd"]), 4) for one in rows] == [0.041]


async def test_a_question_without_an_answer_at_the_end_of_the_work_is_the_next_turn(world: World) -> None:
    late = Say("This answer comes too late: the work has ended before its last pieces.", hold="never")
    world.model.default(script(late, Wait("on"), Say("Done.")))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        world.say("/claude ask why sqlite?")
        await world.model.reached("never", timeout=30)
        world.model.default(Script([Say("Because it is small.")]))
        world.model.release("on")
        assert await world.outcome() == "no_change", world.replies()[0].body
        assert await world.outcome(2) == "answered", world.replies()[1].body
    assert "> Because it is small." in world.replies()[1].body
    assert len(world.replies()) == 2 and len(asked(world)) == 1


async def test_a_question_is_answered_once_also_over_a_kill(world: World) -> None:
    world.model.default(script(Say("Because it is small enough for two pieces.", hold="q"), Wait("on"), Say("Done.")))
    first = await Service.start(world)
    assert first is not None
    world.say("/claude look around")
    await world.model.reached("on", timeout=60)
    world.say("/claude ask why sqlite?")
    await world.model.reached("q", timeout=30)
    await first.kill()
    second = await Service.start(world)
    assert second is not None
    try:
        world.model.release("q")
        await world.github.changed(lambda: len(world.replies()) == 2, 60)
        world.model.release("on")
        assert await world.outcome() == "no_change", world.replies()[0].body
    finally:
        await second.stop()
    assert "Because it is small" in world.replies()[1].body
    assert len(world.replies()) == 2 and len(world.states()) == 1
