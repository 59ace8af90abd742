"""`python -m tests.bench skills`: bytes of a model request with and without skills, and the time that ten skills add.

It drives the real CLI in a plain environment against the scripted model. Beside it stands what the program sends with
its own bundled skills, which Forgehand switches off."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bot.knowhow import KnowHowFile, packing
from bot.simulation.anthropic import Say, Script, SimulatedAnthropic
from sandbox.agents.base import AgentRun, Plugin
from sandbox.agents.claude import UNFIT_TOOLS
from sandbox.execution import ExecutionEnvironment
from sandbox.plain import PlainProvider, PlainSettings
from sandbox.primitives import EnvironmentSpec, Layout
from tests.turns.test_claude_cli import BINARY, TOKEN, Cli, StraightToTheModel, relayed

RUNS = 7
SKILLS = 10


class Bundled(StraightToTheModel):
    """As the program comes."""

    def argv(self, run: AgentRun, layout: Layout) -> list[str]:
        return [one for one in super().argv(run, layout) if one not in (*UNFIT_TOOLS, "Skill")]

    def environment(self, run: AgentRun, layout: Layout) -> dict[str, str]:
        found = super().environment(run, layout)
        return {name: value for name, value in found.items() if "SKILLS" not in name and "WORKFLOWS" not in name}


def ten_skills() -> Plugin:
    files = [
        KnowHowFile(
            f".claude/skills/skill-{n}/SKILL.md", f"---\ndescription: {'d' * 100}\n---\n{'x ' * 2_000}".encode()
        )
        for n in range(SKILLS)
    ]
    return Plugin("repository", packing.pack("repository", files).files)


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    began = time.monotonic()
    yield
    into.append(time.monotonic() - began)


async def measure(cli: Cli, plugins: Sequence[Plugin], turn: int) -> tuple[int, list[float], list[float]]:
    """Return the bytes of the first request, and the seconds to that request and of whole runs."""
    sizes: list[int] = []
    whole: list[float] = []
    first: list[float] = []
    for n in range(RUNS):
        cli.model.default(Script([Say("Done.")]))
        seen = len(cli.model.requests)
        run = replace(cli.run("Hello"), turn=turn + n, agent_session_id=str(uuid.uuid4()), plugins=plugins)
        with timed(first):
            await cli.execution.start(run)
            async with asyncio.timeout(60):
                while not any(one.body.get("tools") for one in cli.model.requests[seen:]):
                    await asyncio.sleep(0.005)
        with timed(whole):
            async for _ in cli.execution.follow(run.turn, 0):
                pass
        sizes.append(next(len(json.dumps(one.body)) for one in cli.model.requests[seen:] if one.body.get("tools")))
    return sizes[0], first, [a + b for a, b in zip(first, whole, strict=True)]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sockets = Path(folder) / "s"
        sockets.mkdir()
        settings = PlainSettings(Path(folder) / "e", sockets, BINARY)
        async with SimulatedAnthropic.running(api_key=TOKEN) as model, relayed(sockets / "gateway.sock", model.url):
            spec = EnvironmentSpec(labels={}, public_repository=False)
            primitives = await PlainProvider(settings).create("bench", spec)
            cli = Cli(model, ExecutionEnvironment(primitives, StraightToTheModel()))
            say("no skills", await measure(cli, (), 1))
            say(f"{SKILLS} skills of a repository", await measure(cli, [ten_skills()], 100))
            bundled = Cli(model, ExecutionEnvironment(primitives, Bundled()))
            say("bundled skills and tools", await measure(bundled, (), 200))
            await cli.execution.close()
    packed: list[float] = []
    for _ in range(RUNS):
        with timed(packed):
            ten_skills()
    print(f"packing {SKILLS} skills on the host: {statistics.median(packed) * 1000:.1f} ms")


def say(name: str, found: tuple[int, list[float], list[float]]) -> None:
    size, first, whole = found
    print(
        f"{name}: first request {size:,} bytes; "
        f"to the first request {statistics.median(first):.2f} s (at best {min(first):.2f}); "
        f"whole run {statistics.median(whole):.2f} s (at best {min(whole):.2f})"
    )


if __name__ == "__main__":
    asyncio.run(main())
