"""One answer of each kind on a thread, kept up to date."""

from __future__ import annotations

import re

from tests.world import World
from tests.world.pulls import write


async def test_a_second_question_brings_the_first_answer_up_to_date(world: World) -> None:
    world.model.default(write("new.txt", "one"))
    async with world.bot(FORGEHAND_PUBLIC_URL="https://bot.example.org"):
        world.say("/claude status")
        [answer] = await world.github.changed(world.replies, 20)
        assert "Nothing is running" in answer.body
        assert re.search(r"As of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, when `alice` asked\.", answer.body)
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        again = world.say("/claude status")
        await world.github.changed(lambda: [one.content for one in again.reactions] == ["+1"], 20)
    assert len(world.replies()) == 2, "the answer and the live comment"
    [pull] = world.pulls()
    [live] = [one for one in world.replies() if one is not answer]
    page = f"{world.github.url}/{world.repo.full_name}"
    assert "Opened a pull request" in answer.body
    assert f"[live comment]({page}/issues/{world.issue.number}#issuecomment-{live.id})" in answer.body
    assert f"[pull request #{pull.number}]({page}/pull/{pull.number})" in answer.body
    assert "[session](https://bot.example.org/sessions/" in answer.body


async def test_each_kind_has_its_own_and_a_deleted_one_is_made_again(world: World) -> None:
    async with world.bot():
        for word in ("status", "why", "cost", "help", "models"):
            world.say(f"/claude {word}")
        await world.github.changed(lambda: len(world.replies()) == 5, 30)
        world.github.delete_comment(world.replies()[0], by="alice")
        world.say("/claude status")
        await world.github.changed(lambda: len(world.replies()) == 5, 30)
    assert "Nothing is running" in world.replies()[-1].body


async def test_help_says_whether_merging_closes_the_issue(world: World) -> None:
    async with world.bot():
        world.say("/claude help")
        [answer] = await world.github.changed(world.replies, 20)
        assert "Merging a pull request of mine does not close its issue" in answer.body
        world.github.commit(world.repo, "main", {".github/forgehand.yml": "pull:\n  closes: true\n"})
        world.say("/claude help")
        await world.github.changed(lambda: "of mine closes its issue" in answer.body, 20)
    assert len(world.replies()) == 1
