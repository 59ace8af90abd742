"""Pull requests for tests: one with work under way, pushes whose answer is lost, protected branches."""

from __future__ import annotations

from collections.abc import Callable

from bot.simulation import faults
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import Fault
from bot.simulation.github.gitstore import git
from bot.simulation.github.threads import Pull
from tests.world import World

CONFIG = ".github/forgehand.yml"
WORKFLOW = ".github/workflows/ci.yml"
WRITE = f"mkdir -p .github/workflows && echo 'on: push' > {WORKFLOW} && echo x > other.txt"


def does(command: str, words: str = "Done.") -> Script:
    return Script([Call("Bash", {"command": command, "description": "Write"}), Say(words)])


def write(name: str, words: str, *, held: str | None = None) -> Script:
    """Change a file, then wait at `held` before the end."""
    steps = [Call("Bash", {"command": f"printf '{words}\\n' > {name}", "description": "Write"})]
    return Script([*steps, *([Wait(held)] if held else []), Say(f"Wrote {name}.")])


def pull_of(world: World, files: dict[str, str] | None = None, *, by: str = "alice") -> Pull:
    world.github.commit(world.repo, "feature", files or {"calc.py": "a = 1\n"}, by=by)
    return world.github.open_pull(world.repo, head="feature", by=by, title="A feature")


async def begun(world: World, name: str = "new.txt", words: str = "one") -> Pull:
    """Open a pull request on which the agent has written a file and waits at `work`."""
    world.model.default(write(name, words, held="work"))
    pull = pull_of(world)
    world.say("/claude write it", on=pull)
    await world.model.reached("work", timeout=60)
    return pull


def permit(world: World) -> None:
    """Grant the permission for workflows: the App's owner asks for it, and the account's owner accepts."""
    world.app.permissions["workflows"] = world.installation.permissions["workflows"] = "write"


def forbid(world: World) -> None:
    for permissions in (world.app.permissions, world.installation.permissions):
        permissions.pop("workflows")


def cut_off_after_the_push(world: World, meanwhile: Callable[[], object]) -> None:
    """Lose the answer of the next push, and refuse to list refs until the step begins again."""

    def struck(_: faults.Call) -> None:
        if lost.hits == 1:
            meanwhile()
            world.github.faults.add(Fault("GET */info/refs*", "fail", status=503, times=1))

    # Git's own second try is the second hit.
    lost = world.github.faults.add(Fault("POST */git-receive-pack", "lose", times=2, on_hit=struck))


def loses_the_push(world: World) -> Fault:
    """Lose the answer of the next push, and push on top of it at once."""

    def pushed_since(_: faults.Call) -> None:
        if lost.hits == 1:
            world.github.commit(world.repo, "feature", {"later.txt": "3\n"}, by="alice")

    # Git's own second try is the second hit.
    lost = Fault("POST */git-receive-pack", "lose", times=2, on_hit=pushed_since)
    return world.github.faults.add(lost)


def parents(world: World, sha: str) -> list[str]:
    return git(world.repo.path, "show", "-s", "--format=%P", sha).decode().split()


def live(world: World, pull: Pull) -> str:
    return world.replies(pull)[-1].body
