"""`python -m tests.crash.nursery`: has imported the service, and forks a process for each service that is asked for.

To import the service takes a second of computing, and the tests that kill it start hundreds. It is a process of its own
all the same: nothing has run in it when it is forked, it has its own number, and it dies alone.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import bot.__main__
from tests.crash import service

LATER = ("dbos", "githubkit", "githubkit.cache", "githubkit.exception")
"""What the service imports only when it needs it, which is at once."""
ROOT = Path(__file__).parent.parent.parent
MOST_BYTES = 128 << 10


class ForkedProcess:
    """What a test sees of such a process; the same names as asyncio's."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader, report: asyncio.StreamReader) -> None:
        self.pid = pid
        self.stdout: asyncio.StreamReader | None = stdout
        self._handle: int | None = None
        self._end = asyncio.ensure_future(report.readline())
        with contextlib.suppress(ProcessLookupError):  # it was quick to die
            self._handle = handle = os.pidfd_open(pid)
            self._end.add_done_callback(lambda _: os.close(handle))

    @property
    def returncode(self) -> int | None:
        return int(self._end.result()) if self._end.done() else None

    async def wait(self) -> int:
        return int(await asyncio.shield(self._end))

    def send_signal(self, number: int) -> None:
        if self._handle is None or self._end.done():
            raise ProcessLookupError(self.pid)
        signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def forked(arguments: Sequence[str], environment: Mapping[str, str], log: int) -> ForkedProcess:
    """Start `tests.crash.service N` or `bot COMMAND`, as `python -m` would; errors go to the descriptor."""
    stdout, report = os.pipe(), os.pipe()
    message = json.dumps([list(arguments), dict(environment)]).encode()
    try:
        socket.send_fds(_nursery(), [message], [stdout[1], log, report[1]])
    finally:
        os.close(stdout[1])
        os.close(report[1])
    said, told = await _reader(stdout[0]), await _reader(report[0])
    return ForkedProcess(int(await told.readline()), said, told)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", buffering=0))
    return reader


@functools.cache
def _nursery() -> socket.socket:
    """The one of this process, which ends when we do."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"],
            cwd=ROOT,
            stdin=its.fileno(),
            stdout=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"]},
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def tend(control: socket.socket) -> list[str]:
    """Fork whenever we are asked, and tell of each end. Return in a child, with its arguments, or when all is over."""
    waiting = select.poll()
    waiting.register(control, select.POLLIN)
    children: dict[int, tuple[int, int]] = {}
    while True:
        for handle, _ in waiting.poll():
            if handle in children:
                pid, report = children.pop(handle)
                waiting.unregister(handle)
                _, status = os.waitpid(pid, 0)
                with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
                    os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
                os.close(report)
                os.close(handle)
                continue
            message, (stdout, stderr, report), _, _ = _asked(control)
            if not message:
                return []
            arguments, environment = json.loads(message)
            if (pid := os.fork()) == 0:
                control.detach()
                _become(stdout, stderr, environment)
                return list(arguments)
            os.write(report, b"%d\n" % pid)
            os.close(stdout)
            os.close(stderr)
            children[child := os.pidfd_open(pid)] = (pid, report)
            waiting.register(child, select.POLLIN)


def _asked(control: socket.socket) -> tuple[bytes, tuple[int, int, int], int, object]:
    message, found, flags, address = socket.recv_fds(control, MOST_BYTES, 3)
    stdout, stderr, report = found or (-1, -1, -1)
    return message, (stdout, stderr, report), flags, address


def _become(stdout: int, stderr: int, environment: Mapping[str, str]) -> None:
    """Be as if just started: with its own environment and outputs, and nothing else open."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, source in enumerate((nothing, stdout, stderr)):
        os.dup2(source, number)
    os.closerange(3, max(int(one.name) for one in Path("/proc/self/fd").iterdir()) + 1)
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    for name in LATER:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a fork has one thread only"
    match tend(socket.socket(fileno=os.dup(0))):
        case ["tests.crash.service", kill_at]:
            asyncio.run(service.main(int(kill_at)))
        case ["bot", *command]:
            sys.argv = ["forgehand", *command]
            bot.__main__.main()
