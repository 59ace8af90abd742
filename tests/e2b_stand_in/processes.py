"""The processes that envd started on one machine: output, input, ends, and for how long an end is remembered."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from tests.e2b_stand_in.clock import Clock, Timer
from tests.e2b_stand_in.fan import Event, Fan
from tests.e2b_stand_in.link import GuestError
from tests.e2b_stand_in.machine import Machine

CHUNK = 32 << 10
REMEMBERED = 30.0


@dataclass(frozen=True)
class Order:
    """What a client asked to have started."""

    argv: Sequence[str]
    config: dict[str, Any]
    env: dict[str, str]
    cwd: str
    stdin: bool
    user: str
    tag: str | None = None
    timeout: float | None = None


class Process:
    """Ends when its output pipes have closed, or at a kill through envd, whoever holds the pipes then."""

    def __init__(self, machine: Machine, order: Order) -> None:
        self.machine = machine
        self.order = order
        self.pid = 0
        self.fan = Fan()
        self.ended = asyncio.Event()
        self._end: Event | None = None
        self._cut = asyncio.Event()
        self._stdin: int | None = None
        self._outputs: dict[int, str] = {}
        self._writing = asyncio.Lock()

    async def start(self) -> None:
        out, out_inside = os.pipe()
        err, err_inside = os.pipe()
        inside = [out_inside, err_inside]
        if self.order.stdin:
            stdin_inside, self._stdin = os.pipe()
            inside.append(stdin_inside)
            os.set_blocking(self._stdin, False)
        self._outputs = {out: "stdout", err: "stderr"}
        order = self.order
        try:
            argv, env = list(order.argv), dict(order.env)
            answer, _ = await self.machine.link.ask(
                "spawn", fds=inside, argv=argv, env=env, cwd=order.cwd, user=order.user
            )
        except BaseException:
            self._close()
            raise
        finally:
            for fd in inside:
                os.close(fd)
        self.pid = answer["pid"]

    async def run(self) -> Event:
        """Pumps its output out and gives its end."""
        pumps = asyncio.gather(*(self._pump(fd, name) for fd, name in self._outputs.items()))
        cut = asyncio.ensure_future(self._cut.wait())
        both: list[asyncio.Future[Any]] = [pumps, cut]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            self._close()
        return end_event(await self.machine.exit_of(self.pid))

    def cut(self) -> None:
        """Nobody waits for its output any more."""
        self._cut.set()

    async def write(self, data: bytes) -> None:
        async with self._writing:
            while data:
                if self._stdin is None:
                    raise GuestError("internal", "error writing to stdin: stdin not enabled or closed")
                try:
                    data = data[os.write(self._stdin, data) :]
                except BlockingIOError:
                    await _ready(self._stdin, write=True)
                except OSError as error:
                    message = f"error writing to stdin: error writing to stdin of process '{self.pid}': {error}"
                    raise GuestError("internal", message) from error

    def close_stdin(self) -> None:
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    def _close(self) -> None:
        self.close_stdin()
        for fd in self._outputs:
            os.close(fd)
        self._outputs = {}

    async def _pump(self, fd: int, name: str) -> None:
        os.set_blocking(fd, False)
        while True:
            try:
                data = os.read(fd, CHUNK)
            except BlockingIOError:
                await _ready(fd, write=False)
                continue
            if not data:
                return
            await self.fan.send({"data": {name: base64.b64encode(data).decode()}})


class Processes:
    """envd's table of them."""

    def __init__(self, machine: Machine, clock: Clock) -> None:
        self._machine = machine
        self._clock = clock
        self._live: dict[int, Process] = {}
        self._ended: dict[int, tuple[float, str | None, Event]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def live(self) -> list[Process]:
        return list(self._live.values())

    async def start(self, process: Process) -> None:
        await process.start()
        self._ended.pop(process.pid, None)
        self._live[process.pid] = process
        timer = None
        if process.order.timeout is not None:
            timer = self._clock.at(self._clock.now() + process.order.timeout, lambda: self._overdue(process))
        self._begin(self._see_off(process, timer))

    def find(self, selector: dict[str, Any]) -> Process:
        """The live one; the last started of a tag."""
        for process in reversed(self.live):
            if process.pid == selector.get("pid") or (process.order.tag and process.order.tag == selector.get("tag")):
                return process
        kind = "pid" if "pid" in selector else "tag"
        raise GuestError("not_found", f"process with {kind} {selector.get(kind)} not found")

    def end_of(self, selector: dict[str, Any]) -> tuple[int, Event] | None:
        """Of a process that is gone, while it is remembered."""
        for pid, (when, tag, event) in self._ended.items():
            if self._clock.now() - when < REMEMBERED and (pid == selector.get("pid") or tag == selector.get("tag", "")):
                return pid, event
        return None

    async def send_signal(self, process: Process, number: int) -> None:
        """To this one process: what it started lives on."""
        if process.ended.is_set():
            return
        process.cut()
        with contextlib.suppress(GuestError):
            await self._machine.link.ask("signal", pid=process.pid, signal=number)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _overdue(self, process: Process) -> None:
        """A machine that is frozen, also meanwhile, hears of it when it runs again: nobody waits for that."""
        killed = self._begin(self.send_signal(process, signal.SIGKILL))
        frozen = asyncio.ensure_future(self._machine.frozen.wait())
        await asyncio.wait({killed, frozen}, return_when=asyncio.FIRST_COMPLETED)
        frozen.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _see_off(self, process: Process, timer: Timer | None) -> None:
        try:
            event = await process.run()
        finally:
            self._clock.cancel(timer)
        self._ended[process.pid] = (self._clock.now(), process.order.tag, event)
        process.ended.set()
        self._live.pop(process.pid, None)
        await process.fan.send(event)
        await process.fan.close()


def end_event(status: int) -> Event:
    if status >= 0:
        said = f"exit status {status}"
        end: dict[str, Any] = {"exitCode": status, "exited": True, "status": said}
    else:
        said = f"signal: {'killed' if -status == signal.SIGKILL else signal.strsignal(-status)}".lower()
        end = {"exitCode": -1, "exited": False, "status": said}
    if status != 0:
        end["error"] = said
    return {"end": end}


async def _ready(fd: int, *, write: bool) -> None:
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)

    def tell() -> None:
        if not waiting.done():
            waiting.set_result(None)

    add(fd, tell)
    try:
        await waiting
    finally:
        remove(fd)
