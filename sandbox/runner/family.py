"""Reads the process table (Linux), and stops or ends many processes together.

It does not use psutil: this also runs inside, where only the standard library exists. And psutil shows no pending
signals, and its start times move when the clock is changed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
FREEZE_SECONDS = 5.0
_LOOK_SECONDS = 0.002
_QUIET_LOOKS = 2  # looks in which no process moves; the second finds processes forked during the first
_STOP = 1 << (signal.SIGSTOP - 1)
_AT_REST = "TtZX"
_DEAD = ("Z", "X")


def adopt_orphans() -> None:
    """Become the parent of orphans in place of init, so that no tree escapes by a double fork."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def climb_no_more() -> None:
    """Keep programs from changing their user, whatever bits and capabilities their files have."""
    if _prctl(PR_SET_NO_NEW_PRIVS, 1) != 0:
        raise OSError("a command could not be kept from becoming root")


def _prctl(option: int, value: int) -> int:
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))
    return -1


def stat_fields(pid: int) -> list[str]:
    """Return /proc/PID/stat from its third field on."""
    return fields_of(Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace"))


def fields_of(stat: str) -> list[str]:
    """Split after the command's name, which is in brackets and may contain brackets and spaces itself."""
    return stat.rpartition(")")[2].split()


def born(pid: int) -> str | None:
    """Return a start time, which tells a process from a later one with its number; None if it is dead."""
    with contextlib.suppress(OSError, IndexError):
        fields = stat_fields(pid)
        return None if fields[0] in _DEAD else fields[19]
    return None


def living() -> Iterator[tuple[int, list[str]]]:
    """Yield each living process with the fields of its `stat`."""
    with contextlib.suppress(FileNotFoundError):  # no Linux
        for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough, and there may be thousands
            with contextlib.suppress(OSError, IndexError):
                if name.isdigit() and (fields := stat_fields(int(name)))[0] not in _DEAD:
                    yield int(name), fields


def descendants(ancestor: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for pid, fields in living():
        children.setdefault(int(fields[1]), []).append(pid)
    waiting = list(children.get(ancestor, ()))
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(children.get(pid, ()))


def all_of(user: int) -> Iterator[int]:
    for pid, _ in living():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}").stat().st_uid == user:
                yield pid


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def kill_group(group: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill(pids: Sequence[int], deadline: float) -> None:
    """Send SIGKILL in this order and wait for the deaths, because a dying process can no longer be identified."""
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
        if not watched:
            time.sleep(_LOOK_SECONDS)


def end(find: Callable[[], Iterable[int]], seconds: float) -> bool:
    """Kill in the order found until none is left, even if the tree forks while it dies. False: some are left."""
    deadline = time.monotonic() + seconds
    while left := list(find()):
        if time.monotonic() > deadline:
            return False
        kill(left, deadline)
    return True


def end_descendants(ancestor: int, seconds: float) -> bool:
    """Kill all descendants; also collect our own dead children."""
    ended = end(lambda: descendants(ancestor), seconds)
    if ancestor == os.getpid():
        reap()
    return ended


def reap(besides: int = 0) -> dict[int, int]:
    """Collect dead children with their wait status; stop at `besides`, whose exit code the caller waits for."""
    found: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while one := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if one.si_pid == besides:
                break
            found[one.si_pid] = os.waitpid(one.si_pid, 0)[1]
    return found


def wait_dead(pidfd: int, seconds: float) -> bool:
    """Wait for a death: a pidfd then becomes readable, also for an uncollected zombie."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(max(0, int(seconds * 1000))))


def freeze(find: Callable[[], Iterable[int]], seconds: float = FREEZE_SECONDS) -> None:
    """Send SIGSTOP to all that are found, until none of them moves any more."""
    deadline = time.monotonic() + seconds
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
        states = ((pid, *_state(pid)) for pid in find())
        # A parent in vfork (state D) takes the signal only when its child is done: never, if the child is stopped.
        moving = [pid for pid, state, stops in states if state not in _AT_REST and not (stops and state == "D")]
        send(moving, signal.SIGSTOP)
        quiet = 0 if moving else quiet + 1
        time.sleep(_LOOK_SECONDS)


def are_still(pids: Sequence[int]) -> bool:
    """Decide whether each is stopped or dead, or will stop before it does anything; False if there are none."""
    states = [_state(pid) for pid in pids]
    return bool(states) and all(stops or state in _AT_REST for state, stops in states)


def _state(pid: int) -> tuple[str, bool]:
    """Return a process's state, and whether a SIGSTOP is pending."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "X", False
    about = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return about.get("State", "X")[0], bool(int(about.get("ShdPnd", "0"), 16) & _STOP)


def exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
