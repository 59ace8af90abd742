"""Settings as they stand in one file of git's, read as text: no repository is opened for it and no file included."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from bot.git.errors import GitFailed
from bot.git.run import Io, run_git


async def values(file: Path, pattern: str, *, own: bool = False) -> dict[str, str]:
    """By lower-case name, the last one wins. `own`: a file of the person's, whose includes count as well."""
    return dict(await rows(file, pattern, own=own))


async def every(file: Path, name: str) -> list[str]:
    """All values of one setting."""
    found = await rows(file, f"^{name.lower().replace('.', chr(92) + '.')}$")
    return [value for _, value in found]


async def rows(file: Path, pattern: str, *, own: bool = False) -> list[tuple[str, str]]:
    if not await asyncio.to_thread(file.is_file):
        return []
    argv = ["config", "--file", str(file), "--includes" if own else "--no-includes", "-z", "--get-regexp", pattern]
    try:
        found = await run_git(argv, io=Io(env={"HOME": str(Path.home())}), accept=(0, 1))
    except GitFailed:
        return []  # git itself will complain to the person about a file that it cannot read
    parts = (row.partition("\n") for row in os.fsdecode(found.stdout).split("\0") if row)
    return [(name.lower(), value) for name, separator, value in parts if separator]
