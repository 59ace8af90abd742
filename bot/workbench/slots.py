"""Slots for runs at the same time: each has its own sockets and environments, and a lock of the kernel."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import UserError

MOST = 64


@contextmanager
def taken(root: Path) -> Iterator[Path]:
    """Take the first free folder under `root`; the kernel frees it after a crash."""
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    root.mkdir(mode=0o711, exist_ok=True)  # passable: if we are root, environments have separate users
    for number in range(MOST):
        descriptor = _locked(root / f"{number}.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
        if descriptor is not None:
            try:
                yield root / str(number)
            finally:
                os.close(descriptor)
            return
    raise UserError(f"{MOST} runs already use {root}: wait for one of them to end.")


@contextmanager
def alone(root: Path, name: str) -> Iterator[None]:
    """Wait until no other run is in a block of this name."""
    descriptor = _locked(root / f"{name}.lock", fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(path: Path, how: int) -> int | None:
    """Lock a file that is never deleted: a run that waits on a removed file would hold a lock that no other sees."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
