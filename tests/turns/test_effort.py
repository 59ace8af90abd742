"""How hard the model thinks: a person says it, else the repository, else the kind of turn."""

from __future__ import annotations

import pytest

from bot.simulation.anthropic import Say, Script
from tests.world import CONFIG, World


def efforts(world: World) -> set[str | None]:
    return {(one.body.get("output_config") or {}).get("effort") for one in world.model.requests}


@pytest.mark.parametrize(
    ("config", "words", "effort"),
    [
        ("", "/claude ask why?", "medium"),
        ("", "/claude ask why? --effort low", "low"),
        ("effort: low", "/claude ask why?", "low"),
        ("effort: low", "/claude ask why --effort MAX", "max"),
        ("", "/claude plan a rewrite", "high"),
        ("effort: medium", "/claude plan a rewrite", "medium"),
    ],
)
async def test_effort_reaches_the_model(world: World, config: str, words: str, effort: str) -> None:
    world.model.default(Script([Say("Because.")]))
    if config:
        world.github.commit(world.repo, "main", {CONFIG: config})
    async with world.bot():
        world.say(words)
        await world.outcome()
    assert efforts(world) == {effort}


async def test_an_unknown_effort_costs_nothing(world: World) -> None:
    async with world.bot():
        world.say("/claude fix this --effort huge")
        await world.github.changed(lambda: len(world.replies()) == 1, 30)
    assert "`--effort` takes low, medium, high, xhigh or max, not `huge`" in world.replies()[0].body
    assert world.model.requests == []


async def test_a_model_without_effort_is_asked_without_it(world: World) -> None:
    world.model.default(Script([Say("Because.")]))
    async with world.bot():
        world.say("/claude plan a rewrite --model claude-haiku-4-5")
        assert await world.outcome() == "planned"
    assert efforts(world) == {None}


async def test_a_short_name_of_a_model_works(world: World) -> None:
    world.model.default(Script([Say("Because.")]))
    async with world.bot():
        world.say("/claude ask why --model haiku")
        assert await world.outcome() == "answered"
    assert {one.body["model"] for one in world.model.requests} == {"claude-haiku-5-5"}
