"""From a signed webhook to a draft pull request, over the wire, with real git and the real Claude Code CLI."""

from __future__ import annotations

import asyncio
import re
import time
from itertools import pairwise

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.world import World
from tests.world.plain_http import plain_client


@pytest.mark.quick(
    "bot",
    "bot.agent",
    "bot.commands",
    "bot.engine",
    "bot.events",
    "bot.git",
    "bot.github",
    "bot.handlers",
    "bot.handlers.commands",
    "bot.live",
    "bot.outbound",
    "bot.proposal",
    "bot.repo_config",
    "bot.sessions",
    "bot.sessions.environments",
    "bot.sessions.money",
    "bot.sessions.publish",
    "bot.sessions.reading",
    "bot.sessions.steps",
    "bot.settings",
    "bot.simulation",
    "bot.simulation.anthropic",
    "bot.simulation.github",
    "bot.store",
    "bot.store.sqlite",
    "bot.text",
    "bot.web",
    "bot.web.gateway",
    "bot.words",
    "sandbox",
    "sandbox.agents",
    "sandbox.local",
    "sandbox.runner",
)
async def test_a_comment_becomes_a_draft_pull_request(world: World) -> None:
    world.declare_checks()
    async with world.bot():
        asked = world.say("/claude fix this and keep the tests green")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    [pull] = world.pulls()
    [live] = world.replies()
    assert pull.draft
    assert pull.base == "main"
    assert pull.head == f"forgehand/{world.issue.number}-{world.states()[0]['session']}"
    assert [reaction.content for reaction in asked.reactions] == ["eyes"]
    assert b"max(0.0" in (world.repo.file(pull.head, "shop.py") or b"")
    assert f"#{pull.number}" in live.body
    for words in ("fix this and keep the tests green", "python3 -m unittest", "shop.py", "$0."):
        assert words in (pull.body or ""), words
    assert "✓ `python3 -m unittest -q` exit 0" in live.body


async def test_the_live_comment_shows_steps_todo_and_tools_while_the_agent_works(world: World) -> None:
    world.model.default(
        Script(
            [
                Call("TaskCreate", {"subject": "Look around", "description": "Look", "activeForm": "Looking"}),
                Call("Bash", {"command": "cat shop.py", "description": "Read"}),
                Wait("shown"),
                Say("Looked."),
            ]
        )
    )
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("shown", timeout=60)
        live = await world.github.changed(lambda: _with(world, "Last tool calls"), 20)
        for words in ("step 3 of 7", "Look around", "**Now:** thinking", "of $5.00", "`/claude stop`"):
            assert words in live, live
        world.model.release("shown")
        assert await world.outcome() == "no_change"
    assert "Looked." in world.replies()[0].body


@pytest.mark.review("beside-1")
async def test_no_edit_of_the_live_comment_leaves_it_as_it_was(world: World) -> None:
    """By a clock on which all of a turn may lie in one second, where the time is no change either."""
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot(lambda: time.time() // 60 * 60):
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
    [live] = world.replies()
    texts = [text for _, text in live.history]
    assert len(texts) > 1
    assert all(before != after for before, after in pairwise(texts)), texts


async def test_a_hundred_deliveries_of_one_comment_are_one_session(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot() as service:
        world.app.hook_active = False
        comment = world.say("/claude fix this")
        same = world.github.comment_webhook(comment)
        others = [world.github.comment_webhook(comment) for _ in range(50)]
        async with plain_client(timeout=30) as client:
            answers = await asyncio.gather(
                *(
                    client.post(f"{service.url}/webhook", headers=one.headers, content=one.body)
                    for one in [*others, *[same] * 50]
                )
            )
        assert {answer.status_code for answer in answers} == {202}
        assert await world.outcome() == "no_change"
    assert len(world.replies()) == 1
    assert len([one for one in world.model.requests if one.has_tools]) == 1


@pytest.mark.quick
async def test_the_next_comment_goes_on_with_the_same_session_branch_and_pull_request(world: World) -> None:
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        world.model.default(
            Script([Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"}), Say("Added a line.")])
        )
        [pull] = world.pulls()
        first = world.repo.branch_sha(pull.head)
        world.say("/claude also add a line", on=pull)
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)
    assert len(world.pulls()) == 1
    assert world.states(pull)[0]["session"] == world.states()[0]["session"]
    assert world.states(pull)[0]["turn"] == "2"
    history = world.repo.diff(str(first), pull.head)
    assert "+# more" in history
    conversation = str(world.model.requests[-1].body["messages"])
    assert "never goes below zero" in conversation, "the agent remembers its first turn"


async def test_a_question_is_answered_and_nothing_is_pushed(world: World) -> None:
    async with world.bot():
        world.say("/claude ask what does discounted do?")
        assert await world.outcome() == "answered", world.replies()[0].body
    assert not world.pulls()
    assert world.repo.branches().keys() == {"main"}
    assert "takes a price and a percentage" in world.replies()[0].body


async def test_an_issue_may_ask_in_its_own_text(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        issue = world.github.open_issue(world.repo, title="New", body="/claude fix this", by="alice")
        assert await world.outcome(on=issue) == "no_change"


async def test_two_commands_at_once_on_a_thread_run_one_after_the_other(world: World) -> None:
    world.model.default(Script([Wait("go"), Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude first")
        world.say("/claude second --queue")
        await world.model.reached("go", timeout=60)
        queued = await world.github.changed(lambda: len(world.replies()) == 2 and world.states()[1]["state"], 20)
        assert queued == "queued"
        assert re.search(r"Queued, 1st in line", world.replies()[1].body)
        world.model.release("go")
        assert [await world.outcome(n) for n in (1, 2)] == ["no_change", "no_change"]
    assert world.states()[0]["session"] == world.states()[1]["session"]


def _with(world: World, words: str) -> str | None:
    return next((one.body for one in world.replies() if words in one.body), None)
