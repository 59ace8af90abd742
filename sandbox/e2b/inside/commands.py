"""Runs one short command for the host, once: another request with the same id gets the same result."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from sandbox.runner import family

from . import places
from .files import packed
from .hands import Refused, replace

OUTPUT_BYTES = 1 << 20
DRAIN_SECONDS = 1.0
KILL_SECONDS = 10.0
KEPT_SECONDS = 3600.0
READ_BYTES = 1 << 16


def run(request: dict[str, Any]) -> dict[str, Any]:
    folder = Path(places.RUNS, request["id"])
    try:
        folder.mkdir()
    except FileExistsError:
        return _result_of_another(folder)
    for entry in os.scandir(places.RUNS):
        with contextlib.suppress(OSError):
            if time.time() - entry.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(entry.path)
    replace(folder / "who", json.dumps([os.getpid(), family.born(os.getpid())]))
    blob = Path(places.INCOMING, request["blob"])
    with blob.open("rb") as data:
        spec, stdin = json.loads(data.readline()), data.read()
    blob.unlink()
    document = _Run(spec, stdin).result()
    replace(folder / "result", json.dumps(document))
    return document


def cancel(request: dict[str, Any]) -> dict[str, Any]:
    """End a command for whose result nobody waits any more."""
    folder = Path(places.RUNS, request["id"])
    with contextlib.suppress(OSError, ValueError):
        pid, born = json.loads((folder / "who").read_bytes())
        if family.born(pid) == born:
            family.end_descendants(pid, KILL_SECONDS)
    return {}


def _result_of_another(folder: Path) -> dict[str, Any]:
    """Wait for the result of the process that runs it, or has run it, for a caller who lost the line to that one."""
    while True:
        try:
            pid, born = json.loads((folder / "who").read_bytes())
            alive = family.born(pid) == born
        except (OSError, ValueError):
            alive = time.time() - folder.stat().st_mtime < 2  # it may have only just begun
        with contextlib.suppress(OSError, ValueError):
            found: dict[str, Any] = json.loads((folder / "result").read_bytes())
            return found
        if not alive:
            raise Refused("busy", "a command was cut off")
        time.sleep(0.02)


def _bound() -> None:
    family.die_with_parent()
    family.climb_no_more()


class _Run:
    def __init__(self, spec: dict[str, Any], stdin: bytes) -> None:
        self._spec = spec
        self._unsent = memoryview(stdin)
        self._kept: dict[int, bytearray] = {}
        self._truncated = False
        self._selector = selectors.DefaultSelector()

    def result(self) -> dict[str, Any]:
        if not Path(self._spec["cwd"]).is_dir():
            raise Refused("bad", f"the folder {self._spec['cwd']} is not there")
        family.adopt_orphans()
        try:
            process = self._start()
        except OSError as error:
            code = 126 if isinstance(error, PermissionError) else 127
            return self._document(code, b"", f"{self._spec['argv'][0]}: {error.strerror}\n".encode(), timed_out=False)
        assert process.stdout is not None and process.stderr is not None
        streams = (self._listen(process.stdout), self._listen(process.stderr))
        self._feed(process)
        timed_out = self._wait(process)
        family.end_descendants(os.getpid(), KILL_SECONDS)
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._selector.get_map() and time.monotonic() < deadline and self._serve(0.05):
            pass
        code = process.returncode if process.returncode is not None else -signal.SIGKILL
        out, err = (bytes(self._kept[stream]) for stream in streams)
        return self._document(code if code >= 0 else 128 - code, out, err, timed_out=timed_out)

    def _start(self) -> subprocess.Popen[bytes]:
        drop: Any = places.drop()
        return subprocess.Popen(
            self._spec["argv"],
            cwd=self._spec["cwd"],
            env=places.environment(self._spec["env"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_bound,  # noqa: PLW1509 - one thread only
            **drop,
        )

    def _listen(self, pipe: IO[bytes]) -> int:
        os.set_blocking(pipe.fileno(), False)
        kept = self._kept[pipe.fileno()] = bytearray()

        def take() -> None:
            data = os.read(pipe.fileno(), READ_BYTES)
            if not data:
                self._selector.unregister(pipe)
            room = OUTPUT_BYTES - len(kept)
            self._truncated = self._truncated or len(data) > room
            kept.extend(data[:room])

        self._selector.register(pipe, selectors.EVENT_READ, take)
        return pipe.fileno()

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        pipe = process.stdin
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)

        def send() -> None:
            with contextlib.suppress(BlockingIOError):
                try:
                    self._unsent = self._unsent[os.write(pipe.fileno(), self._unsent[:READ_BYTES]) :]
                except BrokenPipeError:
                    self._unsent = self._unsent[:0]
            if not self._unsent:
                self._selector.unregister(pipe)
                with contextlib.suppress(OSError):
                    pipe.close()

        if self._unsent:
            self._selector.register(pipe, selectors.EVENT_WRITE, send)
        else:
            pipe.close()

    def _wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the end; True if the time ran out."""
        deadline = time.monotonic() + self._spec["timeout"]
        while process.poll() is None:
            if time.monotonic() >= deadline:
                family.send([process.pid], signal.SIGKILL)
                process.wait()
                return True
            self._serve(0.02 if len(self._selector.get_map()) < 2 else 0.05)
        return False

    def _serve(self, seconds: float) -> bool:
        if not self._selector.get_map():
            time.sleep(min(seconds, 0.005))
            return False
        ready = self._selector.select(seconds)
        for key, _ in ready:
            take: Callable[[], None] = key.data
            with contextlib.suppress(BlockingIOError):
                take()
        return bool(ready)

    def _document(self, code: int, out: bytes, err: bytes, *, timed_out: bool) -> dict[str, Any]:
        found = {"code": code, "out": packed(out), "err": packed(err)}
        return {**found, "timed_out": timed_out, "truncated": self._truncated}
