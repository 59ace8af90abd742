"""A turn whose agent has written half of its work and waits until somebody ends it, and the saved work."""

from __future__ import annotations

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.gitstore import refs
from tests.world import World

WRITE = Call("Bash", {"command": "echo half > half.txt", "description": "Write half of it"})
AT_WORK = Script([WRITE, Wait("never"), Say("unreachable")])


async def begun(world: World, words: str = "/claude fix this") -> None:
    world.model.default(AT_WORK)
    world.say(words)
    await world.model.reached("never", timeout=60)


def rescued(world: World) -> dict[str, str]:
    return refs(world.repo.path, "refs/forgehand/")
