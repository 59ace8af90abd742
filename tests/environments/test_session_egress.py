"""The hosts that a repository's config names are open to its own sessions, and to nobody else's."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.simulation.anthropic import Call, Say, Script
from sandbox.local.folders import EnvironmentsFolder
from tests.world import World, ways_out
from tests.world.e2b import e2b_spine

CONFIG = ".github/forgehand.yml"
ASK = ways_out.asking("files.example.invalid", "deep.mirror.invalid", "other.example.invalid", "github.com")
LISTED = "502"
"""It was let through, and the name was asked for, which does not exist."""


def heard(world: World) -> str:
    return str([request.tool_results for request in world.model.requests])


async def test_a_host_of_the_config_is_reached_by_sessions_of_that_repository_only(world: World) -> None:
    world.model.default(Script([Call("Bash", {"command": ASK}), Say("Asked.")]))
    world.github.commit(world.repo, "main", {CONFIG: "egress: [files.example.invalid, '*.mirror.invalid']\n"})
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "no_change", world.replies()[0].body
        told = heard(world)
        assert f"files.example.invalid {LISTED}" in told
        assert f"deep.mirror.invalid {LISTED}" in told
        assert "other.example.invalid 403" in told
        assert "github.com 403" in told
        world.github.commit(world.repo, "main", {CONFIG: "draft: true\n"})
        world.model.requests.clear()
        world.say("/claude look once more")
        assert await world.outcome(2) == "no_change", world.replies()[1].body
        assert "files.example.invalid 403" in heard(world), "and not once the config does not name it"
    ways = EnvironmentsFolder(world.root / "data" / "environments").ways
    assert not await asyncio.to_thread(lambda: list(ways.glob("*/*"))), "nobody listens any more"


async def test_a_host_that_is_never_open_is_refused_with_a_sentence(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "egress: [api.github.com]\n"})
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "failed"
    assert "`egress` must not name github.com" in world.replies()[0].body


async def test_nor_may_it_name_the_services_that_the_operator_has_made_ours(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, E2B_DOMAIN="cloud.example.invalid") as (world, e2b):
        world.github.commit(world.repo, "main", {CONFIG: "egress: ['*.cloud.example.invalid']\n"})
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "failed"
        assert "`egress` must not name cloud.example.invalid" in world.replies()[0].body
        assert not e2b.sandboxes
