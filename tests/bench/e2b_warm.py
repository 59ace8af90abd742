"""`python -m tests.bench.e2b_warm`: a repository of 5,000 files into a sandbox, whole and as what a snapshot lacks.

The stand-in copies a snapshot's disk file by file, which the cloud does not: only the bringing in is compared, after
git has been shown the copies, which in the cloud are the files that it knows.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import time
from pathlib import Path

from bot.git import quarantine
from bot.git.quarantine import Extent, Had, RepositoryPack
from sandbox.agents.claude import Claude
from sandbox.e2b.provider import E2BProvider
from sandbox.execution import ExecutionEnvironment
from sandbox.primitives import EnvironmentSpec
from tests.world.e2b import e2b_maker
from tests.world.environments import short_folder, small_agent

FILES, CHANGED, FILE_LINES, RUNS = 5000, 20, 20, 3
EXTENT = Extent(50, 1 << 30)
SPEC = EnvironmentSpec(labels={}, public_repository=False)


async def main() -> None:
    with short_folder() as root:
        mirror = root / "repo"
        before, after = await asyncio.to_thread(make, mirror)
        base = await quarantine.write_pack(mirror / ".git", before, root / "base.pack", EXTENT)
        whole = await quarantine.write_pack(mirror / ".git", after, root / "whole.pack", EXTENT)
        since = await quarantine.write_pack(
            mirror / ".git", after, root / "since.pack", Extent(50, 1 << 30, Had(before, ()))
        )
        async with e2b_maker(root, small_agent(root)) as maker:
            provider = maker()
            snapshot = await snapshot_of(provider, base)
            cold, warm = [], []
            for n in range(RUNS):
                cold.append(await once(provider, f"cold-{n}", whole, None, None))
                warm.append(await once(provider, f"warm-{n}", since, before, snapshot))
    for what, size, times in (("whole", whole.size, cold), ("difference", since.size, warm)):
        print(f"{what:12} {size:>10,} bytes   median {statistics.median(times):.2f} s   worst {max(times):.2f} s")


async def snapshot_of(provider: E2BProvider, base: RepositoryPack) -> str:
    env = await provider.create("base", SPEC)
    await ExecutionEnvironment(env, Claude()).prepare(base.path, base.sha, base.shallow, "main", turn=0)
    found = await provider.take_snapshot("base", "bench")
    await env.terminate()
    return found


async def once(provider: E2BProvider, key: str, brought: RepositoryPack, on: str | None, snapshot: str | None) -> float:
    env = await provider.create(key, EnvironmentSpec({}, public_repository=False, snapshot=snapshot))
    if snapshot:
        await env.exec([env.layout.git, "-C", env.layout.work, "status", "--short"])
    began = time.monotonic()
    await ExecutionEnvironment(env, Claude()).prepare(brought.path, brought.sha, brought.shallow, "main", on=on)
    took = time.monotonic() - began
    await env.terminate()
    return took


def make(folder: Path) -> tuple[str, str]:
    words = random.Random(1)
    for number in range(FILES):
        path = folder / f"d{number % 50}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"value_{words.random()} = {words.random()}\n" for _ in range(FILE_LINES)))
    git(folder, "init", "-q", "-b", "main")
    first = commit(folder)
    for number in range(CHANGED):
        with (folder / f"d{number % 50}" / f"f{number}.py").open("a") as file:
            file.write("changed = True\n")
    return first, commit(folder)


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=b", "-c", "user.email=b@b.invalid", "commit", "-q", "-m", "c")
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    asyncio.run(main())
