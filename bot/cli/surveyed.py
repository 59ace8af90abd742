"""Proposes a config for a folder of this machine: reads its files, runs none of its commands."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from bot import survey
from bot.proposal import starter, trials
from bot.proposal.verification import CheckedCommand

MOST_PATHS = 50_000
_LEFT_OUT = (".git", "node_modules", ".venv", "venv", "__pycache__", "target", ".tox")


def proposal(folder: Path) -> str:
    """Raises OSError if the folder cannot be read."""
    paths = list(islice(_paths(folder), MOST_PATHS))
    texts = {path: text for path in survey.wanted(paths) if (text := _text(folder / path)) is not None}
    found = asyncio.run(trials.try_all(survey.candidates(paths, texts), _assume))
    return starter.config(found, "")


async def _assume(command: str, setup: bool) -> tuple[CheckedCommand, Sequence[str]]:
    """Stand in for a trial, as if the command had passed."""
    return CheckedCommand(command, 0, setup=setup), ()


def _paths(folder: Path) -> Iterator[str]:
    os.scandir(folder).close()
    for place, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if name not in _LEFT_OUT)
        for name in sorted(names):
            yield (Path(place) / name).relative_to(folder).as_posix()


def _text(path: Path) -> str | None:
    """Read a regular file, never through a link or from a pipe; None if it is too large."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read(survey.MOST_BYTES + 1) if is_file else b""
    except OSError:
        return None
    return content.decode("utf-8", "replace") if is_file and len(content) <= survey.MOST_BYTES else None
