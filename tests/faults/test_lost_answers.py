"""The answer of any single GitHub call is lost after its effect, or the call fails: the same end, nothing twice."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.github import Fault
from bot.simulation.github.threads import Issue
from tests.slices import EVERY, MATRIX_SECONDS
from tests.world import World

READS_IN_CI = 2
FAIL_IN_CI = ("POST /repos/*", "POST /*.git/git-receive-pack")
WORK = Script([Call("Bash", {"command": "echo x > new.txt", "description": "Write"}), Say("Done.")])
Target = tuple[str, int]
"""A pattern of calls, and which of them."""


async def run(world: World) -> Issue:
    """A turn on an issue of its own: what a service has learnt once (tokens, who we are) it knows already."""
    issue = world.github.open_issue(world.repo, title="Add a file", by="alice")
    world.say("/claude add a file", on=issue)
    assert await world.outcome(on=issue) == "pull_request", world.replies(issue)[0].body
    head = next(one.head_sha for one in world.pulls() if one.head.startswith(f"forgehand/{issue.number}-"))
    checks = world.repo.checks
    await world.github.changed(lambda: [one for one in checks.values() if one.head_sha == head and one.conclusion], 60)
    return issue


def whole(world: World, issue: Issue) -> None:
    assert len(world.replies(issue)) == 1
    [pull] = [one for one in world.pulls() if one.head.startswith(f"forgehand/{issue.number}-")]
    assert len([name for name in world.repo.branches() if name.startswith(f"forgehand/{issue.number}-")]) == 1
    assert world.repo.file(pull.head, "new.txt") == b"x\n"
    assert [reaction.content for reaction in issue.comments[0].reactions] == ["eyes"]
    assert len([one for one in world.repo.checks.values() if one.head_sha == pull.head_sha]) == 1


def targets(world: World, since: int) -> list[Target]:
    """Of every call, numbers in paths generalised."""
    seen: Counter[str] = Counter()
    found = []
    for call in world.github.calls[since:]:
        pattern = f"{call.method} {re.sub(r'(?<=/)([0-9]+|[0-9a-f]{40})(?=/|$)', '*', call.path)}"
        found.append((pattern, seen[pattern]))
        seen[pattern] += 1
    return found


def chosen(found: list[Target], kind: str) -> list[Target]:
    """In CI: a write of each kind, and for lost answers a few of the reads."""
    if EVERY:
        return found
    writes = [one for one in found if not one[0].startswith("GET") and one[1] == 0]
    if kind == "fail":
        return [one for one in writes if one[0].startswith(tuple(each.rstrip("*") for each in FAIL_IN_CI))]
    reads = [one for one in found if one[0].startswith("GET")]
    return [*writes, *reads[:: max(1, len(reads) // READS_IN_CI)]]


async def strike(world: World, kind: str, target: Target) -> None:
    pattern, occurrence = target
    # curl sends a request again by itself when a kept connection dies: the second answer must be lost too.
    times = 2 if ".git/" in pattern and kind == "lose" else 1
    fault = world.github.faults.add(Fault(pattern, kind, status=502, skip=occurrence, times=times))  # type: ignore[arg-type]
    try:
        whole(world, await run(world))
        assert fault.hits or occurrence, "it did not strike"  # how often a comment is edited depends on the moment
    except Exception as error:
        raise AssertionError(f"{kind} {pattern} (occurrence {occurrence}): {error}") from error
    finally:
        world.github.faults.clear()


@pytest.mark.acceptance("C01")
@pytest.mark.acceptance("C02")
@pytest.mark.timeout(MATRIX_SECONDS)
@pytest.mark.parametrize("kind", ["lose", "fail"])
async def test_any_single_call_may_go_wrong(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with World.running(tmp_path) as world, world.bot():
        world.model.default(WORK)
        whole(world, await run(world))
        since = len(world.github.calls)
        whole(world, await run(world))
        found = targets(world, since)
        tried = chosen(found, kind)
        with capsys.disabled():
            print(f"\ncalls to GitHub in one turn: {len(found)}; {kind} tried here: {len(tried)}")
        for target in tried:
            await strike(world, kind, target)


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize("kind", ["lose", "fail"] if EVERY else ["lose"])
@pytest.mark.parametrize("pattern", ["GET /app", "GET /users/*", "POST /app/installations/*/access_tokens"])
async def test_a_first_call_may_go_wrong(world: World, kind: str, pattern: str) -> None:
    """What is asked once in the life of a process."""
    world.model.default(WORK)
    fault = world.github.faults.add(Fault(pattern, kind, status=502))  # type: ignore[arg-type]
    async with world.bot():
        whole(world, await run(world))
    assert fault.hits
