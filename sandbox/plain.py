"""Provides environments of plain processes: without isolation, for development and tests."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from sandbox import plain_processes as processes
from sandbox.errors import EnvironmentGone, IsolationMissing
from sandbox.plain_environment import PlainEnvironment, PlainSettings
from sandbox.primitives import EnvironmentOverview, EnvironmentPrimitives, EnvironmentSpec, EnvironmentState, Lease

__all__ = ["PlainEnvironment", "PlainProvider", "PlainSettings"]

RUNNER_SOURCE = Path(__file__).parent / "runner"


class PlainProvider:
    def __init__(self, settings: PlainSettings) -> None:
        self._settings = settings

    async def create(self, key: str, spec: EnvironmentSpec) -> EnvironmentPrimitives:
        if spec.public_repository:
            raise IsolationMissing("Plain processes are not isolated: public repositories are refused.")
        found = PlainEnvironment(self._settings, key)
        if spec.egress != ():
            (self._settings.ways / key).mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(_furnish, found, dict(spec.labels))
        return found

    async def find(self, labels: Mapping[str, str]) -> list[EnvironmentPrimitives]:
        return [PlainEnvironment(self._settings, folder.name) for folder, _ in self._folders(labels)]

    async def overview(self, labels: Mapping[str, str]) -> list[EnvironmentOverview]:
        return await asyncio.to_thread(self._overview, labels)

    async def attach(self, environment_id: str) -> EnvironmentPrimitives:
        if not (self._settings.root / environment_id / "labels.json").is_file():
            raise EnvironmentGone(f"the environment {environment_id} is not there")
        return PlainEnvironment(self._settings, environment_id)

    async def rest(self, environment_id: str) -> None:
        await (await self.attach(environment_id)).still()

    async def leases(self, environment_id: str) -> list[Lease]:
        return []

    async def end(self, environment_id: str) -> None:
        await PlainEnvironment(self._settings, environment_id).terminate()

    async def close(self) -> None:
        """There is no client to close."""

    def _folders(self, labels: Mapping[str, str]) -> list[tuple[Path, dict[str, str]]]:
        root = self._settings.root
        found = ((folder, _labels(folder)) for folder in (sorted(root.iterdir()) if root.is_dir() else []))
        return [(folder, own) for folder, own in found if own is not None and labels.items() <= own.items()]

    def _overview(self, labels: Mapping[str, str]) -> list[EnvironmentOverview]:
        found: list[EnvironmentOverview] = []
        for folder, own in self._folders(labels):
            state = EnvironmentState.PAUSED if processes.are_frozen(str(folder)) else EnvironmentState.RUNNING
            since = (folder / "labels.json").stat().st_mtime
            found.append(EnvironmentOverview(folder.name, "plain", state, own, since))
        return found


def _furnish(made: PlainEnvironment, labels: dict[str, str]) -> None:
    folder = made.folder
    if (folder / "labels.json").exists():
        return
    for name in ("home", "work", "out", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copytree(RUNNER_SOURCE, folder / "runner", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    made.files.write(str(folder / "labels.json"), json.dumps(labels).encode())


def _labels(folder: Path) -> dict[str, str] | None:
    try:
        found = json.loads((folder / "labels.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
