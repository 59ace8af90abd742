"""Supervises one agent process: feeds its stdin, watches for its final line, ends it on request or in time."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from . import family
from .inbox import Inbox, InboxMessage
from .outputs import CappedLog, FinalLines

POLL_SECONDS = 0.025
DEFAULT_GRACE = 10.0
MOST_GRACE = 120.0
EXIT_TIMED_OUT = 124
FAMILY_SECONDS = 5.0


class Supervisor:
    """Runs one loop in one thread, so that each message is either delivered or left, never half."""

    def __init__(self, folder: Path, spec: dict[str, Any], environment: dict[str, str]) -> None:
        self._folder = folder
        self._spec = spec
        self._started = time.monotonic()
        self._deadline = self._started + float(spec["timeout_seconds"])
        self._kill_at: float | None = None
        self._asked_to_stop = False
        self.timed_out = False
        self._inbox = Inbox(folder)
        self._message: InboxMessage | None = None
        self._unsent = b""
        self._final = False
        self._process = self._start(environment)
        self._log = CappedLog(self._take(self._process.stderr), folder / "stderr.log")
        self._lines = FinalLines(folder / "stream.jsonl", str(spec["final_type"]))
        self._stdin: int | None = self._take(self._process.stdin).fileno()
        os.set_blocking(self._stdin, False)

    def request_stop(self, *_: object) -> None:
        self._asked_to_stop = True

    def run(self) -> int:
        """Return the agent's exit code, once all its processes are gone."""
        try:
            while self._process.poll() is None:
                self._step()
        finally:
            family.kill_group(self._process.pid)
            code = self._process.wait()
            family.end_descendants(os.getpid(), FAMILY_SECONDS)
        self._close_stdin()
        self._log.close()
        self._lines.close()
        self.timed_out = self.timed_out or code == EXIT_TIMED_OUT
        return code if code >= 0 else 128 - code

    @property
    def stopped(self) -> bool:
        return self._asked_to_stop and not self.timed_out

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def _start(self, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self._folder / "stream.jsonl").open("ab") as stream:
            return subprocess.Popen(
                self._spec["argv"],
                cwd=self._spec["cwd"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )

    def _step(self) -> None:
        self._feed()
        self._final = self._lines.seen() or self._final
        if self._final:
            self._close_if_idle()
        self._end_if_due()
        family.reap(besides=self._process.pid)
        # Sleep until there is something to read or to write, or until the next look at the folders.
        readable = [self._log] if self._log.open else []
        writable = [self._stdin] if self._stdin is not None and self._unsent else []
        if select.select(readable, writable, [], POLL_SECONDS)[0]:
            self._log.drain()

    def _feed(self) -> None:
        while self._stdin is not None and self._kill_at is None:
            if not self._unsent and not self._next():
                return
            try:
                sent = os.write(self._stdin, self._unsent)
            except BlockingIOError:
                return
            except BrokenPipeError:
                self._close_stdin()
                return
            self._unsent = self._unsent[sent:]
            if not self._unsent and self._message:
                self._inbox.acknowledge(self._message)
                self._message = None

    def _next(self) -> bool:
        self._message = self._inbox.take()
        if self._message is None:
            return False
        self._unsent = self._message.line
        if not self._message.quiet:
            self._final = False  # another final line will follow, after this message or within the present answer
        return True

    def _close_if_idle(self) -> None:
        """Close stdin after the final line, unless a message came meanwhile. `closed` is the last word."""
        if self._stdin is None or self._unsent or self._inbox.waiting():
            return
        closing = self._folder / "closing"
        with contextlib.suppress(FileExistsError):
            closing.mkdir()
        if self._inbox.waiting():
            closing.rmdir()
            return
        closing.rename(self._folder / "closed")
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            self._stdin = None
            with contextlib.suppress(OSError):  # a broken pipe: the agent closed its end first
                self._take(self._process.stdin).close()

    def _end_if_due(self) -> None:
        now = time.monotonic()
        if self._kill_at is not None:
            if now >= self._kill_at:
                family.kill_group(self._process.pid)
            return
        grace = self._stop_grace()
        if grace is None and now >= self._deadline:
            self.timed_out = True
            grace = float(self._spec["grace_seconds"])
        if grace is not None:
            self._kill_at = now + grace
            family.kill_group(self._process.pid, signal.SIGTERM)

    def _stop_grace(self) -> float | None:
        try:
            asked = json.loads((self._folder / "stop").read_bytes())
            self._asked_to_stop = True
            return min(max(0.0, float(asked["grace"])), MOST_GRACE)
        except FileNotFoundError:
            return DEFAULT_GRACE if self._asked_to_stop else None
        except (OSError, ValueError, KeyError, TypeError):
            return DEFAULT_GRACE

    @staticmethod
    def _take(pipe: Any) -> Any:
        assert pipe is not None
        return pipe
