"""What signals bring about in many processes (Linux): a signal that was sent is not yet obeyed, and is waited for."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

FREEZE_SECONDS = 5.0
_LOOK_SECONDS = 0.002
_QUIET_LOOKS = 2
"""Without anything that moves: what was forked during a look is met in the next."""
_STOP = 1 << (signal.SIGSTOP - 1)
_AT_REST = "TtZX"


def send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def freeze(find: Callable[[], Iterable[int]], seconds: float = FREEZE_SECONDS) -> None:
    """SIGSTOP to all that are found, until none of them moves any more."""
    deadline = time.monotonic() + seconds
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
        moving = [pid for pid in find() if _moves(pid)]
        send(moving, signal.SIGSTOP)
        quiet = 0 if moving else quiet + 1
        time.sleep(_LOOK_SECONDS)


def is_still(pid: int) -> bool:
    """It does nothing more: it is stopped or dead, or will stop before it does anything."""
    state, stops = _state(pid)
    return stops or state in _AT_REST


def _moves(pid: int) -> bool:
    """Who waits for a child of its vfork (state D) takes the signal only afterwards: never, if the child is stopped."""
    state, stops = _state(pid)
    return state not in _AT_REST and not (stops and state == "D")


def _state(pid: int) -> tuple[str, bool]:
    """In which state it is, and whether a SIGSTOP waits for it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "X", False
    about = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return about.get("State", "X")[0], bool(int(about.get("ShdPnd", "0"), 16) & _STOP)


def kill(pids: Sequence[int], deadline: float) -> None:
    """SIGKILL in this order, and wait until they are dead: one that dies has lost all it could be known by before."""
    with contextlib.ExitStack() as stack:
        watched = []
        for pid in pids:
            with contextlib.suppress(OSError):
                descriptor = os.pidfd_open(pid)
                stack.callback(os.close, descriptor)
                watched.append(descriptor)
        send(pids, signal.SIGKILL)
        for descriptor in watched:
            wait_dead(descriptor, deadline - time.monotonic())


def wait_dead(pidfd: int, seconds: float) -> bool:
    """A pidfd becomes readable at death, also for a zombie that nobody waits for."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(max(0, int(seconds * 1000))))
