"""An execution over plain processes, with a scripted agent and a repository to work on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sandbox.agents.base import AgentRun
from sandbox.agents.claude import Claude
from sandbox.execution import ExecutionEnvironment
from sandbox.plain import PlainEnvironment, PlainProvider, PlainSettings
from sandbox.primitives import EnvironmentSpec

SCRIPTED = Path(__file__).parents[1] / "data" / "agents" / "scripted_agent.py"
SPEC = EnvironmentSpec(labels={"session": "abcd1234"}, public_repository=False)


def git(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    settings = ["-c", "user.name=Tester", "-c", "user.email=t@example.test", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, text=True, env=env
    )
    return done.stdout.strip()


class Origin:
    """A repository on the host, three commits deep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        git(folder, "init", "--quiet")
        for number in range(3):
            (folder / "code.py").write_text(f"answer = {number}\n")
            (folder / ".gitignore").write_text("*.log\nnode_modules/\n")
            (folder / "docs").mkdir(exist_ok=True)
            (folder / "docs" / "page.md").write_text("words\n")
            git(folder, "add", ".")
            git(folder, "commit", "--quiet", "-m", f"commit {number}")
        self.sha = git(folder, "rev-parse", "HEAD")

    def pack(self, target: Path, *, depth: int = 2) -> tuple[Path, list[str]]:
        shallow = git(self.folder, "rev-parse", f"HEAD~{depth - 1}")
        clone = target.with_suffix(".clone")
        git(self.folder, "clone", "--quiet", "--bare", f"--depth={depth}", f"file://{self.folder}", str(clone))
        objects = git(clone, "rev-list", "--objects", "HEAD")
        with target.open("wb") as out:
            subprocess.run(
                ["git", "pack-objects", "--stdout", "-q"], cwd=clone, input=objects.encode(), stdout=out, check=True
            )
        return target, [shallow]

    def tree_of(self, bundle: Path) -> dict[str, str]:
        """Import the work as the host does; path -> content."""
        git(self.folder, "fetch", "--quiet", str(bundle), "+refs/forgehand/work:refs/brought")
        assert git(self.folder, "rev-parse", "refs/brought^") == self.sha
        paths = git(self.folder, "ls-tree", "-r", "--name-only", "refs/brought").splitlines()
        return {path: git(self.folder, "show", f"refs/brought:{path}") for path in paths}


class Bench:
    """An execution over plain processes with the scripted agent."""

    def __init__(self, root: Path, origin: Origin) -> None:
        self.settings = PlainSettings(root / "environments", root / "sockets", root / "agent", git="git")
        self.settings.sockets.mkdir()
        self.settings.agent_binary.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPTED} "$@"\n')
        self.settings.agent_binary.chmod(0o700)
        self.root, self.origin = root, origin

    async def open(self) -> None:
        created = await PlainProvider(self.settings).create("box", SPEC)
        assert isinstance(created, PlainEnvironment)
        self.primitives = created
        self.execution = self.again()
        self.work = Path(created.layout.work)
        self.out = Path(created.layout.out)

    def again(self) -> ExecutionEnvironment:
        """As another process of ours would find it."""
        return ExecutionEnvironment(PlainEnvironment(self.settings, "box"), Claude())

    async def prepare(self, turn: int = 1) -> None:
        target = self.root / f"{turn}.pack"
        pack, shallow = self.origin.pack(target) if not target.exists() else (target, [])
        await self.execution.prepare(pack, self.origin.sha, shallow, "forgehand/1-abcd1234", turn=turn)

    def run(self, *steps: list[Any], turn: int = 1, timeout: float = 60.0) -> AgentRun:
        return AgentRun(
            turn=turn,
            prompt=json.dumps(steps),
            model="claude-test",
            token="fht_secret",
            agent_session_id="s-1",
            resume=False,
            max_turns=None,
            budget_usd=1.0,
            timeout_seconds=timeout,
            instructions="Be brief.",
        )

    async def texts(self, turn: int = 1, offset: int = 0) -> list[str]:
        lines = [line async for chunk in self.execution.follow(turn, offset) for line in chunk.lines]
        return said(lines)

    def printed(self, words: str, turn: int = 1) -> bool:
        stream = self.out / f"turn-{turn}" / "stream.jsonl"
        return stream.exists() and words.encode() in stream.read_bytes()

    def starts(self) -> int:
        return (Path(self.primitives.layout.home) / "starts").read_text().count("started")


def said(lines: list[str]) -> list[str]:
    documents = [json.loads(line) for line in lines if line]
    return [one["message"]["content"][0]["text"] for one in documents if one["type"] == "assistant"]


async def until(condition: Callable[[], bool] | Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)
