"""Where a command may stand, and what begins a turn without one: reviews, lines of a diff, bodies, labels."""

from __future__ import annotations

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.threads import Issue, Pull
from tests.world import World

WRITE = Call("Bash", {"command": "echo done > done.txt", "description": "Write"})


def pull_of_alice(world: World, body: str = "") -> Pull:
    world.github.commit(world.repo, "feature", {"feature.py": "one = 1\ntwo = 2\n"}, by="alice")
    return world.github.open_pull(world.repo, head="feature", by="alice", title="Feature", body=body)


def config(world: World, text: str) -> None:
    world.github.commit(world.repo, "main", {".github/forgehand.yml": text}, by="alice")


def sent(world: World) -> str:
    return str([one for one in world.model.requests if one.has_tools][-1].body["messages"])


async def noted(world: World, words: str, on: Issue | Pull) -> None:
    """`why` says these words of what was not acted upon."""
    await world.github.idle()
    world.say("/claude why", on=on)
    await world.github.changed(lambda: any("did not act on" in one.body for one in world.replies(on)), 20)
    assert words in world.replies(on)[-1].body


async def test_a_review_asks_for_work_on_the_head_of_the_pull_request(world: World) -> None:
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        pull = pull_of_alice(world)
        world.github.review(pull, "Nearly.\n\n/claude finish it", by="alice", state="CHANGES_REQUESTED")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[0].body
    assert world.repo.file("feature", "done.txt") == b"done\n"
    assert len(world.states(pull)) == 1


async def test_a_line_of_the_diff_gives_its_file_line_and_hunk(world: World) -> None:
    world.model.default(Script([WRITE, Say("Renamed.")]))
    async with world.bot():
        pull = pull_of_alice(world)
        comment = world.github.review_line(pull, ("feature.py", 2), "/claude rename this", by="alice")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[0].body
        await world.github.changed(lambda: bool(comment.reactions), 20)
        words = sent(world)
        await world.github.changed(lambda: len(pull.reviews) == 2, 20)
        done = pull.reviews[-1].comments[0]
        assert done.reply_to is comment and "Pushed to the branch" in done.body and "Renamed." in done.body
        world.github.answer_review(comment, pull, "/claude halp", by="alice")
        await world.github.changed(lambda: sum(len(one.comments) for one in pull.reviews) == 4, 20)
    assert "feature.py" in words and "line 2" in words and "+two = 2" in words and "rename this" in words
    assert [one.content for one in comment.reactions] == ["eyes"]
    reply = pull.reviews[-1].comments[0]
    assert reply.reply_to is comment and "Did you mean `/claude help`" in reply.body


async def test_words_at_a_line_of_the_diff_bring_their_lines_also_to_an_agent_at_work(world: World) -> None:
    world.model.default(Script([WRITE, Wait("on"), WRITE, Say("Renamed.")]))
    async with world.bot():
        pull = pull_of_alice(world)
        world.say("/claude look it through", on=pull)
        await world.model.reached("on", timeout=60)
        comment = world.github.review_line(pull, ("feature.py", 2), "/claude rename this", by="alice")
        await world.github.changed(lambda: "rocket" in [one.content for one in comment.reactions], 30)
        world.model.release("on")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[0].body
    words = sent(world)
    said = words[words.index("says while you work") :]
    assert "rename this" in said and "line 2 of feature.py" in said and "> +two = 2" in said
    assert len(world.states(pull)) == 1


async def test_bodies_of_pull_requests_ask_once_also_when_made_ready(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        pull = pull_of_alice(world, "A change.\n\n/claude look it through")
        assert await world.outcome(on=pull) == "no_change"
        world.github.ready(pull, by="alice")
        await world.github.idle()
    assert len(world.states(pull)) == 1


async def test_a_label_starts_work_where_the_repository_says_so(world: World) -> None:
    config(world, "triggers:\n  label: true\n")
    world.github.user("eve")
    world.repo.grant("eve", "triage")
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.github.label(world.issue, "bug", by="alice")
        world.github.label(world.issue, "Claude", by="alice")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        await world.replay("issues", "labeled")
        await noted(world, "same text was acted upon before", world.issue)
        other = world.github.open_issue(world.repo, title="Other", body="x", by="alice", labels=[])
        world.github.label(other, "claude", by="eve")
        await noted(world, "it takes write access", other)
    assert len(world.states()) == 1 and not world.states(other)


async def test_an_opened_issue_starts_work_where_the_repository_says_so(world: World) -> None:
    config(world, "triggers:\n  issue_opened: true\n")
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        opened = world.github.open_issue(world.repo, title="Wrong sum", body="The sum is wrong.", by="alice")
        assert await world.outcome(on=opened) == "no_change"
        assert "The sum is wrong." in sent(world)
        world.github.user("eve")
        world.repo.grant("eve", "read")
        silent = world.github.open_issue(world.repo, title="Another", body="Do it.", by="eve")
        await noted(world, "it takes write access", silent)
    assert not world.states(silent)


async def test_labels_and_issues_start_nothing_by_themselves(world: World) -> None:
    async with world.bot():
        world.github.label(world.issue, "claude", by="alice")
        await noted(world, "This label starts nothing here", world.issue)
        opened = world.github.open_issue(world.repo, title="New", body="Plain words.", by="alice")
        await world.github.idle()
    assert not world.states() and not world.states(opened)


@pytest.mark.acceptance("B05")
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("/claude fix a\n/claude fix b", "holds 2 commands"),
        ("/claude stauts", "Did you mean `/claude status`"),
        ("/claude aprove", "Did you mean `/claude approve`"),
    ],
)
async def test_what_cannot_be_meant_is_answered_with_a_sentence(world: World, words: str, answer: str) -> None:
    async with world.bot():
        world.say(words)
        await world.github.changed(lambda: bool(world.replies()), 20)
    assert answer in world.replies()[0].body


@pytest.mark.acceptance("B12")
async def test_our_own_review_words_start_nothing(world: World) -> None:
    async with world.bot():
        pull = pull_of_alice(world)
        world.github.review(pull, "/claude fix this", by=world.app.bot)
        world.github.review_line(pull, ("feature.py", 1), "/claude fix this", by=world.app.bot)
        world.say("/claude status", on=pull)
        await world.github.changed(lambda: bool(world.replies(pull)), 20)
    assert len(world.replies(pull)) == 1 and not world.states(pull)


async def test_a_config_that_ends_otherwise_is_named_and_not_passed_over(world: World) -> None:
    world.github.commit(world.repo, "main", {".github/forgehand.yaml": "permission: plan\nbudget: 1\n"}, by="alice")
    async with world.bot():
        world.say("/claude fix this")
        await world.outcome()
        issue = world.github.open_issue(world.repo, title="Broken", body="It is.", by="alice")
        await noted(world, "rename it to `.github/forgehand.yml`", issue)
    assert (
        "Forgehand does not read `.github/forgehand.yaml`: rename it to `.github/forgehand.yml`"
        in world.replies()[0].body
    )
    assert not world.model.requests
