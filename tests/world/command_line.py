"""Runs the command line in a separate process."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 60.0
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["bot.__main__", "bot.store.base", "sandbox.choice", "tests.world.command_line"])


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def text(self) -> str:
        return self.out + self.err


def forgehand(
    environment: Mapping[str, str], *arguments: str, stdin: str = "", under: Sequence[str] = ()
) -> Coroutine[Any, Any, Ran]:
    """Run a command of Forgehand, if wanted `under` another program."""
    return _start(environment, arguments, stdin, under) if under else _fork(environment, arguments, stdin)


async def _start(environment: Mapping[str, str], arguments: Sequence[str], stdin: str, under: Sequence[str]) -> Ran:
    process = await asyncio.create_subprocess_exec(
        *under,
        sys.executable,
        "-m",
        "bot",
        *arguments,
        cwd=ROOT,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(SECONDS):
        out, err = await process.communicate(stdin.encode())
    return Ran(process.returncode or 0, out.decode(), err.decode())


async def _fork(environment: Mapping[str, str], arguments: Sequence[str], stdin: str) -> Ran:
    """Fork a process that has already imported most modules, because imports take most of the time."""
    with TemporaryDirectory(prefix="forgehand-command-") as name:
        folder, ended = Path(name), asyncio.Event()
        (folder / "0").write_text(stdin, encoding="utf-8")
        process = FORKS.Process(target=_command, args=(dict(environment), arguments, folder))
        process.start()
        loop = asyncio.get_running_loop()
        loop.add_reader(process.sentinel, ended.set)
        try:
            async with asyncio.timeout(SECONDS):
                await ended.wait()
        finally:
            loop.remove_reader(process.sentinel)
            process.kill()
            process.join()
        out, err = ((folder / name).read_text(encoding="utf-8") for name in "12")
        return Ran(process.exitcode or 0, out, err)


def _command(environment: Mapping[str, str], arguments: Sequence[str], folder: Path) -> None:
    """Run a command in the forked process."""
    for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)):
        os.dup2(os.open(folder / str(number), flags), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process lives
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["forgehand", *arguments]
    from bot.__main__ import main

    main()
