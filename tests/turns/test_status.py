"""`status` says how a thread stands: what runs, what waits behind it or in the line, and for whose word."""

from __future__ import annotations

from bot.simulation.anthropic import Say, Script, Wait
from tests.world import World


async def status(world: World, words: str) -> str:
    """The answer, which is to hold these words."""

    def answer() -> str | None:
        found = [one.body for one in world.replies() if "forgehand:answer=status" in one.body and words in one.body]
        return found[-1] if found else None

    world.say("/claude status")
    return await world.github.changed(answer, 20)


async def test_it_tells_what_runs_and_what_waits_behind_it_and_for_whom(world: World) -> None:
    world.model.default(Script([Wait("on"), Say("1. Clamp it.")]))
    elsewhere = world.github.open_issue(world.repo, title="Other", body="x", by="alice")
    async with world.bot(FORGEHAND_MAX_SESSIONS="1"):
        world.say("/claude ask what is that?", on=elsewhere)
        await world.model.reached("on", timeout=60)
        world.say("/claude plan mending it")
        said = await status(world, "Queued for")
        assert "It is 1st in line. It waits for a free slot: 1 turn is running." in said
        world.say("/claude and more --queue", on=elsewhere)
        world.say("/claude status", on=elsewhere)
        found = await world.github.changed(
            lambda: next((one.body for one in world.replies(elsewhere) if "Running for" in one.body), None), 20
        )
        assert "One more turn is queued behind it." in found
        world.model.release("on")
        assert await world.outcome() == "planned", world.replies()[0].body
        said = await status(world, "Nothing is running")
        plan = f"{world.states()[0]['session']}-1"
        assert "The plan waits for your approval" in said and f"`/claude approve {plan}`" in said
        assert "The session has spent $0.0" in said
        world.say("/claude deny")
        await world.github.changed(lambda: "turned down" in world.replies()[0].body, 20)
        said = await status(world, "A plan, turned down**. The session")
        assert "approve" not in said
