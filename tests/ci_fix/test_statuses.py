"""Commit statuses beside check runs: the older way in which CI systems report is looked after like the newer one."""

from __future__ import annotations

from tests.reviews.test_reviews import prompts
from tests.world import World
from tests.world.ci import FastClock, open_our_pull, said, wait_for_webhooks, wait_until_unwatched

SAYS = ("2 of 40 suites failed", "https://jenkins.example/job/7")


async def test_red_statuses_are_mended_like_checks_and_those_of_the_base_are_left_alone(world: World) -> None:
    """At first the App may not read them, and says so; then one is waited for, and all that is red is read."""
    world.installation.permissions.pop("statuses")
    async with world.bot(FastClock()):
        pull = await open_our_pull(world)
        world.github.status(world.repo, pull.head_sha, "ci/jenkins", "error", by="jenkins", says=SAYS)
        world.say("/claude fix ci", on=pull)
        await said(world, pull, "Not looked at: commit statuses")

        world.installation.permissions["statuses"] = "read"
        world.github.status(world.repo, pull.base_sha, "ci/lint", "failure", by="jenkins")
        for context, state in (("ci/lint", "failure"), ("ci/old", "success"), ("ci/slow", "pending")):
            world.github.status(world.repo, pull.head_sha, context, state, by="jenkins")
        world.say("/claude fix ci", on=pull)
        await said(world, pull, "still running")
        assert world.states(pull) == []
        world.github.status(world.repo, pull.head_sha, "ci/slow", "success", by="jenkins")
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
        await wait_until_unwatched(world)
        world.github.status(world.repo, pull.head_sha, "ci/jenkins", "failure", by="jenkins")
        await wait_for_webhooks(world, "noted: the checks of this commit are looked at", event="status")
    asked = prompts(world)[-1].prompt
    assert "what the check ci/jenkins says" in asked and "ci/jenkins (commit status): failure" in asked
    assert all(one in asked for one in SAYS)
    assert "what the check ci/lint says" not in asked and "red on the base too" in asked
    assert "ci/old" not in asked and "ci/slow" not in asked
