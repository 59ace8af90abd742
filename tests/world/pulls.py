"""What tests of work on pull requests share: one with work under way, a push whose answer is lost, a branch's state."""

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
    """Changes a file, then waits at `held` before it ends."""
    steps = [Call("Bash", {"command": f"printf '{words}\\n' > {name}", "description": "Write"})]
    return Script([*steps, *([Wait(held)] if held else []), Say(f"Wrote {name}.")])


def pull_of(world: World, files: dict[str, str] | None = None, *, by: str = "alice") -> Pull:
    world.github.commit(world.repo, "feature", files or {"calc.py": "a = 1\n"}, by=by)
    return world.github.open_pull(world.repo, head="feature", by=by, title="A feature")


async def begun(world: World, name: str = "new.txt", words: str = "one") -> Pull:
    """A pull request on which the agent has written a file, and waits at `work`."""
    world.model.default(write(name, words, held="work"))
    pull = pull_of(world)
    world.say("/claude write it", on=pull)
    await world.model.reached("work", timeout=60)
    return pull


def permit(world: World) -> None:
    """As its owner does at GitHub, and the account's owner accepts."""
    world.app.permissions["workflows"] = world.installation.permissions["workflows"] = "write"


def forbid(world: World) -> None:
    for permissions in (world.app.permissions, world.installation.permissions):
        permissions.pop("workflows")


def cut_off_after_the_push(world: World, meanwhile: Callable[[], object]) -> None:
    """The next push arrives; nothing more is heard of it, nor can it be looked for, until the step is begun anew."""

    def struck(_: faults.Call) -> None:
        if lost.hits == 1:
            meanwhile()
            world.github.faults.add(Fault("GET */info/refs*", "fail", status=503, times=1))

    # git's own second try is the second to strike.
    lost = world.github.faults.add(Fault("POST */git-receive-pack", "lose", times=2, on_hit=struck))


def loses_the_push(world: World) -> Fault:
    """The next push arrives and its answer does not; somebody pushes on top of it at once."""

    def pushed_since(_: faults.Call) -> None:
        if lost.hits == 1:
            world.github.commit(world.repo, "feature", {"later.txt": "3\n"}, by="alice")

    # git's own second try is the second to strike.
    lost = Fault("POST */git-receive-pack", "lose", times=2, on_hit=pushed_since)
    return world.github.faults.add(lost)


def parents(world: World, sha: str) -> list[str]:
    return git(world.repo.path, "show", "-s", "--format=%P", sha).decode().split()


def live(world: World, pull: Pull) -> str:
    return world.replies(pull)[-1].body
