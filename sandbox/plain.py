"""Environments of plain processes: no isolation at all, for development and for tests of what is above them."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from sandbox.errors import EnvironmentGone, IsolationMissing
from sandbox.plain_environment import PlainEnvironment, PlainSettings
from sandbox.plain_files import PlainFiles
from sandbox.primitives import EnvironmentPrimitives, EnvironmentSpec

__all__ = ["PlainEnvironment", "PlainProvider", "PlainSettings"]

RUNNER_SOURCE = Path(__file__).parent / "runner"


class PlainProvider:
    """Folders below one root."""

    def __init__(self, settings: PlainSettings) -> None:
        self._settings = settings

    async def create(self, key: str, spec: EnvironmentSpec) -> EnvironmentPrimitives:
        if spec.public_repository:
            raise IsolationMissing("Plain processes are not isolated: public repositories are refused.")
        found = PlainEnvironment(self._settings, key)
        if spec.egress:
            (self._settings.ways / key).mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(_furnish, found.folder, dict(spec.labels))
        return found

    async def find(self, labels: Mapping[str, str]) -> list[EnvironmentPrimitives]:
        root = self._settings.root
        names = sorted(entry.name for entry in root.iterdir()) if root.is_dir() else []
        return [PlainEnvironment(self._settings, name) for name in names if _matches(root / name, labels)]

    async def attach(self, environment_id: str) -> EnvironmentPrimitives:
        if not (self._settings.root / environment_id / "labels.json").is_file():
            raise EnvironmentGone(f"the environment {environment_id} is not there")
        return PlainEnvironment(self._settings, environment_id)

    async def rest(self, environment_id: str) -> None:
        await (await self.attach(environment_id)).still()

    async def end(self, environment_id: str) -> None:
        await PlainEnvironment(self._settings, environment_id).terminate()

    async def close(self) -> None:
        """Nothing is held."""


def _furnish(folder: Path, labels: dict[str, str]) -> None:
    if (folder / "labels.json").exists():
        return
    for name in ("home", "work", "out", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copytree(RUNNER_SOURCE, folder / "runner", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    PlainFiles(folder).write(str(folder / "labels.json"), json.dumps(labels).encode())


def _matches(folder: Path, labels: Mapping[str, str]) -> bool:
    try:
        found = json.loads((folder / "labels.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and labels.items() <= found.items()
