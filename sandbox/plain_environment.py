"""Implements an environment of plain processes: a folder, and the processes started in it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import blocked
from sandbox import plain_processes as processes
from sandbox.errors import EnvironmentBusy, EnvironmentGone, NotThere, SandboxError
from sandbox.files import Capped, Files, HostEnvironment, feed, measured_disk
from sandbox.primitives import EnvironmentMetrics, ExecResult, Layout, Liveness
from sandbox.runner.safe_files import SafePath

WATCH_POLL_SECONDS = 0.02
WATCH_SILENCE_SECONDS = 1.0
LAUNCH_SECONDS = 10.0
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
LAUNCH = (
    # The child itself takes the name and records who it is before it becomes the command, so no crash of ours matters.
    'mkdir "$0" 2>/dev/null || exit 0; cat /proc/$$/stat > "$0/stat.tmp"; mv "$0/stat.tmp" "$0/stat"; exec "$@"'
)


@dataclass(frozen=True)
class PlainSettings:
    root: Path
    sockets: Path
    agent_binary: Path
    python: str = sys.executable
    git: str = "git"

    @property
    def ways(self) -> Path:
        """Folder of the host's KEY/egress.sock for environments that may reach more hosts."""
        return self.root.parent / "ways"


class PlainEnvironment(HostEnvironment):
    def __init__(self, settings: PlainSettings, environment_id: str) -> None:
        super().__init__(environment_id, Files(self._place, None))
        self._settings = settings
        self.folder = settings.root / environment_id
        self._mark = str(self.folder)  # includes the root, because another root may have the same id

    @property
    def layout(self) -> Layout:
        settings = self._settings
        home, work, out, runner = (str(self.folder / name) for name in ("home", "work", "out", "runner"))
        git = shutil.which(settings.git) or settings.git
        return Layout(home, work, out, runner, str(settings.agent_binary), settings.python, git)

    def _place(self, path: str) -> SafePath:
        found = SafePath.below(path, [str(self.folder)])
        if found is None:
            raise NotThere(f"{path[:200]!r} is not in this environment")
        return found

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
        folder = cwd or self.layout.work
        self._require(folder)
        mark = f"{self._mark}/exec-{os.urandom(8).hex()}"
        try:
            process = await asyncio.create_subprocess_exec(
                *(self._forwarded(argv) if network else argv),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(mark, env),
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            return ExecResult(127, b"", f"{argv[0]}: {error.strerror}".encode())
        except ValueError as error:
            raise SandboxError(f"this cannot be run: {error}") from None
        out, errors = Capped(), Capped()
        reading = asyncio.gather(out.take(process.stdout), errors.take(process.stderr))
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                await feed(process, stdin)
                await process.wait()
        except TimeoutError:
            timed_out = True
        finally:
            await asyncio.to_thread(processes.kill_all, mark)
        await reading
        truncated = out.truncated or errors.truncated
        return ExecResult(await process.wait(), bytes(out.data), bytes(errors.data), timed_out, truncated)

    async def launch(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        self._require()
        if not NAME.fullmatch(name):
            raise SandboxError(f"{name[:80]!r} cannot be the name of a process")
        record = self._record(name)
        record.parent.mkdir(exist_ok=True)
        with (record.parent / f"{name}.log").open("ab") as log:
            # `setsid --fork` returns at once: the command is nobody's child and outlives us.
            process = await asyncio.create_subprocess_exec(
                *("setsid", "--fork", "/bin/sh", "-c", LAUNCH, str(record), *self._forwarded(argv)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(f"{self._mark}/{name}", env),
                cwd=cwd or self.layout.work,
            )
        await process.wait()
        async with asyncio.timeout(LAUNCH_SECONDS):
            while not (record / "stat").exists():  # noqa: ASYNC110 - written by another process
                await asyncio.sleep(0.002)

    async def liveness(self, name: str) -> Liveness:
        self._require()
        record = self._record(name)
        if not record.exists():
            return Liveness.ABSENT
        try:
            then = processes.parse_stat((record / "stat").read_text(errors="replace"))
        except (OSError, ValueError, IndexError):
            return Liveness.EXITED
        now = processes.stat_of(then.pid)
        same = now is not None and now.alive and now.started == then.started
        return Liveness.RUNNING if same else Liveness.EXITED

    async def kill(self, name: str) -> None:
        if not await asyncio.to_thread(processes.kill_all, f"{self._mark}/{name}"):
            raise EnvironmentBusy(f"{name} does not end")

    async def watch(self, path: str, size: int) -> AsyncGenerator[int, None]:
        known, silent = size, 0.0
        while True:
            found = self.files.stat(path)
            now = found.size if found else 0
            if now != known or silent >= WATCH_SILENCE_SECONDS:
                known, silent = now, 0.0
                yield now
            await asyncio.sleep(WATCH_POLL_SECONDS)
            silent += WATCH_POLL_SECONDS

    async def is_running(self) -> bool:
        return self.folder.is_dir()

    async def extend(self, seconds: float) -> None:
        """A folder has no lifetime."""

    async def still(self) -> None:
        if not await asyncio.to_thread(processes.kill_all, self._mark):
            raise EnvironmentBusy(f"the processes of {self._id} do not end")

    async def pause(self) -> None:
        await asyncio.to_thread(processes.freeze, self._mark)

    async def resume(self) -> None:
        await asyncio.to_thread(processes.thaw, self._mark)

    async def metrics(self) -> EnvironmentMetrics:
        before = await asyncio.to_thread(_load, self._mark)
        await asyncio.sleep(0.1)
        after = await asyncio.to_thread(_load, self._mark)
        used = await asyncio.to_thread(measured_disk, self.folder)
        percent = max(0.0, (after[0] - before[0]) / 0.1 * 100)
        return EnvironmentMetrics(percent, after[1], used.bytes, used.files, used.whole)

    async def expose(self, port: int) -> str:
        return f"127.0.0.1:{port}"

    async def terminate(self) -> None:
        await self.still()
        await asyncio.to_thread(remove_tree, self.folder)
        await asyncio.to_thread(remove_tree, self._settings.ways / self._id)

    def _record(self, name: str) -> Path:
        return self.folder / "launched" / name

    def _require(self, cwd: str | None = None) -> None:
        if not self.folder.is_dir():
            raise EnvironmentGone(f"the environment {self._id} is not there")
        if cwd is not None and not Path(cwd).is_dir():
            raise SandboxError(f"there is no folder {cwd}")

    def _forwarded(self, argv: Sequence[str]) -> Sequence[str]:
        sockets = self._settings.sockets
        own = self._settings.ways / self._id
        egress = (own if own.is_dir() else sockets) / "egress.sock"
        forwarder = [self._settings.python, "-E", "-s", "-B", str(self.folder / "runner" / "forwarder.py")]
        forwarder += ["--gateway", str(sockets / "gateway.sock"), "--egress", str(egress)]
        return [*forwarder, "--denied", str(self.folder / "out" / blocked.LOG), "--", *argv]

    def _environment(self, mark: str, env: Mapping[str, str] | None) -> dict[str, str]:
        """Build a command's variables; it inherits only our PATH."""
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": self.layout.home, "LANG": "C.UTF-8"}
        return {**own, "TMPDIR": str(self.folder / "tmp"), **(env or {}), processes.MARK: mark}


def _load(mark: str) -> tuple[float, int]:
    found = list(processes.marked(mark))
    return sum(one.seconds for one in found), sum(one.memory for one in found)


def remove_tree(folder: Path) -> None:
    """Remove a folder, even if folders in it were made unreadable."""
    for current, folders, _ in os.walk(folder):
        for name in folders:
            inner = Path(current) / name
            if not inner.is_symlink():
                inner.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
