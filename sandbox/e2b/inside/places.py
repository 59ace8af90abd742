"""Names the paths in a remote environment, for the host and for our scripts inside."""

from __future__ import annotations

import functools
import os
import pwd

USER = "user"
HOME = "/home/user"
WORK = "/work"
TEMPORARY = "/tmp"  # noqa: S108 - a path inside a machine of one session
OUT = "/var/forgehand/out"

CODE = "/opt/forgehand"  # belongs to root, read-only for the agent: the host's packages under their own names
RUNNER = CODE + "/sandbox/runner"
HANDS = CODE + "/sandbox/e2b/inside"

STATE = "/var/lib/forgehand"  # only root can look into it
INCOMING = STATE + "/in"
OUTGOING = STATE + "/out"
RUNS = STATE + "/runs"
LAUNCHED = STATE + "/launched"
MARKER = STATE + "/marker"
GATE = STATE + "/gate"
GATE_KEY = STATE + "/gate.key"
GATE_LOG = STATE + "/gate.log"

GATE_SOCKET = "/var/forgehand/gateway.sock"
"""Socket in a folder of root, through which the agent reaches the host that has connected to us."""
GATE_PATH = "/forgehand/gate"

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + HOME + "/.local/bin"
BASES = (WORK, OUT, HOME, TEMPORARY, RUNNER)  # the host opens files only below these


@functools.cache
def identity() -> tuple[int, int]:
    try:
        found = pwd.getpwnam(USER)
    except KeyError:
        return 1000, 1000
    return found.pw_uid, found.pw_gid


def environment(extra: dict[str, str]) -> dict[str, str]:
    """Build all of a command's variables; it inherits none from the service that started us."""
    own = {"HOME": HOME, "USER": USER, "LOGNAME": USER, "SHELL": "/bin/sh", "PATH": PATH, "LANG": "C.UTF-8"}
    return {**own, "TMPDIR": TEMPORARY, **extra}


def drop() -> dict[str, object]:
    """Return Popen's arguments that run a command as the agent's user."""
    if os.geteuid() != 0:
        return {}
    uid, gid = identity()
    return {"user": uid, "group": gid, "extra_groups": []}
