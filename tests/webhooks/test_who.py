"""Who is obeyed and what counts as a command: over the wire, from webhook to what stands on GitHub."""

from __future__ import annotations

from typing import Literal

import pytest

from bot.simulation.anthropic import Say, Script
from tests.world import World

SEEN = [["confused"], ["confused"]]


@pytest.mark.acceptance("B01")
@pytest.mark.parametrize("role", ["read", "triage", "none"])
async def test_somebody_without_write_access_is_told_once_and_nothing_runs(world: World, role: str) -> None:
    world.github.user("bob")
    world.repo.grant("bob", role)
    world.repo.private = False
    async with world.bot():
        world.say("/claude fix this", by="bob")
        [told] = await world.github.changed(world.replies, 20)
        assert "write access" in told.body
        again = [world.say(words, by="bob") for words in ("/claude fix this please", "/claude help")]
        await world.github.changed(lambda: [[one.content for one in said.reactions] for said in again] == SEEN, 20)
        world.say("/claude status", by="alice")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
    assert not world.model.requests
    assert "write access" not in world.replies()[1].body


async def test_a_refusal_that_github_lost_is_said_again(world: World) -> None:
    from bot.simulation.github import Fault

    world.github.user("bob")
    world.repo.grant("bob", "read")
    world.github.faults.add(Fault("POST /repos/*/issues/*/comments", "fail", status=502, times=3))
    async with world.bot():
        world.say("/claude fix this", by="bob")
        [told] = await world.github.changed(world.replies, 20)
    assert "write access" in told.body


@pytest.mark.acceptance("B12")
@pytest.mark.acceptance("B02")
async def test_bots_and_our_own_words_are_not_obeyed(world: World) -> None:
    bot = world.github.user("helper[bot]")
    bot.type = "Bot"
    world.repo.grant("helper[bot]", "write")
    async with world.bot():
        world.say("/claude fix this", by="helper[bot]")
        world.github.comment(world.issue, "/claude fix this", by=world.app.bot)
        await _until_status_is_answered(world, already=1)
    assert not world.model.requests


@pytest.mark.acceptance("B05")
@pytest.mark.parametrize(
    "body",
    [
        "> /claude fix this",
        "```\n/claude fix this\n```",
        "<!-- /claude fix this -->",
        "<!-- unclosed\n/claude fix this",
        "use /claude fix this",
        "／claude fix this",
        "/cl\u200baude fix this",
        "/claudette fix this",
        "    /claude fix this",
        "`/claude fix this`",
    ],
)
async def test_what_only_looks_like_a_command_starts_nothing(world: World, body: str) -> None:
    async with world.bot():
        world.say(body)
        await _until_status_is_answered(world)
    assert not world.model.requests


@pytest.mark.acceptance("B06")
async def test_an_edited_comment_starts_nothing(world: World) -> None:
    async with world.bot():
        comment = world.say("hello")
        world.github.edit_comment(comment, "/claude fix this", by="alice")
        await _until_status_is_answered(world)
    assert not world.model.requests


@pytest.mark.acceptance("B03")
@pytest.mark.parametrize("status", [403, 404])
async def test_nobody_is_let_in_on_a_guess(world: World, status: int) -> None:
    from bot.simulation.github import Fault

    async with world.bot():
        world.github.faults.add(Fault("GET /repos/*/collaborators/alice/permission", "fail", status=status, times=1))
        world.say("/claude fix this")
        [told] = await world.github.changed(world.replies, 20)
    assert "could not verify" in told.body
    assert f"it answered {status}" in told.body and "did not answer" not in told.body
    assert not world.model.requests


@pytest.mark.parametrize("kind", ["fail", "reset"])
async def test_a_command_waits_while_github_does_not_answer_what_its_author_may_do(
    world: World, kind: Literal["fail", "reset"]
) -> None:
    from bot.simulation.github import Fault

    fault = Fault("GET /repos/*/collaborators/alice/permission", kind, status=503, times=3)
    world.github.faults.add(fault)
    async with world.bot():
        await _until_status_is_answered(world)
    assert fault.hits == 3 and len(world.replies()) == 1


@pytest.mark.acceptance("C04")
@pytest.mark.parametrize(
    "call", ["GET /app", "GET /users/*", "GET /repos/*/collaborators/*", "POST /app/installations/*"]
)
async def test_what_is_said_while_github_does_not_know_us_is_taken_up_when_it_does(world: World, call: str) -> None:
    """A token that is seconds old may not be known everywhere at GitHub: that is a wait, and no refusal."""
    from bot.simulation.github import Fault

    world.github.faults.add(Fault(call, "fail", status=401, times=5))
    async with world.bot():
        world.say("/claude status")
        await _until_status_is_answered(world)


async def test_commands_that_have_no_place_say_so_and_misspellings_are_helped(world: World) -> None:
    async with world.bot():
        world.say("/claude resolve")
        await world.github.changed(lambda: len(world.replies()) == 1, 20)
        world.say("/claude stpo")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
        world.say("/claude help")
        await world.github.changed(lambda: len(world.replies()) == 3, 20)
    resolve, misspelt, help_ = (one.body for one in world.replies())
    assert "is for pull requests" in resolve
    assert "`/claude stop`" in misspelt
    assert "| `/claude ask …` |" in help_
    assert not world.model.requests


async def test_a_repository_config_that_cannot_be_read_is_explained_with_its_line(world: World) -> None:
    world.github.commit(
        world.repo, "main", {".github/forgehand.yml": "checks:\n  - x\nmodle: opus\n"}, by="alice", message="Config"
    )
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "failed"
    assert "line 3" in world.replies()[0].body and "modle" in world.replies()[0].body
    assert not world.model.requests


async def _until_status_is_answered(world: World, *, already: int = 0) -> None:
    """Deliveries of a thread are taken in order: once the later one is answered, the earlier ones were judged."""
    world.model.default(Script([Say("Nothing.")]))
    asked = world.say("/claude status")
    await world.github.changed(lambda: bool(asked.reactions), 20)
    assert len(world.replies()) == already + 1 and "Nothing is running" in world.replies()[-1].body
