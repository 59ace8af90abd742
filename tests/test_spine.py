"""From a signed webhook to a draft pull request, over the wire."""

from __future__ import annotations

from tests.world import World


async def test_a_comment_becomes_a_draft_pull_request(world: World) -> None:
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
