"""Proves that this host isolates: a real box tries to get out, and we judge its report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

from sandbox.errors import IsolationMissing, SandboxError
from sandbox.local.launcher import CLEAN, Box, Launcher

SECONDS = 30.0

# Runs inside. connect() tries an address that is reserved for documentation; AF_VSOCK is only opened.
SCRIPT = """
import json, os, socket
def attempt(work):
    try:
        work()
    except OSError as error:
        return error.strerror or str(error)
    return None
def outside():
    with socket.socket() as one:
        one.settimeout(3)
        one.connect(("192.0.2.1", 443))
print(json.dumps({
    "core_pattern": attempt(lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))),
    "environ": sorted(p.split(b"=")[0].decode() for p in open("/proc/1/environ", "rb").read().split(b"\\0") if p),
    "processes": sum(name.isdigit() for name in os.listdir("/proc")),
    "interfaces": sorted(name for _, name in socket.if_nameindex()),
    "outside": attempt(outside),
    "vsock": attempt(lambda: socket.socket(40, socket.SOCK_STREAM).close()),
    "uid": os.getuid(),
}))
"""

_CONTAINER = (
    "In a container, start it with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined` and as a "
    "user that is not root."
)

# Bubblewrap's words, and the advice for each.
_CURES: tuple[tuple[str, str], ...] = (
    ("setting up uid map", "AppArmor forbids user namespaces: load a profile for bwrap that allows `userns`."),
    ("RTM_NEWADDR", "AppArmor forbids user namespaces: load a profile for bwrap that allows `userns`."),
    ("mount proc", f"/proc is masked here. {_CONTAINER}"),
    ("pivot_root", f"More capabilities do not help here. {_CONTAINER}"),
    ("No space left", "Raise the sysctl user.max_user_namespaces."),
    ("namespace", f"User namespaces are not permitted. {_CONTAINER} Elsewhere set kernel.unprivileged_userns_clone=1."),
    ("disable-userns", "bubblewrap 0.8 or newer is needed: update the package."),
    ("setpriv", "Run as an ordinary user, or give this process CAP_SETUID, CAP_SETGID and CAP_SETPCAP."),
    ("prlimit", "Limits could not be set: see the limits that this process itself was started with."),
)


def cure(said: str) -> str:
    """Say what to do about a box that could not be made."""
    otherwise = "Run `bwrap --unshare-all --ro-bind / / true` by hand to see more."
    return next((advice for words, advice in _CURES if words in said), otherwise)


def missing_programs() -> list[str]:
    """List the programs that boxes need and this host lacks."""
    wanted = ("bwrap", "setpriv", "prlimit", "choom", "setsid")
    return [name for name in wanted if shutil.which(name, path=CLEAN["PATH"]) is None]


def judge(found: Mapping[str, Any]) -> list[str]:
    """List what is wrong with a box that reported this; empty if it isolates."""
    wrong = []
    if found["core_pattern"] is None:
        wrong.append("kernel settings under /proc/sys can be written from inside")
    if not set(found["environ"]) <= set(CLEAN):
        wrong.append("the environment of a process outside can be read from inside")
    if found["interfaces"] != ["lo"] or found["outside"] is None:
        wrong.append("the network can be reached from inside")
    if found["vsock"] is None:
        wrong.append("the system call filter does not hold")
    if found["processes"] > 4:
        wrong.append("processes outside can be seen from inside")
    if found["uid"] == 0:
        wrong.append("processes inside are root")
    return wrong


async def check(launcher: Launcher, box: Box) -> None:
    """Raise IsolationMissing, with advice, unless a real box isolates."""
    try:
        result = await launcher.run(box, [box.furniture.python, "-I", "-S", "-c", SCRIPT], stdin=b"", timeout=SECONDS)
    except SandboxError as error:
        raise IsolationMissing(f"No box can be made on this host: {error}. {cure(str(error))}") from None
    try:
        wrong = judge(json.loads(result.stdout))
    except (ValueError, KeyError, TypeError):
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise IsolationMissing(f"The test box gave no answer ({said[-1][:300] if said else 'silence'}).") from None
    if wrong:
        raise IsolationMissing(f"Boxes on this host do not hold: {'; '.join(wrong)}. Sessions will not be run here.")
