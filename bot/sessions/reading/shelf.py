"""The files beside a turn's prompt, on the host from when they are gathered until they are brought in."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bot.sessions.services import Services
from bot.store.sessions import Turn


async def put(services: Services, turn: Turn, files: Mapping[str, bytes]) -> None:
    """In the place of what an earlier try has left; on disk before the step that made them counts as done."""
    await asyncio.to_thread(_put, _folder(services, turn), files)


async def files(services: Services, turn: Turn) -> dict[str, Path]:
    return await asyncio.to_thread(_found, _folder(services, turn))


def _folder(services: Services, turn: Turn) -> Path:
    return services.turn_folder(turn.key.workflow_id) / "beside"


def _put(folder: Path, wanted: Mapping[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    for name, data in wanted.items():
        with (folder / name).open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _found(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted(folder.glob("*"))}
