"""Tools for tests of environments: a short folder that every user reaches, a small agent, waiting."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.primitives import EnvironmentPrimitives

TEMPORARY = os.environ.get("PYTEST_DEBUG_TEMPROOT", "/var/tmp")
"""Where pytest's folders are too: in memory, if `python -m tests` finds room there."""


@contextmanager
def short_folder() -> Iterator[Path]:
    """Make a folder, because pytest's are closed to other users and too deep for a socket's path."""
    found = Path(tempfile.mkdtemp(prefix="fh-", dir=TEMPORARY))
    found.chmod(0o711)
    try:
        yield found
    finally:
        shutil.rmtree(found, ignore_errors=True)


def small_agent(folder: Path) -> Path:
    found = folder / "agent"
    found.write_text("#!/bin/sh\necho agent 1.0\n", encoding="utf-8")
    found.chmod(0o755)
    return found


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


async def until(check: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await check():
            await asyncio.sleep(0.01)


async def until_size(env: EnvironmentPrimitives, path: str, size: int) -> None:
    async with asyncio.timeout(60):
        async for seen in env.watch(path, -1):
            if seen >= size:
                return
