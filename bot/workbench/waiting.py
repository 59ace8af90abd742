"""Ends a git command that hangs because one of git's files in the work tree is a named pipe or a device.

It looks only when git is slow, and then again and again: a pipe may also appear later.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

from bot.errors import UserError
from bot.git.run import GitResult
from bot.workbench import words

PATIENCE_SECONDS = 2.0
_OPENED = frozenset((".gitignore", ".gitattributes", "HEAD", "config", "commondir"))
"""Git opens these for rules, and to see whether a folder is a separate repository."""


async def unless_for_ever(command: Coroutine[Any, Any, GitResult], top: Path) -> GitResult:
    """Return the command's result; a UserError names the file at which it waits."""
    running = asyncio.create_task(command)
    over = threading.Event()
    try:
        while not (await asyncio.wait({running}, timeout=PATIENCE_SECONDS))[0]:
            found = await asyncio.to_thread(_found, top, over)
            if found is not None and not running.done():
                raise UserError(words.waits(found))
        return await running
    finally:
        over.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _found(top: Path, over: threading.Event) -> Path | None:
    waiting = [os.fspath(top)]
    while waiting and not over.is_set():
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.name in _OPENED and _blocks(entry):
                return Path(entry.path)
    return None


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:
        return  # closed, gone, or too deep: git cannot read it either


def _blocks(entry: os.DirEntry[str]) -> bool:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)
