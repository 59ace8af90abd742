"""Creates local environments and finds them again by folders under one root, each with a separate user."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import secrets
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.errors import EnvironmentBusy, EnvironmentGone, IsolationMissing
from sandbox.local import folders as at
from sandbox.local import probe, seccomp, tools
from sandbox.local.environment import LocalEnvironment, write_json
from sandbox.local.folders import EnvironmentsFolder, are_frozen
from sandbox.local.launcher import Box, BoxLimits, Launcher
from sandbox.local.tools import Furniture
from sandbox.primitives import (
    EnvironmentOverview,
    EnvironmentPrimitives,
    EnvironmentSpec,
    EnvironmentState,
    Lease,
    check_name,
)

FIRST_UID, LAST_UID = 61001, 65000
PROBE_UID = 61000


@dataclass(frozen=True)
class _Ready:
    furniture: Furniture
    filter: bytes


class LocalProvider:
    """Environments under `root`; `tool_folders` are further read-only prefixes (`PREFIX/bin` goes on the PATH)."""

    def __init__(
        self, root: Path, agent_binary: Path, *, tool_folders: Sequence[Path] = (), limits: BoxLimits | None = None
    ) -> None:
        self._base = EnvironmentsFolder(root)
        self._agent = agent_binary
        self._tool_folders = tuple(tool_folders)
        self._limits = limits or BoxLimits()
        self._starting = asyncio.Lock()
        self._ready: _Ready | None = None
        self._given: weakref.WeakSet[LocalEnvironment] = weakref.WeakSet()

    @property
    def sockets(self) -> Path:
        """Folder of the host's gateway.sock and egress.sock (mode 0666, because the folder guards them)."""
        return self._base.sockets

    @property
    def ways(self) -> Path:
        """Folder of the host's KEY/egress.sock for environments that may reach more hosts."""
        return self._base.ways

    def admits(self, uid: int) -> bool:
        """Decide whether a peer on our sockets may be an environment. If we are root, each has a user of our range."""
        return FIRST_UID <= uid <= LAST_UID if os.geteuid() == 0 else uid == os.geteuid()

    async def start(self) -> None:
        """Get ready and prove with a real box that this host isolates; IsolationMissing says what to do."""
        await self._prepared()

    async def create(self, key: str, spec: EnvironmentSpec) -> EnvironmentPrimitives:
        check_name(key)
        ready = await self._prepared()
        try:
            uid = await asyncio.to_thread(self._settle, key, spec)
        except OSError as error:
            raise EnvironmentBusy(f"an environment could not be made: {error.strerror}") from None
        return self._environment(key, uid, ready)

    async def find(self, labels: Mapping[str, str]) -> list[EnvironmentPrimitives]:
        ready = await self._prepared()
        specs = await asyncio.to_thread(self._specs, labels)
        return [self._environment(key, spec["uid"], ready) for key, spec in specs]

    async def overview(self, labels: Mapping[str, str]) -> list[EnvironmentOverview]:
        return await asyncio.to_thread(self._overview, labels)

    async def attach(self, environment_id: str) -> EnvironmentPrimitives:
        check_name(environment_id)
        ready = await self._prepared()
        spec = self._spec(environment_id)
        if spec is None:
            raise EnvironmentGone(f"the environment {environment_id} is not there any more")
        return self._environment(environment_id, spec["uid"], ready)

    async def rest(self, environment_id: str) -> None:
        """End its processes. Its folders are all that is left; the next command starts a new box."""
        await (await self.attach(environment_id)).still()

    async def leases(self, environment_id: str) -> list[Lease]:
        return []

    async def end(self, environment_id: str) -> None:
        with contextlib.suppress(EnvironmentGone):
            await (await self.attach(environment_id)).terminate()

    async def close(self) -> None:
        for environment in list(self._given):
            await environment.detach()
        self._given.clear()

    async def _prepared(self) -> _Ready:
        async with self._starting:
            if self._ready is None:
                furniture = await asyncio.to_thread(self._furnish)
                ready = _Ready(furniture, seccomp.compiled(platform.machine()))
                await self._probe(ready)
                self._ready = ready
        return self._ready

    def _furnish(self) -> Furniture:
        absent = probe.missing_programs()
        if absent:
            raise IsolationMissing(f"{', '.join(absent)} is not installed: install bubblewrap and util-linux.")
        if platform.machine() not in seccomp.ARCHITECTURES:
            raise IsolationMissing(f"There is no system call filter for {platform.machine()}: use another sandbox.")
        try:
            return tools.furnish(self._base, self._agent, self._tool_folders)
        except OSError as error:
            raise IsolationMissing(f"The tools for sessions cannot be laid out: {error.strerror}.") from None

    async def _probe(self, ready: _Ready) -> None:
        """Check isolation in a temporary environment, which has no spec, so that no search finds it."""
        folders = self._base.folders(f"probe-{secrets.token_hex(8)}")
        uid = PROBE_UID if os.geteuid() == 0 else None
        launcher = Launcher(uid, self._limits, ready.filter)
        box = Box(folders, ready.furniture, {}, "/", sockets=None, dies_with_parent=True)
        try:
            await asyncio.to_thread(at.make, folders, uid)
            await probe.check(launcher, box)
        except OSError as error:
            raise IsolationMissing(
                f"Folders of the users that sessions run as cannot be made ({error.strerror}): run as an ordinary user."
            ) from None
        finally:
            await asyncio.to_thread(at.remove, folders)

    def _environment(self, key: str, uid: int | None, ready: _Ready) -> LocalEnvironment:
        launcher = Launcher(uid, self._limits, ready.filter)
        found = LocalEnvironment(key, self._base.folders(key), launcher, ready.furniture, self._base.sockets)
        self._given.add(found)
        return found

    def _settle(self, key: str, spec: EnvironmentSpec) -> int | None:
        """Make the environment's folders, then its spec, so that a half-made one is made again."""
        folders = self._base.folders(key)
        with self._locked():
            known = self._spec(key)
            uid: int | None = known["uid"] if known else self._free_uid(key)
            at.make(folders, uid)
            if spec.egress != ():
                at.make_own(folders, uid)
            if known is None:
                now = time.time()
                found: dict[str, object] = {"labels": dict(spec.labels), "public_repository": spec.public_repository}
                found |= {"uid": uid, "created_at": now, "expires_at": now + spec.lifetime_seconds}
                write_json(folders.spec, found)
        return uid

    def _overview(self, labels: Mapping[str, str]) -> list[EnvironmentOverview]:
        found: list[EnvironmentOverview] = []
        for key, spec in self._specs(labels):
            frozen = are_frozen(self._base.folders(key).home)
            state = EnvironmentState.PAUSED if frozen else EnvironmentState.RUNNING
            found.append(EnvironmentOverview(key, "local", state, spec["labels"], spec["created_at"]))
        return found

    def _free_uid(self, key: str) -> int | None:
        """Derive a user from the key; take the next one if another environment under this root has it."""
        if os.geteuid() != 0:
            return None
        taken = {spec["uid"] for _, spec in self._specs({})}
        count = LAST_UID - FIRST_UID + 1
        first = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % count
        for step in range(count):
            uid = FIRST_UID + (first + step) % count
            if uid not in taken:
                return uid
        raise EnvironmentBusy("every user for environments is taken: end some of them")

    def _specs(self, labels: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
        found = ((key, self._spec(key)) for key in self._base.environment_ids())
        return [(key, spec) for key, spec in found if spec and labels.items() <= spec["labels"].items()]

    def _spec(self, key: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self._base.folders(key).spec.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock between processes too, so that two of them never give one user to two environments."""
        descriptor = os.open(self._base.path / "state" / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
