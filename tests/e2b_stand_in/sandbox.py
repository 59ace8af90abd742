"""What is known of one sandbox, and its machine while it has one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.e2b_stand_in.clock import Clock, Timer
from tests.e2b_stand_in.link import GuestGone
from tests.e2b_stand_in.machine import Bind, Machine
from tests.e2b_stand_in.network import looks_like_address
from tests.e2b_stand_in.processes import Processes
from tests.e2b_stand_in.usage import Usage

State = Literal["running", "paused", "killed"]


@dataclass(frozen=True)
class Lifecycle:
    """What happens when its time is up, and whether traffic wakes it."""

    pause: bool = False
    keep_memory: bool = True
    auto_resume: bool = False


@dataclass(frozen=True)
class Wish:
    """A request to create."""

    template: str
    timeout: float
    metadata: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict, repr=False)
    network: dict[str, Any] = field(default_factory=dict, repr=False)
    allow_internet_access: bool = True
    lifecycle: Lifecycle = Lifecycle()


class Sandbox:
    """Reading it is for tests; changing it is the registry's."""

    def __init__(self, wish: Wish, folder: Path, binds: Sequence[Bind], clock: Clock) -> None:
        self.id = "i" + "".join(secrets.choice("0123456789abcdefghijklmnopqrstuvwxyz") for _ in range(20))
        self.template = wish.template
        self.metadata = dict(wish.metadata)
        self.env = dict(wish.env)
        self.network: dict[str, Any] = dict(wish.network)
        """As last asked for: allowOut, denyOut, rules, allowPublicTraffic..."""
        self.allow_internet_access = wish.allow_internet_access
        self.lifecycle = wish.lifecycle
        self.timeout = wish.timeout
        self.access_token = "ea_" + secrets.token_hex(24)
        self.traffic_token = secrets.token_hex(16)
        self.created_at = clock.now()
        self.started_at = self.created_at
        """Of this run: resuming begins a new one."""
        self.end_at = self.created_at + wish.timeout
        self.ended_at: float | None = None
        self.state: State = "running"
        self.folder = folder / self.id
        self.timer: Timer | None = None
        self.snapshotting = False
        """In no list meanwhile."""
        self.lost = False
        """Nobody reaches it, and nobody says so."""
        self.hung = False
        """envd did not answer when it was paused: its memory is not resumed."""
        self.interrupted = asyncio.Event()
        """Set when it is paused or ends: what is under way with it breaks off. A resumed one has a new event."""
        self.usage = Usage(clock, self.folder)
        self._binds = binds
        self._clock = clock
        self._machine: Machine | None = None
        self._processes: Processes | None = None

    def __repr__(self) -> str:
        return f"Sandbox({self.id}, {self.state}, {self.metadata})"

    @property
    def reaches(self) -> list[str]:
        """What the firewall lets out. Beside any name there is a name server, for every protocol and port."""
        allowed: list[str] = self.network.get("allowOut") or []
        return [*allowed, "8.8.8.8"] if any(not looks_like_address(one) for one in allowed) else list(allowed)

    @property
    def paused(self) -> bool:
        return self.state == "paused"

    @property
    def machine(self) -> Machine:
        if self._machine is None:
            raise GuestGone
        return self._machine

    @property
    def processes(self) -> Processes:
        if self._processes is None:
            raise GuestGone
        return self._processes

    @property
    def home(self) -> Path:
        """/home/user, as a folder of the host."""
        return self.folder / "home"

    async def boot(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        machine = Machine(self.folder, self._binds)
        await machine.boot()
        self._machine, self._processes = machine, Processes(machine, self._clock)

    async def freeze(self) -> None:
        self.interrupted.set()
        await self.machine.freeze()

    async def thaw(self) -> None:
        """Goes on where it was, or boots from its disk when its memory is lost."""
        self.interrupted = asyncio.Event()
        if self._machine is None:
            await self.boot()
        else:
            self._machine.thaw()

    async def power_off(self) -> None:
        self.interrupted.set()
        machine, self._machine = self._machine, None
        processes, self._processes = self._processes, None
        if machine is not None:
            await machine.kill()
        if processes is not None:
            await processes.close()

    def wedge_readers(self) -> None:
        """Every stream that is open now stops reading and is not noticed as gone."""
        for process in self.processes.live:
            process.fan.wedge()
