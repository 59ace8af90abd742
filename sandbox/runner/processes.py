"""Runs one command with a time limit and bounded output, so that no repository's settings can hang or flood us."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

from . import family

READ_SIZE = 65536


class CommandLimits(NamedTuple):
    seconds: float
    keep: int = READ_SIZE  # how many of each stream's last bytes
    also: Callable[[bytes], object] | None = None  # gets all bytes as they come


class Finished(NamedTuple):
    exit_code: int
    output: bytes
    errors: bytes
    timed_out: bool
    seconds: float


class OutputTail:
    """Keeps the last bytes of a stream, and passes all of them to `also`."""

    def __init__(self, keep: int, also: Callable[[bytes], object] | None = None) -> None:
        self._keep = keep
        self._also = also
        self._held = 0
        self._parts: deque[bytes] = deque()

    def add(self, data: bytes) -> None:
        self._parts.append(data)
        self._held += len(data)
        if self._also:
            self._also(data)
        while self._held - len(self._parts[0]) >= self._keep:
            self._held -= len(self._parts.popleft())

    def text(self) -> bytes:
        return b"".join(self._parts)[-self._keep :]


def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    limits: CommandLimits,
    stdin: IO[bytes] | None = None,
    merged: bool = False,
) -> Finished:
    """Run a command; at the end of its time, kill the whole process group."""
    started = time.monotonic()
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        start_new_session=True,
    ) as process:
        tails = {pipe: OutputTail(limits.keep, limits.also) for pipe in (process.stdout, process.stderr) if pipe}
        try:
            timed_out = not _drain(process, tails, started + limits.seconds)
        finally:
            family.kill_group(process.pid)
        exit_code = process.wait()
        output, errors = (tails[pipe].text() if pipe else b"" for pipe in (process.stdout, process.stderr))
    return Finished(exit_code, output, errors, timed_out, time.monotonic() - started)


def _drain(process: subprocess.Popen[bytes], tails: Mapping[IO[bytes], OutputTail], deadline: float) -> bool:
    """Read until the command ends, even if a child of it keeps the pipes open. False if the time ran out."""
    with selectors.DefaultSelector() as selector:
        for pipe in tails:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, tails[pipe])
        while time.monotonic() < deadline:
            ended = process.poll() is not None
            if not selector.get_map():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
                break
            ready = selector.select(0 if ended else min(0.05, max(0.0, deadline - time.monotonic())))
            for key, _ in ready:
                data = os.read(key.fd, READ_SIZE)
                if data:
                    key.data.add(data)
                else:
                    selector.unregister(key.fileobj)
            if ended and not ready:
                return True
    return process.poll() is not None
