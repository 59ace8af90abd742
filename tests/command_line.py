"""The command line as a process of its own, beside whatever service runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SECONDS = 60.0


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


async def forgehand(environment: Mapping[str, str], *arguments: str, stdin: str = "", under: Sequence[str] = ()) -> Ran:
    """`under`: a command that runs it."""
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
