"""What asks for a review without a command, and that many pushes are one review."""

from __future__ import annotations

import json
import time

import pytest

from bot.simulation.anthropic import ModelRequest, Script, Wait
from bot.simulation.anthropic.script import Answer
from bot.simulation.github.threads import Issue, Pull
from tests.reviews.test_reviews import CODE, ZERO, config, ours, pull_of, verdict
from tests.world import World


async def why(world: World, on: Issue | Pull, words: str) -> None:
    """`why` says these words of what was not acted on."""
    await world.github.idle()

    def answers() -> list[str]:
        return [one.body for one in world.replies(on) if "acted on" in one.body or "not act on" in one.body]

    asked = world.say("/claude why", on=on)
    await world.github.changed(lambda: bool(asked.reactions), 20)
    assert words in answers()[-1], answers()[-1]


@pytest.mark.parametrize("how", ["team", "user", "label", "opened", "ready"])
async def test_a_review_begins_where_the_repository_says_so(world: World, how: str) -> None:
    world.github.user("claude-reviews")
    world.repo.grant("claude-reviews", "read")
    setting = {
        "team": "  review_team: octo-org/claude-review\n",
        "user": "  review_user: claude-reviews\n",
        "label": "  review_label: true\n",
        "opened": "  review_opened: true\n",
        "ready": "  review_opened: true\n",
    }[how]
    config(world, f"triggers:\n{setting}")
    world.model.default(Script([verdict(ZERO)]))
    async with world.bot():
        world.github.commit(world.repo, "feature", {"calc.py": CODE}, by="alice")
        draft = how == "ready"
        pull = world.github.open_pull(world.repo, head="feature", by="alice", title="Halves", draft=draft)
        if how == "team":
            world.github.request_team_review(pull, "Claude-Review", by="alice")
        elif how == "user":
            world.github.request_review(pull, "claude-reviews", by="alice")
        elif how == "label":
            world.github.label(pull, "claude-review", by="alice")
        elif how == "ready":
            await why(world, pull, "It is a draft")
            world.github.ready(pull, by="alice")
        assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[-1].body
    assert len(ours(world, pull)) == 1


async def test_nothing_of_that_begins_a_review_by_itself_or_by_people_without_write_access(world: World) -> None:
    world.github.user("claude-reviews")
    world.repo.grant("claude-reviews", "read")
    world.github.user("eve")
    world.repo.grant("eve", "triage")
    async with world.bot():
        pull = pull_of(world)
        world.github.request_team_review(pull, "claude-review", by="alice")
        world.github.request_review(pull, "claude-reviews", by="alice")
        await why(world, pull, "Somebody else was asked for the review")
        world.github.label(pull, "claude-review", by="alice")
        world.github.commit(world.repo, "feature", {"calc.py": CODE + "\n"}, by="alice")
        await why(world, pull, "Nobody asked for a review of this pull request")
        config(world, "triggers:\n  review_team: claude-review\n")
        world.github.request_team_review(pull, "claude-review", by="eve")
        await why(world, pull, "it takes write access")
    assert not world.states(pull) and not world.model.requests


@pytest.mark.acceptance("B07")
async def test_fifteen_pushes_to_a_pull_request_under_review_are_one_review(world: World) -> None:
    def review(request: ModelRequest) -> Answer:
        return verdict(ZERO)

    world.model.default(Script([Wait("go"), review, review, review]))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        await world.model.reached("go", 40)
        for n in range(15):
            world.github.commit(world.repo, "feature", {"calc.py": f"{CODE}\n# {n}\n"}, by="alice")
        await world.github.idle()
        await why(world, pull, "The review that is already waiting will read these commits too")
        world.model.release("go")
        assert await world.outcome(1, on=pull) == "stopped", world.replies(pull)[0].body
        assert await world.outcome(2, on=pull) == "reviewed", world.replies(pull)[-1].body
        await world.github.idle()
    [review_] = ours(world, pull)
    assert review_.commit_id == pull.head_sha and [one.line for one in review_.comments] == [2]
    assert len(world.states(pull)) == 2 and "while I was reading" in world.replies(pull)[0].body


async def test_a_push_after_a_review_is_reviewed_and_says_only_what_is_new(world: World) -> None:
    def review(request: ModelRequest) -> Answer:
        return verdict(ZERO)

    world.model.default(Script([review, review, review, review]))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        assert await world.outcome(1, on=pull) == "reviewed", world.replies(pull)[0].body
        world.github.commit(world.repo, "feature", {"calc.py": f"# halves\n{CODE}"}, by="alice")
        assert await world.outcome(2, on=pull) == "reviewed", world.replies(pull)[-1].body
        assert len(ours(world, pull)) == 1 and "I have nothing new to say" in world.replies(pull)[-1].body
        world.github.user("eve")
        world.github.commit(world.repo, "feature", {"calc.py": "x = 1\n"}, by="eve")
        await why(world, pull, "it takes write access")
    assert len(world.states(pull)) == 2


class Clock:
    """The time, and what a test adds to it."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


async def test_a_burst_of_pushes_after_a_review_is_read_once_it_has_settled(world: World) -> None:
    def review(request: ModelRequest) -> Answer:
        return verdict(ZERO)

    world.model.default(Script([], after=review))
    clock = Clock()
    async with world.bot(clock, FORGEHAND_SETTLE_SECONDS="15"):
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        assert await world.outcome(1, on=pull) == "reviewed", "which a person has asked for, and so waited for nothing"
        for n in range(3):
            world.github.commit(world.repo, "feature", {"calc.py": f"{CODE}\n# {n}\n"}, by="alice")
            await world.github.idle()
        await why(world, pull, "The review that is already waiting will read these commits too")
        clock.ahead += 15
        assert await world.outcome(2, on=pull) == "reviewed", world.replies(pull)[-1].body
        await world.github.idle()
    assert len(world.states(pull)) == 2, "none was begun at the first push, and none for the third"


async def test_fifteen_pushes_after_a_finished_review_are_one_further_review(world: World) -> None:
    world.model.default(Script([verdict(ZERO)]))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        assert await world.outcome(1, on=pull) == "reviewed", world.replies(pull)[0].body
        world.model.default(Script([Wait("go"), verdict({**ZERO, "line": 1, "body": "A word is missing here."})]))
        for n in range(15):
            world.github.commit(world.repo, "feature", {"calc.py": f"{CODE}\n# {n}\n"}, by="alice")
            if not n:
                await world.model.reached("go", 40)
        await world.github.idle()
        world.model.release("go")
        assert await world.outcome(2, on=pull) == "stopped", world.replies(pull)[1].body
        assert await world.outcome(3, on=pull) == "reviewed", world.replies(pull)[-1].body
        await world.github.idle()
        seventh = [one for one in world.app.deliveries if one.action == "synchronize"][7]
        await world.deliver(world.github.webhook(world.app, "pull_request", json.loads(seventh.body)))
        await why(world, pull, "Its last review reads the newest commit already")
    first, second = ours(world, pull)
    assert first.commit_id != second.commit_id == pull.head_sha
    assert len(world.states(pull)) == 3, "two turns for fifteen pushes"
