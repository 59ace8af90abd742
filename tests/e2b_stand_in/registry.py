"""All sandboxes of one account: made, prolonged, paused, resumed and ended, under the limits of its plan."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2b_stand_in import disk
from tests.e2b_stand_in.clock import Clock
from tests.e2b_stand_in.machine import Bind
from tests.e2b_stand_in.sandbox import Sandbox, Wish

HOUR = 3600.0
LEAST_AFTER_TRAFFIC = 300.0


class Refusal(Exception):
    """An answer of the API that is not 2xx."""

    def __init__(self, status: int, message: str, error_code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


@dataclass
class Limits:
    """Of the plan; a test may set them at any time."""

    hours: int = 24
    concurrent: int = 100
    creations_per_second: int | None = None


class Registry:
    def __init__(self, root: Path, clock: Clock, limits: Limits, binds: Sequence[Bind]) -> None:
        self.clock = clock
        self.limits = limits
        self.all: dict[str, Sandbox] = {}
        self.templates: set[str] | None = None
        """The names that exist; None: every name does."""
        self.snapshots: dict[str, Path] = {}
        self.taken_of: dict[str, str] = {}
        """By a snapshot's name, the sandbox that it was made of."""
        self.secrets: dict[str, list[str]] = {}
        """By name, all versions, the newest last."""
        self.refusals: list[Refusal] = []
        """What was answered so far that is not 2xx."""
        self.saves_disks = False
        """Each pause is saved, to be what a later one that fails leaves."""
        self.pauses_fail = False
        self.snapshots_wait_for = asyncio.Event()
        """Cleared by a test that wants a snapshot to take its time."""
        self.snapshots_wait_for.set()
        self._root = root
        self._binds = binds
        self._keys: dict[str, asyncio.Future[Sandbox]] = {}
        self._created: list[float] = []
        self._changing: dict[str, asyncio.Lock] = {}
        self._booting = 0
        self._numbers = itertools.count(1)

    # --- finding

    def get(self, sandbox_id: str) -> Sandbox:
        found = self.all.get(sandbox_id)
        if found is None or found.state == "killed":
            raise missing(sandbox_id)
        return found

    def running(self, sandbox_id: str) -> Sandbox:
        found = self.get(sandbox_id)
        if found.state != "running":
            raise missing(sandbox_id)
        return found

    # --- making

    async def create(self, wish: Wish, key: str | None) -> Sandbox:
        """The same one for the same key, while it is there; also for requests at the same time."""
        self._check(wish)
        if key is None:
            return await self._make(wish)
        while (going := self._keys.get(key)) is not None:
            found = await asyncio.shield(going)
            if found.state != "killed":
                return found
            if self._keys.get(key) is going:
                del self._keys[key]
        going = self._keys[key] = asyncio.ensure_future(self._make(wish))
        try:
            return await asyncio.shield(going)
        except Refusal:
            self._keys.pop(key, None)
            raise

    def _check(self, wish: Wish) -> None:
        known = wish.template in self.snapshots or self.templates is None or wish.template in self.templates
        if not known:
            raise Refusal(404, f"template '{wish.template}' not found")
        if wish.timeout > self.limits.hours * HOUR:
            raise self._too_long()
        if wish.timeout < 0:
            raise Refusal(400, "Timeout must be greater than or equal to 0")

    async def _make(self, wish: Wish) -> Sandbox:
        self._admit(creating=True)
        self._booting += 1
        try:
            sandbox = Sandbox(wish, self._root, self._binds, self.clock)
            if wish.template in self.snapshots:
                await asyncio.to_thread(disk.copy, self.snapshots[wish.template], sandbox.folder)
            await sandbox.boot()
        finally:
            self._booting -= 1
        self.all[sandbox.id] = sandbox
        self._prolong(sandbox, wish.timeout)
        return sandbox

    def _admit(self, *, creating: bool) -> None:
        now = self.clock.now()
        self._created = [when for when in self._created if now - when < 1.0]
        rate = self.limits.creations_per_second
        if creating and rate is not None and len(self._created) >= rate:
            raise Refusal(429, "Rate limit exceeded, please try again later.")
        running = self._booting + sum(each.state == "running" for each in self.all.values())
        if running >= self.limits.concurrent:
            said = f"you have reached the maximum number of concurrent E2B sandboxes ({self.limits.concurrent})."
            raise Refusal(429, f"{said} If you need more, please visit 'https://e2b.dev/docs/billing'")
        if creating:
            self._created.append(now)

    # --- its time

    def set_timeout(self, sandbox_id: str, seconds: float) -> None:
        """Exactly, but never past the plan's maximum counted from the start of this run."""
        sandbox = self.running(sandbox_id)
        self._check_length(sandbox)
        self._prolong(sandbox, max(0.0, seconds))
        if sandbox.lost:
            raise Refusal(500, "Error setting timeout")

    async def connect(self, sandbox_id: str, seconds: float, *, keep_memory: bool = True) -> tuple[Sandbox, bool]:
        """Only ever longer; whether it had to be resumed."""
        if seconds > self.limits.hours * HOUR:
            raise self._too_long()
        async with self._lock(sandbox_id):
            sandbox = self.get(sandbox_id)
            if sandbox.state == "running":
                self._check_length(sandbox)
                self._prolong(sandbox, seconds, only_longer=True)
                if sandbox.lost:
                    raise Refusal(500, "Error connecting to sandbox")
                return sandbox, False
            await self._resume(sandbox, seconds, keep_memory=keep_memory)
            return sandbox, True

    async def wake(self, sandbox: Sandbox) -> None:
        """By traffic."""
        async with self._lock(sandbox.id):
            if sandbox.state == "paused":
                await self._resume(sandbox, max(sandbox.timeout, LEAST_AFTER_TRAFFIC), keep_memory=True)

    async def pause(self, sandbox_id: str, *, keep_memory: bool = True) -> None:
        async with self._lock(sandbox_id):
            sandbox = self.get(sandbox_id)
            if sandbox.state == "paused":
                raise Refusal(409, f"Error pausing sandbox - sandbox '{sandbox_id}' is already paused")
            self.clock.cancel(sandbox.timer)
            if self.pauses_fail:
                await self._lose(sandbox)
                raise Refusal(500, "Error pausing sandbox")
            sandbox.state = "paused"
            if keep_memory:
                await sandbox.freeze()
            else:
                await sandbox.power_off()
            if self.saves_disks:
                await asyncio.to_thread(disk.save, sandbox.folder, self._saved(sandbox))

    async def _lose(self, sandbox: Sandbox) -> None:
        """What ran is gone; what was saved last, if ever, is what the sandbox is from now on."""
        await sandbox.power_off()
        saved = self._saved(sandbox)
        sandbox.state = "paused" if saved.exists() else "killed"
        if saved.exists():
            await asyncio.to_thread(disk.save, saved, sandbox.folder)

    def _saved(self, sandbox: Sandbox) -> Path:
        return self._root / "saved" / sandbox.id

    async def kill(self, sandbox_id: str) -> None:
        if self.get(sandbox_id).snapshotting:
            raise Refusal(409, f"Sandbox '{sandbox_id}' is in 'snapshotting' state")
        async with self._lock(sandbox_id):
            sandbox = self.get(sandbox_id)
            self.clock.cancel(sandbox.timer)
            sandbox.state = "killed"
            sandbox.ended_at = self.clock.now()
            await sandbox.power_off()
            if sandbox.lost:
                raise Refusal(500, "Error killing sandbox: operation failed")
        await asyncio.to_thread(disk.remove, sandbox.folder)

    async def snapshot(self, sandbox_id: str, name: str | None) -> str:
        """Of its disk only: what it runs is not carried over."""
        sandbox = self.running(sandbox_id)
        number = next(self._numbers)
        found = name if name and re.fullmatch(r"[a-z0-9:/-]+", name) else f"snapshot-{number}"
        folder = self._root / "snapshots" / str(number)
        sandbox.snapshotting = True
        await sandbox.machine.freeze()
        try:
            await self.snapshots_wait_for.wait()
            await asyncio.to_thread(disk.copy, sandbox.folder, folder)
        finally:
            sandbox.machine.thaw()
            sandbox.snapshotting = False
        self.snapshots[found] = folder
        self.taken_of[found] = sandbox_id
        return found

    def forget_snapshot(self, name: str) -> None:
        if name not in self.snapshots:
            raise Refusal(404, f"template '{name}' not found")
        for state in ("running", "paused"):
            if any(one.state == state and one.template == name for one in self.all.values()):
                raise Refusal(400, f"cannot delete template '{name}' because there are {state} sandboxes using it")
        del self.snapshots[name]

    async def close(self) -> None:
        for sandbox in self.all.values():
            await sandbox.power_off()

    async def lose(self, sandbox_id: str) -> None:
        """The node under it is gone, and the API goes on to say that it runs."""
        sandbox = self.running(sandbox_id)
        sandbox.lost = True
        await sandbox.power_off()

    def _check_length(self, sandbox: Sandbox) -> None:
        if self.clock.now() >= sandbox.started_at + self.limits.hours * HOUR:
            raise Refusal(400, "Max instance length exceeded")

    async def _resume(self, sandbox: Sandbox, seconds: float, *, keep_memory: bool) -> None:
        self._admit(creating=False)
        if sandbox.hung and keep_memory:
            said = "the snapshot of this sandbox was taken while its guest agent was not responding"
            raise Refusal(409, said, "sandbox_snapshot_guest_agent_unresponsive")
        if not keep_memory:
            await sandbox.power_off()
        await sandbox.thaw()
        sandbox.state = "running"
        sandbox.started_at = self.clock.now()
        self._prolong(sandbox, seconds)

    def _prolong(self, sandbox: Sandbox, seconds: float, *, only_longer: bool = False) -> None:
        now = self.clock.now()
        end = min(now + seconds, sandbox.started_at + self.limits.hours * HOUR)
        if only_longer and end < sandbox.end_at:
            return
        self.clock.cancel(sandbox.timer)
        sandbox.end_at = end
        sandbox.timer = self.clock.at(end, lambda: self._time_is_up(sandbox))

    async def _time_is_up(self, sandbox: Sandbox) -> None:
        if sandbox.state != "running":
            return
        if sandbox.lifecycle.pause:
            with contextlib.suppress(Refusal):
                await self.pause(sandbox.id, keep_memory=sandbox.lifecycle.keep_memory)
        else:
            await self.kill(sandbox.id)

    def _too_long(self) -> Refusal:
        return Refusal(400, f"Timeout cannot be greater than {self.limits.hours} hours")

    def _lock(self, sandbox_id: str) -> asyncio.Lock:
        return self._changing.setdefault(sandbox_id, asyncio.Lock())


def missing(sandbox_id: str) -> Refusal:
    return Refusal(404, f"Sandbox \"{sandbox_id}\" doesn't exist or you don't have access to it")
