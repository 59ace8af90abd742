"""What may become of a pull request while it is reviewed, and one that is too large to be read whole."""

from __future__ import annotations

import pytest

from bot.simulation.anthropic import Script, Wait
from bot.simulation.github import gitstore
from tests.reviews.test_reviews import CODE, SPAN, ZERO, config, ours, prompts, pull_of, verdict
from tests.world import World


@pytest.mark.acceptance("B08")
async def test_a_pull_request_that_is_retargeted_meanwhile_is_told_what_was_compared_and_never_approved(
    world: World,
) -> None:
    config(world, "review:\n  approve: true\n")
    world.model.default(Script([Wait("go"), verdict(SPAN, words="approve")]))
    async with world.bot():
        pull = pull_of(world)
        world.github.commit(world.repo, "other", {"calc.py": CODE.replace("twice", "double")}, by="alice")
        world.say("/claude review", on=pull)
        await world.model.reached("go", 40)
        pull.base, pull.base_sha = "other", str(world.repo.branch_sha("other"))
        world.github.state.touch()
        world.model.release("go")
        assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[0].body
    [review] = ours(world, pull)
    assert review.state == "COMMENTED" and "Approving is left to people" in review.body
    assert "against `main`" in review.body and "Its base is now `other`" in review.body


@pytest.mark.acceptance("B07")
async def test_a_head_that_has_vanished_is_a_clear_end(world: World) -> None:
    async with world.bot():
        pull = pull_of(world)
        gitstore.set_ref(world.repo.path, f"refs/pull/{pull.number}/head", None)
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull) == "failed", world.replies(pull)[0].body
    assert f"no longer has the commits of the pull request #{pull.number}" in world.replies(pull)[0].body
    assert not world.model.requests and not ours(world, pull)


@pytest.mark.slow
async def test_of_three_thousand_files_those_that_were_not_read_are_named_and_counted(world: World) -> None:
    config(world, "review:\n  approve: true\n")
    line = "x = '" + "y" * 300 + "'\n"
    files = {f"src/part{n:04}.py": line * 2 for n in range(3000)}
    world.model.default(Script([verdict({**ZERO, "path": "src/part0000.py", "line": 1}, words="approve")]))
    async with world.bot():
        pull = pull_of(world, files)
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull, timeout=180) == "reviewed", world.replies(pull)[0].body
    [review] = ours(world, pull)
    assert review.state == "COMMENTED", "what was not read is not approved"
    assert "what the pull request changes in src/part" in review.body and "more files" in review.body
    assert len(prompts(world)[0].prompt) < 200_000 and len(review.body) < 20_000
