"""Titles, commits and bodies that a maintainer would have written, over the wire."""

from __future__ import annotations

import re

import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.anthropic.script import Step
from bot.simulation.github import gitstore
from bot.simulation.scenarios import discount
from tests.world import World

EDIT = Call("Bash", {"command": "printf 'x = 1\\n' > extra.py", "description": "Write"})
SAID = "Title: Treat the discount as a percentage\n\n`total()` subtracted the percentage as euros."


async def opened(world: World, *steps: Step, words: str = "fix this") -> None:
    world.model.default(Script([EDIT, *steps]))
    async with world.bot(FORGEHAND_PUBLIC_URL="https://bot.example.org"):
        world.say(f"/claude {words}")
        assert await world.outcome() == "pull_request", world.replies()[0].body


async def test_the_agents_title_is_that_of_the_pull_request_and_of_its_commit(world: World) -> None:
    await opened(world, Say(SAID))
    [pull] = world.pulls()
    assert pull.title == "Treat the discount as a percentage"
    message = gitstore.git(world.repo.path, "log", "-1", "--format=%B", pull.head_sha).decode()
    assert message.startswith("Treat the discount as a percentage\n\n`total()` subtracted the percentage as euros.\n\n")
    assert f"For #{world.issue.number}." in message
    [live] = world.replies()
    assert "Title:" not in live.body and "Title:" not in str(pull.body)


@pytest.mark.parametrize("said", ["Title: Done\n\nIt works.", "I've fixed it. Done!", "Title: Ask @bob first?\n\nSo."])
async def test_chatter_gives_way_to_the_issues_title(world: World, said: str) -> None:
    await opened(world, Say(said), words="Wendy is right, see above. Can you take care of this?")
    [pull] = world.pulls()
    assert pull.title == f'Resolve "{discount.ISSUE_TITLE}"'


async def test_an_issues_title_that_was_changed_since_is_not_used(world: World) -> None:
    world.model.default(Script([EDIT, Say("Done.")]))
    async with world.bot():
        world.app.hook_active = False
        asked = world.say("/claude fix this")
        hook = world.github.comment_webhook(asked)
        world.github.edit(world.issue, title="Buy cheap pills", by="alice")
        world.app.hook_active = True
        await world.deliver(hook)
        assert await world.outcome() == "pull_request"
    assert [pull.title for pull in world.pulls()] == [f"Changes for #{world.issue.number}"]


async def test_the_body_leads_to_the_comment_the_session_and_the_calls_that_proved_it(world: World) -> None:
    async with world.bot(FORGEHAND_PUBLIC_URL="https://bot.example.org"):
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    [pull], [live] = world.pulls(), world.replies()
    body = str(pull.body)
    page = f"https://bot.example.org/sessions/{world.states()[0]['session']}"
    issue = f"{world.github.url}/{world.repo.full_name}/issues/{world.issue.number}"
    assert f"[live comment]({issue}#issuecomment-{live.id})" in body
    assert f"[session]({page})" in body
    assert re.search(
        rf"`{re.escape(discount.CHECK)}` \[failed\]\({re.escape(page)}\?at=(e\d+-\d+)#\1\) at first and "
        rf"\[passed\]\({re.escape(page)}\?at=(e\d+-\d+)#\2\) in the end\.",
        body,
    ), body
