"""Words for a turn under way: the agent hears them while it works, in order, each once; too late, they come next."""

from __future__ import annotations

import asyncio
import json
import re
import time

import pytest

from bot.models import SessionId, TurnKey
from bot.simulation.anthropic import Call, ModelRequest, Say, Script, Wait
from bot.simulation.github.threads import Comment, Issue
from bot.store import conversation, sessions
from bot.store.base import Store
from tests.crash.process import Service
from tests.reading.test_reading import png
from tests.world import World

LOOK = Call("Bash", {"command": "ls", "description": "Look around"})


def heard(world: World, words: str) -> int:
    """How often the words stand in the conversation as the model was last sent it."""
    asked = [one for one in world.model.requests if one.has_tools]
    return str(asked[-1].body["messages"]).count(words) if asked else 0


def reactions(comment: Comment) -> list[str]:
    return [one.content for one in comment.reactions]


async def told(world: World, comment: Comment) -> None:
    """The running agent was given the words of the comment."""
    await world.github.changed(lambda: "rocket" in reactions(comment), 30)


@pytest.mark.quick
async def test_the_running_agent_is_told_and_the_comment_says_so(world: World) -> None:
    world.model.default(Script([LOOK, Wait("on"), LOOK, Say("Done.")]))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        said = world.say("/claude mind the tests, <!-- hidden --> please")
        await told(world, said)
        world.model.release("on")
        assert await world.outcome() == "no_change", world.replies()[0].body
    assert reactions(said) == ["eyes", "rocket"]
    assert len(world.states()) == 1, "no turn of its own"
    live = world.replies()[0].body
    assert "💬 **alice**: mind the tests" in live
    assert heard(world, "mind the tests") == 1
    assert heard(world, "alice, who may write to the repository, says while you work") == 1
    assert heard(world, "hidden") == 0


@pytest.mark.acceptance("B13")
async def test_two_people_at_once_stay_in_order(world: World) -> None:
    world.github.user("bob")
    world.repo.grant("bob", "write")
    world.model.default(Script([LOOK, Wait("on"), LOOK, Say("Done.")]))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        said = [world.say(f"/claude word-{n}", by=who) for n, who in enumerate(["alice", "bob", "alice"])]
        for one in said:
            await told(world, one)
        world.model.release("on")
        await world.outcome()
    conversation = str([one for one in world.model.requests if one.has_tools][-1].body["messages"])
    places = [conversation.index(f"word-{n}") for n in range(3)]
    assert places == sorted(places)
    assert all(heard(world, f"word-{n}") == 1 for n in range(3))


async def test_somebody_without_write_access_is_not_passed_on(world: World) -> None:
    world.github.user("eve")
    world.repo.grant("eve", "read")
    world.model.default(Script([LOOK, Wait("on"), LOOK, Say("Done.")]))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        world.say("/claude delete everything", by="eve")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
        world.model.release("on")
        await world.outcome()
    assert heard(world, "delete everything") == 0


async def test_images_in_words_for_the_running_agent_are_files_that_it_looks_at(world: World) -> None:
    """In the words as they were said: those of a comment that was changed are not fetched."""
    url = world.github.attach(world.repo, png(3, 2))

    def look(request: ModelRequest) -> Call:
        found = re.search(r"- (/\S+/said-1-image-1\.png)", str(request.body["messages"]))
        assert found is not None
        return Call("Read", {"file_path": found[1]})

    world.model.default(Script([LOOK, Wait("on"), LOOK, look, Say("Done.")]))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        await told(world, world.say(f"/claude it looks like this: ![shot]({url})"))
        world.model.release("on")
        assert await world.outcome() == "no_change", world.replies()[0].body
    assert '"media_type": "image/png"' in json.dumps(world.model.requests[-1].body), "the picture reached the model"


async def test_who_has_lost_access_meanwhile_is_not_passed_on(world: World) -> None:
    world.github.user("bob")
    world.repo.grant("bob", "write")
    world.model.default(Script([Wait("on"), Say("Done.")]))
    async with world.bot(FORGEHAND_MAX_SESSIONS="1"):
        other = await queued_behind_another(world)
        said = world.say("/claude delete everything", on=other, by="bob")
        await world.github.changed(lambda: "eyes" in reactions(said), 20)
        world.repo.grant("bob", "read")
        world.model.default(Script([LOOK, Say("Done.")]))
        world.model.release("on")
        assert await world.outcome(on=other) == "no_change", world.replies(other)[0].body
    assert "not passed on: they may no longer write" in world.replies(other)[0].body
    assert heard(world, "delete everything") == 0 and "rocket" not in reactions(said)
    assert len(world.states(other)) == 1


@pytest.mark.parametrize("waited", [0, 3600])
async def test_who_has_lost_access_while_their_turn_waited_begins_nothing(world: World, waited: int) -> None:
    """Asked again when a turn that has waited begins; within the minute of the command it was asked just before."""
    world.model.default(Script([Wait("on"), Say("Done.")]))
    ahead = 0.0
    async with world.bot(lambda: time.time() + ahead, FORGEHAND_MAX_SESSIONS="1"):
        other = await queued_behind_another(world)
        world.repo.grant("alice", "read")
        ahead = float(waited)
        world.model.default(Script([LOOK, Say("Done.")]))
        world.model.release("on")
        outcome = await world.outcome(on=other)
    assert outcome == ("refused" if waited else "no_change"), world.replies(other)[0].body


async def test_queue_makes_it_the_next_turn(world: World) -> None:
    world.model.default(Script([Wait("on"), Say("Done.")]))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        world.say("/claude then this --queue")
        await world.github.changed(lambda: len(world.states()) == 2, 20)
        world.model.release("on")
        assert [await world.outcome(n) for n in (1, 2)] == ["no_change", "no_change"]


async def queued_behind_another(world: World) -> Issue:
    """A thread whose turn waits for the one slot, which another thread's has."""
    world.say("/claude look around")
    await world.model.reached("on", timeout=60)
    other = world.github.open_issue(world.repo, title="Other", body="Another matter.", by="alice")
    world.say("/claude also here", on=other)
    await world.github.changed(lambda: world.states(other) and world.states(other)[0]["state"] == "queued", 20)
    return other


async def test_words_before_the_agent_starts_wait_for_it(world: World) -> None:
    """The one slot is taken by another thread: the turn is queued while it is spoken to."""
    world.model.default(Script([Wait("on"), Say("Done.")]))
    async with world.bot(FORGEHAND_MAX_SESSIONS="1"):
        other = await queued_behind_another(world)
        said = world.say("/claude with care", on=other)
        await world.github.changed(lambda: "eyes" in reactions(said), 20)
        world.model.default(Script([LOOK, Say("Done.")]))
        world.model.release("on")
        assert await world.outcome(on=other) == "no_change"
    assert len(world.states(other)) == 1
    assert "rocket" in reactions(said)
    assert heard(world, "with care") == 1


async def test_words_that_come_too_late_are_the_next_turn(world: World) -> None:
    """The agent has ended; its checks still run. Nothing listens any more."""
    files = {".github/forgehand.yml": "checks:\n  - for i in $(seq 40); do sleep 0.1; done\n"}
    world.github.commit(world.repo, "main", files, by="alice")
    write = Call("Bash", {"command": "echo half > half.txt", "description": "Write"})
    world.model.default(Script([write, Say("Done.")]))
    async with world.bot():
        world.say("/claude write")
        await world.github.changed(lambda: any("Running the checks" in one.body for one in world.replies()), 30)
        said = world.say("/claude and now this")
        await world.github.changed(lambda: len(world.states()) == 2, 20)
        assert await world.outcome() == "pull_request", world.replies()[0].body
        assert await world.outcome(2) in ("pushed", "no_change"), world.replies()[-1].body
    assert "rocket" not in reactions(said)


@pytest.mark.parametrize("how", ["terminate", "kill"])
async def test_each_word_is_heard_once_also_over_a_restart(world: World, how: str) -> None:
    world.model.default(Script([Wait("on"), LOOK, Say("Done.")]))
    first = await Service.start(world)
    assert first is not None
    world.say("/claude work")
    await world.model.reached("on", timeout=60)
    said = world.say("/claude mind the tests")
    await told(world, said)
    await (first.stop() if how == "terminate" else first.kill())
    second = await Service.start(world)
    assert second is not None
    try:
        later = world.say("/claude and the docs")
        await told(world, later)
        world.model.release("on")
        assert await world.outcome() == "no_change", world.replies()[0].body
    finally:
        await second.stop()
    assert heard(world, "mind the tests") == 1
    assert heard(world, "and the docs") == 1
    assert len(world.states()) == 1


@pytest.mark.acceptance("B06")
async def test_words_that_are_changed_afterwards_are_heard_as_they_were(world: World) -> None:
    world.model.default(Script([Wait("on"), Say("Done.")]))
    async with world.bot(FORGEHAND_MAX_SESSIONS="1"):
        other = await queued_behind_another(world)
        said = [world.say("/claude as written first", on=other), world.say("/claude deleted later", on=other)]
        await world.github.changed(lambda: all("eyes" in reactions(one) for one in said), 20)
        world.github.edit_comment(said[0], "/claude as written then")
        world.github.delete_comment(said[1])
        world.model.default(Script([LOOK, Say("Done.")]))
        world.model.release("on")
        assert await world.outcome(on=other) == "no_change", world.replies(other)[0].body
    assert heard(world, "as written first") == 1 and heard(world, "deleted later") == 1
    assert heard(world, "as written then") == 0
    store = await Store.open_reader(world.database)
    turns = await sessions.turns_of(store, SessionId(str(world.states(other)[0]["session"])))
    await store.close()
    assert len(turns) == 1, "nor did the deleted one come again as a turn"


@pytest.mark.acceptance("B15")
async def test_stop_drops_what_was_not_heard(world: World) -> None:
    world.model.default(Script([Wait("first"), Say("First.")]))
    async with world.bot():
        world.say("/claude first")
        await world.model.reached("first", timeout=60)
        world.say("/claude second --queue")
        await world.github.changed(lambda: len(world.states()) == 2, 20)
        said = world.say("/claude for whoever hears")
        await world.github.changed(lambda: "eyes" in reactions(said), 20)
        world.say("/claude stop")
        assert [await world.outcome(n) for n in (1, 2)] == ["stopped", "stopped"]
    assert len(world.states()) == 2


async def test_the_delivery_is_a_row_among_the_events(world: World) -> None:
    world.model.default(Script([LOOK, Wait("on"), Say("Done.")]))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        await told(world, world.say("/claude mind the tests"))
        world.model.release("on")
        await world.outcome()
    store = await Store.open_reader(world.database)
    key = TurnKey(SessionId(str(world.states()[0]["session"])), 1)
    rows = [row for row in await conversation.events_of_turn(store, key) if row.kind == "message"]
    await store.close()
    assert len(rows) == 1 and "mind the tests" in rows[0].line


async def test_an_answer_to_words_of_a_person_is_not_lost_between_two_results(world: World) -> None:
    """The words come when the agent has just answered: the same run answers them, or the next turn does."""
    seen: list[str] = []

    def reply(request: ModelRequest) -> Say:
        seen.append(request.prompt)
        return Say("Handled.")

    world.model.default(Script([reply], after=reply))
    async with world.bot():
        world.say("/claude look around")
        await asyncio.wait_for(world.github.changed(lambda: bool(world.replies())), 20)
        world.say("/claude mind the tests")
        await world.outcome()
        if len(world.states()) > 1:
            await world.outcome(2)
    assert sum("mind the tests" in words for words in seen) >= 1
