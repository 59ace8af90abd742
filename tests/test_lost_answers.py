"""The answer of any single GitHub call is lost after its effect, or the call fails: the same end, nothing twice."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.github import Fault
from tests.world import World

EVERY = os.environ.get("FORGEHAND_TESTS") == "all"
READS_IN_CI = 5
WORK = Script([Call("Bash", {"command": "echo x > new.txt", "description": "Write"}), Say("Done.")])


async def run(world: World) -> None:
    world.model.default(WORK)
    async with world.bot():
        world.say("/claude add a file")
        assert await world.outcome() == "pull_request", world.replies()[0].body


def whole(world: World) -> None:
    assert len(world.replies()) == 1
    assert len(world.pulls()) == 1
    assert world.repo.branches().keys() == {"main", world.pulls()[0].head}
    assert world.repo.file(world.pulls()[0].head, "new.txt") == b"x\n"
    assert [reaction.content for reaction in world.issue.comments[0].reactions] == ["eyes"]


async def calls_of_a_run(root: Path) -> list[tuple[str, int]]:
    """(pattern, which occurrence) of every call, numbers in paths generalised."""
    async with World.running(root) as world:
        await run(world)
        whole(world)
        seen: Counter[str] = Counter()
        found = []
        for call in world.github.calls:
            pattern = f"{call.method} {re.sub(r'(?<=/)[0-9]+(?=/|$)', '*', call.path)}"
            found.append((pattern, seen[pattern]))
            seen[pattern] += 1
        return found


def chosen(calls: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """All writes; of the reads, in CI, a few."""
    writes = [call for call in calls if not call[0].startswith("GET")]
    reads = [call for call in calls if call[0].startswith("GET")]
    return [*writes, *(reads if EVERY else reads[:: max(1, len(reads) // READS_IN_CI)])]


@pytest.mark.acceptance("C01")
@pytest.mark.acceptance("C02")
@pytest.mark.timeout(3600 if EVERY else 600)
@pytest.mark.parametrize("kind", ["lose", "fail"])
async def test_any_single_call_may_go_wrong(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    calls = await calls_of_a_run(tmp_path / "golden")
    tried = chosen(calls) if kind == "lose" or EVERY else [call for call in chosen(calls) if "POST" in call[0]]
    with capsys.disabled():
        print(f"\ncalls to GitHub in one run: {len(calls)}; {kind} tried here: {len(tried)}")
    for number, (pattern, occurrence) in enumerate(tried):
        async with World.running(tmp_path / str(number)) as world:
            # curl sends a request again by itself when a kept connection dies: the second answer must be lost too.
            times = 2 if ".git/" in pattern and kind == "lose" else 1
            world.github.faults.add(Fault(pattern, kind, status=502, skip=occurrence, times=times))
            try:
                await run(world)
                whole(world)
            except Exception as error:
                raise AssertionError(f"{kind} {pattern} (occurrence {occurrence}): {error}") from error
