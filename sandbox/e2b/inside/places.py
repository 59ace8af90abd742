"""Where things lie in a remote environment, and who owns what; the host and our scripts inside agree on it here."""

from __future__ import annotations

import functools
import os
import pwd

USER = "user"
HOME = "/home/user"
WORK = "/work"
TEMPORARY = "/tmp"  # noqa: S108 - the path inside a machine that is the session's alone
OUT = "/var/forgehand/out"

CODE = "/opt/forgehand"
"""Root's, read-only for the agent: the packages that come from the host, under the names that they have there."""
RUNNER = CODE + "/sandbox/runner"
HANDS = CODE + "/sandbox/e2b/inside"

STATE = "/var/lib/forgehand"  # root's alone; the agent cannot look into it
INCOMING = STATE + "/in"
OUTGOING = STATE + "/out"
RUNS = STATE + "/runs"
LAUNCHED = STATE + "/launched"
MARKER = STATE + "/marker"
GATE = STATE + "/gate"
GATE_KEY = STATE + "/gate.key"
GATE_LOG = STATE + "/gate.log"

GATE_SOCKET = "/var/forgehand/gateway.sock"
"""Where the agent reaches the host that has connected to us; in a folder of root's."""
GATE_PATH = "/forgehand/gate"

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + HOME + "/.local/bin"
BASES = (WORK, OUT, HOME, TEMPORARY, RUNNER)  # below these the host opens files; nowhere else


@functools.cache
def identity() -> tuple[int, int]:
    """The agent's user and group."""
    try:
        found = pwd.getpwnam(USER)
    except KeyError:
        return 1000, 1000
    return found.pw_uid, found.pw_gid


def environment(extra: dict[str, str]) -> dict[str, str]:
    """All that a command sees: nothing is handed down from the service that started us."""
    own = {"HOME": HOME, "USER": USER, "LOGNAME": USER, "SHELL": "/bin/sh", "PATH": PATH, "LANG": "C.UTF-8"}
    return {**own, "TMPDIR": TEMPORARY, **extra}


def drop() -> dict[str, object]:
    """Arguments for Popen by which a command becomes the agent's."""
    if os.geteuid() != 0:
        return {}
    uid, gid = identity()
    return {"user": uid, "group": gid, "extra_groups": []}
