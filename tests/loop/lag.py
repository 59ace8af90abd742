"""How long each callback holds the event loop of this process, and how late a heartbeat comes.

Judged is the time that a callback computes (`time.thread_time`): a machine that others use makes everything late, and
that is no fault of ours. What other threads of the process do while they hold the interpreter makes the heartbeat late
and not the callback: of that lateness counts as much as the process has computed meanwhile.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import contextlib
import gc
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

BEAT_SECONDS = 0.005
SLOW_SECONDS = 0.03
LOOK_SECONDS = 0.01
DEEPEST = 40
WORST = 12


@dataclass
class Held:
    """A callback that held the loop."""

    name: str
    cpu_ms: float
    wall_ms: float
    collecting_ms: float = 0.0
    """Of it, looking for garbage."""
    stack: list[str] = field(default_factory=list)
    """Where it was seen, outermost first; empty where nobody could look, since C held the interpreter."""


@dataclass
class Lag:
    """What was seen since the last report."""

    callbacks: int = 0
    worst: list[Held] = field(default_factory=list)
    beats: int = 0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    computed_ms: float = 0.0
    """The most of a heartbeat's lateness in which this process computed, in whatever thread."""

    @property
    def held_ms(self) -> float:
        return self.worst[0].cpu_ms if self.worst else 0.0


class LoopWatch:
    """Of the loop that runs in the thread which makes it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._began = 0.0
        """When the callback that runs now has begun; 0 between two."""
        self._stack: list[str] = []
        self._collecting = self._collection_began = 0.0
        self._ended = threading.Event()
        self._held: list[Held] = []
        self._late: list[tuple[float, float]] = []
        self._callbacks = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        original = asyncio.events.Handle._run
        watch = self

        def timed(handle: asyncio.Handle) -> None:
            if threading.get_ident() != watch._thread:
                original(handle)
                return
            name = _name(handle)
            watch._collecting = 0.0
            watch._began, cpu = time.perf_counter(), time.thread_time()
            try:
                original(handle)
            finally:
                watch._note(name, time.thread_time() - cpu)

        asyncio.events.Handle._run = timed  # type: ignore[method-assign,assignment]
        gc.callbacks.append(self._collects)
        looker = threading.Thread(target=self._look, name="loop-watch", daemon=True)
        looker.start()
        try:
            yield
        finally:
            asyncio.events.Handle._run = original  # type: ignore[method-assign]
            gc.callbacks.remove(self._collects)
            self._ended.set()
            looker.join()

    async def beat(self) -> None:
        """Until cancelled."""
        while True:
            due, computed = time.perf_counter() + BEAT_SECONDS, time.process_time()
            await asyncio.sleep(BEAT_SECONDS)
            late = max(0.0, time.perf_counter() - due)
            self._late.append((late, min(late, time.process_time() - computed)))

    def take(self) -> Lag:
        """What was seen since the last call."""
        held, self._held = sorted(self._held, key=lambda one: -one.cpu_ms), []
        late, self._late = self._late, []
        seen, self._callbacks = self._callbacks, 0
        lates = sorted(wall for wall, _ in late) or [0.0]
        return Lag(
            callbacks=seen,
            worst=held[:WORST],
            beats=len(late),
            p99_ms=1000 * lates[min(len(lates) - 1, len(lates) * 99 // 100)],
            max_ms=1000 * lates[-1],
            computed_ms=1000 * max((computed for _, computed in late), default=0.0),
        )

    def _note(self, name: str, cpu: float) -> None:
        wall, self._began = time.perf_counter() - self._began, 0.0
        self._callbacks += 1
        if cpu >= SLOW_SECONDS:
            stack, self._stack = self._stack, []
            self._held.append(Held(name, 1000 * cpu, 1000 * wall, 1000 * self._collecting, stack))

    def _collects(self, phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collection_began = time.thread_time()
        else:
            self._collecting += time.thread_time() - self._collection_began

    def _look(self) -> None:
        """Where a slow callback is, from beside it."""
        while not self._ended.wait(LOOK_SECONDS):
            began = self._began
            if began and time.perf_counter() - began > SLOW_SECONDS:
                frame = sys._current_frames().get(self._thread)
                if frame is not None and self._began == began:
                    self._stack = _lines(frame)


def _name(handle: asyncio.Handle) -> str:
    callback: Any = getattr(handle, "_callback", None)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine: Any = owner.get_coro()
        return f"task {getattr(coroutine, '__qualname__', coroutine)}"
    return str(getattr(callback, "__qualname__", callback))


def _lines(frame: FrameType | None) -> list[str]:
    found: list[str] = []
    while frame is not None and len(found) < DEEPEST:
        code = frame.f_code
        found.append(f"{'/'.join(Path(code.co_filename).parts[-3:])}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return [line for line in reversed(found) if not line.startswith(("python3", "lib/python3"))]


def write(path: Path, lag: Lag) -> None:
    """Whole, or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(lag)), encoding="utf-8")
    part.replace(path)


def read(path: Path) -> Lag | None:
    """None while there is none; it is gone then."""
    with contextlib.suppress(FileNotFoundError):
        found = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        return Lag(**{**found, "worst": [Held(**one) for one in found["worst"]]})
    return None
