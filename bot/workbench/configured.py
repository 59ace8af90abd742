"""Reads settings from one of git's config files, without opening a repository or following includes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from bot.git.errors import GitFailed
from bot.git.run import Io, run_git


async def values(file: Path, pattern: str, *, own: bool = False) -> dict[str, str]:
    """Return settings by lower-case name; the last one wins. `own` marks a file of the person, whose includes count."""
    return dict(await rows(file, pattern, own=own))


async def rows(file: Path, pattern: str, *, own: bool = False) -> list[tuple[str, str]]:
    if not await asyncio.to_thread(file.is_file):
        return []
    argv = ["config", "--file", str(file), "--includes" if own else "--no-includes", "-z", "--get-regexp", pattern]
    try:
        found = await run_git(argv, io=Io(env={"HOME": str(Path.home())}), accept=(0, 1))
    except GitFailed:
        return []  # git itself tells the person about a file that it cannot read
    parts = (row.partition("\n") for row in os.fsdecode(found.stdout).split("\0") if row)
    return [(name.lower(), value) for name, separator, value in parts if separator]
