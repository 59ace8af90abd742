"""The process table (Linux): who lives, who descends from whom, and how many processes are stopped or ended together.

By hand and not through psutil: this runs inside too, where there is the standard library alone, and psutil knows
neither a signal that is pending nor a start time that outlives a change of the clock.
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
_QUIET_LOOKS = 2  # without anything that moves: what was forked during a look is met in the next
_STOP = 1 << (signal.SIGSTOP - 1)
_AT_REST = "TtZX"
_DEAD = ("Z", "X")


def adopt_orphans() -> None:
    """Whatever our children leave behind comes to us, not to init: a tree cannot slip away by a double fork."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def climb_no_more() -> None:
    """From here on no program makes its user another one, whatever bits and capabilities its file has."""
    if _prctl(PR_SET_NO_NEW_PRIVS, 1) != 0:
        raise OSError("a command could not be kept from becoming root")


def _prctl(option: int, value: int) -> int:
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))
    return -1


def stat_fields(pid: int) -> list[str]:
    """/proc/PID/stat from its third field on."""
    return fields_of(Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace"))


def fields_of(stat: str) -> list[str]:
    """The command's name stands in brackets before them and may hold anything, brackets and spaces too."""
    return stat.rpartition(")")[2].split()


def born(pid: int) -> str | None:
    """Tells a process from a later one of the same number; None when there is none (or only its remains)."""
    with contextlib.suppress(OSError, IndexError):
        fields = stat_fields(pid)
        return None if fields[0] in _DEAD else fields[19]
    return None


def living() -> Iterator[tuple[int, list[str]]]:
    """All numbers, with the fields of their `stat`."""
    with contextlib.suppress(FileNotFoundError):  # no Linux
        for name in os.listdir("/proc"):  # noqa: PTH208 - names will do, and there may be thousands
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
        if not watched:
            time.sleep(_LOOK_SECONDS)


def end(find: Callable[[], Iterable[int]], seconds: float) -> bool:
    """Kill in the order found, until none is left: a tree that forks while it dies is followed. False: some are."""
    deadline = time.monotonic() + seconds
    while left := list(find()):
        if time.monotonic() > deadline:
            return False
        kill(left, deadline)
    return True


def end_descendants(ancestor: int, seconds: float) -> bool:
    """Our own remains are collected too."""
    ended = end(lambda: descendants(ancestor), seconds)
    if ancestor == os.getpid():
        reap()
    return ended


def reap(besides: int = 0) -> dict[int, int]:
    """Collect the children that have ended, with their wait status; not one whose exit code somebody waits for."""
    found: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while one := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if one.si_pid == besides:
                break
            found[one.si_pid] = os.waitpid(one.si_pid, 0)[1]
    return found


def wait_dead(pidfd: int, seconds: float) -> bool:
    """A pidfd becomes readable at death, also for a zombie that nobody waits for."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(max(0, int(seconds * 1000))))


def freeze(find: Callable[[], Iterable[int]], seconds: float = FREEZE_SECONDS) -> None:
    """SIGSTOP to all that are found, until none of them moves any more."""
    deadline = time.monotonic() + seconds
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
        moving = [pid for pid in find() if _moves(pid)]
        send(moving, signal.SIGSTOP)
        quiet = 0 if moving else quiet + 1
        time.sleep(_LOOK_SECONDS)


def are_still(pids: Sequence[int]) -> bool:
    """There are some, and each is stopped or dead, or will stop before it does anything."""
    states = [_state(pid) for pid in pids]
    return bool(states) and all(stops or state in _AT_REST for state, stops in states)


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


def exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
