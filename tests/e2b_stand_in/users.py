"""Two users inside, as in the cloud: root, and `user` with uid 1000; where the host lets us have them."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

ROOT, USER = 0, 1000
FIRST_OUTSIDE = 100_000
COUNT = 65_535


def are_two() -> bool:
    """Root of the host alone may give a namespace more than one user; elsewhere everything inside is uid 1000."""
    return os.geteuid() == 0


def outside(uid: int) -> int:
    """What a user inside is on the host."""
    if not are_two():
        return os.getuid()
    return ROOT if uid == ROOT else FIRST_OUTSIDE + uid


@cache
def namespace() -> int:
    """A descriptor of the namespace that all machines share; it lasts as long as this process."""
    told = "echo there; exec cat"
    holder = subprocess.Popen(
        ["unshare", "--user", "--", "sh", "-c", told], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    with holder:
        holder.stdout.readline()
        for kind in ("uid_map", "gid_map"):
            ids = f"0 0 1\n1 {FIRST_OUTSIDE + 1} {COUNT}\n"
            Path(f"/proc/{holder.pid}/{kind}").write_text(ids, encoding="ascii")
        return os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
