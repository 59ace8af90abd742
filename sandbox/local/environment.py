"""One local environment: the primitives over its folders and its boxes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path

from sandbox.errors import EnvironmentBusy, EnvironmentGone
from sandbox.files import DiskUsage, Files, HostEnvironment, measured_disk
from sandbox.local import folders as at
from sandbox.local import launcher as boxes
from sandbox.local.folders import Folders, freeze, kill_all, members, thaw
from sandbox.local.launched import Launched
from sandbox.local.launcher import Box, Launcher
from sandbox.local.tools import Furniture
from sandbox.named import Connection, relay
from sandbox.primitives import EnvironmentMetrics, ExecResult, Layout, Liveness, check_name

CONNECT_SECONDS = 10.0


class LocalExposures:
    """Addresses on the host for ports inside one environment, until `close`."""

    def __init__(self, out: Path, running: Callable[[], Sequence[str]]) -> None:
        self._out = out
        self._running = running
        self._servers: dict[int, asyncio.Server] = {}

    async def open(self, port: int) -> str:
        server = self._servers.get(port)
        if server is None:

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    await relay((reader, writer), await self._reach(port))
                except (OSError, TimeoutError, EnvironmentBusy):
                    writer.transport.abort()

            server = self._servers[port] = await asyncio.start_server(serve, "127.0.0.1", 0)
        return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()

    async def _reach(self, port: int) -> Connection:
        """Connect to the first launched command that listens on the port; each command has a separate network."""
        for name in await asyncio.to_thread(self._running):
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_unix_connection(sock=connect(self._out, boxes.exposure(name)))
                try:
                    writer.write(b"%d\n" % port)
                    await asyncio.wait_for(reader.readexactly(1), CONNECT_SECONDS)
                except BaseException:
                    writer.close()
                    raise
                return reader, writer
        raise EnvironmentBusy(f"nobody listens on port {port} inside")


def connect(folder: Path, name: str) -> socket.socket:
    """Connect to a socket in an agent's folder, but never through a link, which might point at a socket of the host."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if not stat.S_ISSOCK(os.fstat(handle).st_mode):
            raise FileNotFoundError(name)
        found.setblocking(False)
        found.connect(f"/proc/self/fd/{handle}")
    except OSError:
        found.close()
        raise
    finally:
        os.close(handle)
    return found


TERMINATE_SECONDS = 20.0
DISK_AGE_SECONDS = 10.0
CPU_SAMPLE_SECONDS = 0.1

# Pauses between two looks at a file: (as long as it is unchanged for fewer seconds, the pause).
WATCH_PAUSES = ((2.0, 0.02), (30.0, 0.04), (float("inf"), 0.1))
WATCH_SECONDS = 1.0


class LocalEnvironment(HostEnvironment):
    """An environment known by its folders. Another process needs no state of this object to find it."""

    def __init__(
        self, environment_id: str, folders: Folders, launcher: Launcher, furniture: Furniture, sockets: Path
    ) -> None:
        super().__init__(environment_id, Files(folders.behind, launcher.uid))
        self._folders = folders
        self._launcher = launcher
        self._furniture = furniture
        self._sockets = sockets
        self._exposures = LocalExposures(folders.out, self._running)
        self._cpu: tuple[float, float] | None = None
        self._disk: tuple[float, DiskUsage] | None = None

    @property
    def uid(self) -> int:
        """The host's user of all processes inside; identifies a peer on our sockets."""
        return os.geteuid() if self._launcher.uid is None else self._launcher.uid

    @property
    def layout(self) -> Layout:
        return Layout(at.HOME, at.WORK, at.OUT, at.RUNNER, at.AGENT, self._furniture.python, self._furniture.git)

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 60.0,
        network: bool = False,
    ) -> ExecResult:
        self._require()
        box = self._box(env, cwd, network=network, dies_with_parent=True)
        command = boxes.forwarded(box, argv) if network else list(argv)
        return await self._launcher.run(box, command, stdin=stdin, timeout=timeout)

    async def launch(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        self._require()
        box = self._box(env, cwd, network=True, dies_with_parent=False)
        command = boxes.forwarded(box, argv, name=name)
        await self._in_thread(lambda: self._launched(name).start(self._launcher, box, command))

    async def liveness(self, name: str) -> Liveness:
        return await self._in_thread(self._launched(name).liveness)

    async def kill(self, name: str) -> None:
        await self._in_thread(self._launched(name).kill)

    async def watch(self, path: str, size: int) -> AsyncGenerator[int, None]:
        # A look takes some microseconds, so it needs no thread.
        known = size
        changed = told = time.monotonic()
        while True:
            now = time.monotonic()
            seen = self.files.size(path)
            if seen != known:
                known, changed, told = seen, now, now
                yield known
            elif now - told >= WATCH_SECONDS:
                told = now
                yield known
            quiet = time.monotonic() - changed
            await asyncio.sleep(next(pause for limit, pause in WATCH_PAUSES if quiet < limit))

    async def is_running(self) -> bool:
        return self._folders.spec.is_file()

    async def extend(self, seconds: float) -> None:
        """Note the date. Local environments do not end by themselves."""

        def note() -> None:
            spec = json.loads(self._folders.spec.read_text(encoding="utf-8"))
            write_json(self._folders.spec, {**spec, "expires_at": time.time() + seconds})

        await self._in_thread(note)

    async def still(self) -> None:
        if not await asyncio.to_thread(kill_all, self._folders.home, TERMINATE_SECONDS):
            raise EnvironmentBusy(f"processes of {self._id} could not be killed")

    async def pause(self) -> None:
        await self._in_thread(lambda: freeze(self._folders.home))

    async def resume(self) -> None:
        await self._in_thread(lambda: thaw(self._folders.home))

    async def metrics(self) -> EnvironmentMetrics:
        if self._cpu is None:
            self._cpu = await self._in_thread(self._cpu_now)
            await asyncio.sleep(CPU_SAMPLE_SECONDS)
        before, self._cpu = self._cpu, await self._in_thread(self._cpu_now)
        found = await self._in_thread(lambda: members(self._folders.home))
        elapsed = max(self._cpu[0] - before[0], 1e-3)
        percent = max(0.0, 100 * (self._cpu[1] - before[1]) / elapsed)
        memory = sum(one.memory_bytes for one in found)
        if self._disk is None or time.monotonic() - self._disk[0] > DISK_AGE_SECONDS:  # it walks the whole tree
            used = await self._in_thread(lambda: measured_disk(self._folders.box))
            self._disk = (time.monotonic(), used)
        used = self._disk[1]
        return EnvironmentMetrics(percent, memory, used.bytes, used.files, used.whole)

    async def expose(self, port: int) -> str:
        self._require()
        return await self._exposures.open(port)

    async def terminate(self) -> None:
        await self._exposures.close()
        await self.still()
        await asyncio.to_thread(at.remove, self._folders)

    async def detach(self) -> None:
        """Close what belongs to this process; the environment stays."""
        await self._exposures.close()

    def _box(self, env: Mapping[str, str] | None, cwd: str | None, *, network: bool, dies_with_parent: bool) -> Box:
        return Box(
            folders=self._folders,
            furniture=self._furniture,
            env=dict(env or {}),
            cwd=cwd or at.WORK,
            sockets=str(self._sockets) if network else None,
            own=str(self._folders.own) if network and self._folders.own.is_dir() else None,
            dies_with_parent=dies_with_parent,
        )

    def _launched(self, name: str) -> Launched:
        return Launched(self._folders.launched, check_name(name))

    def _running(self) -> Sequence[str]:
        names = sorted(entry.stem for entry in self._folders.launched.glob("*.status"))
        return [name for name in names if self._launched(name).liveness() is Liveness.RUNNING]

    def _require(self) -> None:
        if not self._folders.spec.is_file():
            raise EnvironmentGone(f"the environment {self._id} is not there any more")

    def _cpu_now(self) -> tuple[float, float]:
        return time.monotonic(), sum(one.cpu_seconds for one in members(self._folders.home))


def write_json(path: Path, value: object) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(value), encoding="utf-8")
    partial.replace(path)
