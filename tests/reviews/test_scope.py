"""What a repository wants reviewed: threshold, ignored paths, instructions by path, and silence when nothing is new."""

from __future__ import annotations

from bot.simulation.anthropic import ModelRequest, Script
from bot.simulation.anthropic.script import Answer
from tests.reviews.test_reviews import CODE, ELSEWHERE, SPAN, ZERO, config, ours, prompts, pull_of, reviewer, verdict
from tests.world import World


async def test_milder_findings_than_the_threshold_are_counted_and_not_posted(world: World) -> None:
    config(world, "review:\n  threshold: major\n")
    world.model.default(reviewer(verdict(SPAN, ELSEWHERE, ZERO)))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[0].body
    [review], live = ours(world, pull), world.replies(pull)[0].body
    assert [one.line for one in review.comments] == [2] and "Nobody calls this" not in review.body
    assert "**1 critical**" in review.body
    assert "2 findings are milder than `major` and only counted (`review.threshold`)." in review.body
    assert "2 findings are milder than `major`" in live and "(1 critical)" in live
    assert "Milder findings than major are not posted" in prompts(world)[0].system


async def test_a_review_with_nothing_above_the_threshold_blocks_no_merge(world: World) -> None:
    config(world, "review:\n  threshold: major\n")
    world.model.default(reviewer(verdict(SPAN)))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[0].body
    assert [one.state for one in ours(world, pull)] == ["COMMENTED"]


async def test_ignored_paths_are_neither_read_nor_reported(world: World) -> None:
    config(
        world,
        "review:\n  ignore: [generated/**]\n"
        "paths:\n  '*.py': {review: Mind the zeros.}\n  docs/**: {review: Mind the tone.}\n",
    )
    planted = {**ZERO, "path": "generated/calc.py"}
    world.model.default(reviewer(verdict(planted, ZERO)))
    async with world.bot():
        pull = pull_of(world, {"calc.py": CODE, "generated/calc.py": f"# made\n{CODE}"})
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[0].body
    [review], asked = ours(world, pull), prompts(world)[0]
    assert [one.path for one in review.comments] == ["calc.py"]
    assert "1 finding is in paths that `review.ignore` leaves out." in review.body
    assert "+    return n / 0" in asked.prompt and "+# made" not in asked.prompt
    assert "files that `review.ignore` names: generated/calc.py" in asked.prompt
    assert "For `*.py`: Mind the zeros." in asked.system and "Mind the tone" not in asked.system


async def test_a_pull_request_of_ignored_paths_alone_asks_no_model(world: World) -> None:
    config(world, "review:\n  ignore: [generated/**]\n")
    async with world.bot():
        pull = pull_of(world, {"generated/calc.py": CODE})
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull) == "no_change", world.replies(pull)[0].body
    assert "wants no review of any file" in world.replies(pull)[0].body and not world.model.requests


async def test_what_the_config_says_is_no_bug_is_not_reported(world: World) -> None:
    config(world, "review:\n  dismissed:\n    '*.py':\n      - divides by zero\n      - Nobody calls\n")
    world.model.default(reviewer(verdict(ZERO, SPAN, ELSEWHERE)))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[0].body
    [review] = ours(world, pull)
    assert [one.line for one in review.comments] == [6] and "Nobody calls this" not in review.body
    assert "2 findings are left out because people said before" in review.body
    assert "This is intended in `*.py`, so do not report it: divides by zero" in prompts(world)[0].system


async def test_a_review_that_nobody_asked_for_in_words_is_silent_when_there_is_nothing(world: World) -> None:
    config(world, "triggers:\n  review_opened: true\n")
    world.model.default(reviewer(verdict(words="comment")))
    async with world.bot():
        pull = pull_of(world)
        assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[0].body
        assert not ours(world, pull) and "I have nothing new to say" in world.replies(pull)[0].body
        assert "It does not work yet." in world.replies(pull)[0].body, "the agent's summary stands nowhere else"
        world.say("/claude review", on=pull)
        assert await world.outcome(2, on=pull) == "reviewed", world.replies(pull)[-1].body
    assert len(ours(world, pull)) == 1, "a person gets an answer"


async def test_a_silent_review_resolves_what_a_push_has_fixed_and_lets_the_merge_go_on(world: World) -> None:
    def review(request: ModelRequest) -> Answer:
        return verdict(words="comment") if "which are still open" in request.prompt else verdict(ZERO)

    world.model.default(Script([review, review, review]))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[0].body
        world.github.commit(world.repo, "feature", {"calc.py": CODE.replace("n / 0", "n / 2")}, by="alice")
        assert await world.outcome(2, on=pull) == "reviewed", world.replies(pull)[-1].body
    [first] = ours(world, pull)
    assert first.state == "DISMISSED" and first.comments[0].resolved_by is world.app.bot
    assert "1 earlier finding resolved." in world.replies(pull)[-1].body
