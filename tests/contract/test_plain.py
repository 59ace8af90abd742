"""Processes without a box are found by their variables, which they have neither first nor last."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from sandbox import plain_processes as processes

LARGE = "import mmap, sys; held = mmap.mmap(-1, 400 << 20, flags=0x8022); print(flush=True); sys.stdin.read()"
"""Private, and populated: giving it back takes a while."""


async def test_what_takes_long_to_die_is_dead_when_it_was_killed(tmp_path: Path) -> None:
    mark = str(tmp_path)
    variables = {**os.environ, processes.MARK: mark}
    dying = await asyncio.create_subprocess_exec(sys.executable, "-c", LARGE, stdin=-1, stdout=-1, env=variables)
    assert dying.stdout
    await dying.stdout.readline()
    assert processes.kill_all(mark), "on this loop's own thread: nobody reaps it meanwhile"
    found = processes.stat_of(dying.pid)
    assert found is None or not found.alive
    await dying.wait()
