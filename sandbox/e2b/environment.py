"""Implements one environment in E2B's cloud over its line. Its key identifies it; the sandbox's id may change."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import blocked
from sandbox.e2b.cloud import Cloud
from sandbox.e2b.exposure import CloudExposures
from sandbox.e2b.faults import Unclear
from sandbox.e2b.inside import places
from sandbox.e2b.line import SandboxLine
from sandbox.e2b.operations import PYTHON, data_of, entry_of
from sandbox.e2b.settings import E2BSettings
from sandbox.e2b.watching import FRESH_SECONDS, GrowthWatch
from sandbox.errors import EnvironmentGone, NotThere, SandboxError, TooLarge
from sandbox.primitives import EnvironmentMetrics, ExecResult, Layout, Lease, Liveness, check_name
from sandbox.runner.safe_files import FileStat

READ_BYTES = 1 << 20
BLOCK = 1 << 18
TRANSFER_SECONDS = 600.0
SPARE_SECONDS = 15.0
KILL_SECONDS = 30.0
TRIES = 3
DENIED_LOG = f"{places.OUT}/{blocked.LOG}"
FORWARD = f'import sys; sys.path.insert(0, "{places.CODE}"); from sandbox.runner.forwarder import main; main()'


@dataclass(frozen=True)
class Ends:
    """The provider's part in the end, the rest and the return of an environment."""

    terminate: Callable[[], Awaitable[None]]
    resting: Callable[[], Awaitable[None]]
    rested: Callable[[], Awaitable[None]]
    rousing: Callable[[], Awaitable[None]]
    roused: Callable[[SandboxLine], Awaitable[None]]


class E2BEnvironment:
    """An environment in a sandbox. Another process needs no state of this object to use it."""

    def __init__(
        self, key: str, line: SandboxLine, cloud: Cloud, settings: E2BSettings, ends: Ends, egress: Sequence[str] | None
    ) -> None:
        self._key = key
        self._hosts = settings.hosts(egress)
        self._by_tunnel = settings.by_tunnel(egress)
        self._line = line
        self._cloud = cloud
        self._settings = settings
        self._ends = ends
        self._watches: set[GrowthWatch] = set()
        self._running: tuple[float, frozenset[str]] = (0.0, frozenset())
        self._over: frozenset[str] = frozenset()  # names that we ended; late words of a watch do not revive them
        self._exposures = CloudExposures(line, settings)

    @property
    def id(self) -> str:
        return self._key

    @property
    def layout(self) -> Layout:
        agent = self._settings.agent
        return Layout(places.HOME, places.WORK, places.OUT, places.RUNNER, agent, PYTHON, "/usr/bin/git")

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
        """Run a command once. If the line breaks, ask again with the same id for its result."""
        command = self._forwarded(argv) if network else list(argv)
        spec = {"argv": command, "env": _checked(env or {}), "cwd": cwd or places.WORK, "timeout": timeout}
        name = secrets.token_hex(12)
        await self._line.upload(name, json.dumps(spec).encode() + b"\n" + stdin)
        try:
            found = await self._line.call("run", seconds=timeout + SPARE_SECONDS, id=name, blob=name)
        except asyncio.CancelledError:
            self._line.soon("cancel", id=name)
            raise
        out, err = data_of(found["out"]), data_of(found["err"])
        return ExecResult(int(found["code"]), out, err, found["timed_out"] is True, found["truncated"] is True)

    async def launch(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        spec = {"argv": self._forwarded(argv), "env": _checked(env or {}), "cwd": cwd or places.WORK}
        blob = secrets.token_hex(12)
        await self._line.upload(blob, json.dumps(spec).encode())
        try:
            await self._line.call("launch", name=check_name(name), blob=blob)
        except SandboxError:
            # Perhaps only the answer was lost: then the blob is used up, and the name exists.
            if await self.liveness(name) is Liveness.ABSENT:
                raise

    async def liveness(self, name: str) -> Liveness:
        """Trust an open watch that has just reported `running`; else ask."""
        at, names = self._running
        if name in names and time.monotonic() - at < FRESH_SECONDS:
            return Liveness.RUNNING
        return Liveness((await self._line.call("liveness", name=check_name(name)))["state"])

    async def kill(self, name: str) -> None:
        await self._line.call("kill", seconds=KILL_SECONDS, name=check_name(name))
        self._forget({name})

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        parts: list[bytes] = []
        while limit > 0:
            asked = min(limit, READ_BYTES)
            part = data_of(await self._line.call("read", path=path, offset=offset, limit=asked))
            parts.append(part)
            offset, limit = offset + len(part), limit - len(part)
            if len(part) < asked:
                break
        return b"".join(parts)

    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        head = [{"path": path, "size": len(data), "executable": executable}]
        await self._put(json.dumps(head).encode() + b"\n" + data)

    async def write_many(self, files: Mapping[str, bytes], *, executable: Collection[str] = ()) -> None:
        head = [{"path": path, "size": len(data), "executable": path in executable} for path, data in files.items()]
        await self._put(json.dumps(head).encode() + b"\n" + b"".join(files.values()))

    async def upload(self, source: Path, path: str) -> None:
        size = (await asyncio.to_thread(source.stat)).st_size
        head = json.dumps([{"path": path, "size": size, "executable": False}]).encode() + b"\n"
        await self._put(lambda: _streamed(head, source))

    async def download(self, path: str, target: Path, *, max_bytes: int) -> int:
        """Download from a copy that no process inside can change meanwhile."""
        for attempt in range(TRIES):
            name = secrets.token_hex(12)
            found = await self._line.call("stage", seconds=TRANSFER_SECONDS, path=path, name=name, most=max_bytes)
            try:
                return await self._fetch(name, target, int(found["size"]))
            except Unclear:
                if attempt == TRIES - 1:
                    raise
            finally:
                with suppress(SandboxError):
                    await self._line.remove(f"{places.OUTGOING}/{name}")
        raise AssertionError("unreachable")

    async def stat(self, path: str) -> FileStat | None:
        [found] = (await self._line.call("stat", paths=[path]))["entries"]
        return None if found is None else entry_of(found)

    async def watch(self, path: str, size: int) -> AsyncGenerator[int, None]:
        watch = GrowthWatch(self._line, path, self._heard)
        self._watches.add(watch)
        try:
            async with aclosing(watch.sizes(size)) as sizes:
                async for one in sizes:
                    yield one
        finally:
            self._watches.discard(watch)

    async def is_running(self) -> bool:
        try:
            return await self._cloud.state(self._line.sandbox_id) == "running"
        except EnvironmentGone:
            return False

    async def extend(self, seconds: float) -> None:
        await self._line.extend(seconds)

    async def left(self) -> float | None:
        return await self._cloud.left(self._line.sandbox_id)

    async def still(self) -> None:
        _, running = self._running
        await self._line.call("still", seconds=KILL_SECONDS)
        self._forget(running)

    async def pause(self) -> None:
        # No stream may be open across a pause: a half-dead reader would block all others afterwards.
        await self._end_watches()
        await self._ends.resting()
        await self._cloud.pause(self._line.sandbox_id)
        self._line.forget()
        await self._ends.rested()

    async def resume(self) -> None:
        await self._ends.rousing()
        await self._line.connect()
        await self._ends.roused(self._line)

    async def metrics(self) -> EnvironmentMetrics:
        if (found := await self._cloud.metrics(self._line.sandbox_id)) is not None:
            return found
        now = await self._line.call("measure")
        return EnvironmentMetrics(float(now["cpu"]), int(now["memory"]), int(now["disk"]))

    async def lease(self) -> Lease | None:
        found = await self._cloud.look(self._line.sandbox_id)
        return found.lease(self._settings) if found.state == "running" else None

    async def expose(self, port: int) -> str:
        return await self._exposures.open(port)

    async def terminate(self) -> None:
        await self._end_watches()
        await self._exposures.close()
        await self._ends.terminate()
        await self._line.close()

    async def detach(self) -> None:
        """Close what belongs to this process; the environment stays."""
        await self._end_watches()
        await self._exposures.close()
        await self._line.close()

    async def _end_watches(self) -> None:
        for watch in list(self._watches):
            await watch.close()
        self._running = (0.0, frozenset())

    def _heard(self, names: frozenset[str]) -> None:
        self._running = (time.monotonic(), names - self._over)

    def _forget(self, ended: AbstractSet[str]) -> None:
        self._over |= ended
        self._running = (0.0, frozenset())

    def _forwarded(self, argv: Sequence[str]) -> list[str]:
        url = None if self._by_tunnel else self._settings.gateway_url
        gateway = ["--gateway-url", url] if url else ["--gateway", places.GATE_SOCKET]
        if self._settings.unmetered:
            gateway += ["--gateway-strip", self._settings.unmetered.path]
        ways = [*gateway, "--allow", ",".join(self._hosts), "--denied", DENIED_LOG]
        return [PYTHON, "-I", "-S", "-c", FORWARD, *ways, "--", *argv]

    async def _put(self, data: bytes | Callable[[], AsyncIterator[bytes]]) -> None:
        """Upload and put. If the second answer is lost, do both again."""
        for attempt in range(TRIES):
            blob = secrets.token_hex(12)
            await self._line.upload(blob, data)
            try:
                await self._line.call("put", seconds=TRANSFER_SECONDS, blob=blob)
            except NotThere:
                raise
            except SandboxError:
                if attempt == TRIES - 1:
                    raise
            else:
                return

    async def _fetch(self, name: str, target: Path, size: int) -> int:
        partial = target.with_name(f".{target.name}.{name[:12]}")
        found = 0
        try:
            with await asyncio.to_thread(partial.open, "xb") as file:
                async with aclosing(self._line.download(name)) as blocks:
                    async for block in blocks:
                        found += len(block)
                        if found > size:
                            raise TooLarge(f"{target.name}: more arrives than was announced")
                        await asyncio.to_thread(file.write, block)
            if found < size:
                raise Unclear("a download was cut off")
            await asyncio.to_thread(partial.replace, target)
        finally:
            partial.unlink(missing_ok=True)
        return found

    async def list(self, path: str) -> list[FileStat]:
        return [entry_of(one) for one in (await self._line.call("list", path=path))["entries"]]


def _checked(env: Mapping[str, str]) -> dict[str, Any]:
    if any("\0" in name or "=" in name or "\0" in value for name, value in env.items()):
        raise SandboxError("an environment variable contains a NUL byte, or its name an equals sign")
    return dict(env)


async def _streamed(head: bytes, source: Path) -> AsyncIterator[bytes]:
    yield head
    with await asyncio.to_thread(source.open, "rb") as file:
        while block := await asyncio.to_thread(file.read, BLOCK):
            yield block
