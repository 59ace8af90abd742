"""Which arguments make a box: pure; nothing here touches the host."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox import blocked
from sandbox.errors import SandboxError
from sandbox.local import folders as at
from sandbox.local.folders import Folders
from sandbox.local.tools import Furniture

SHARED_MEMORY_BYTES = 1 << 30
SHARED_BY = 8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class BoxLimits:
    """Of one process (files, memory) or of one environment (processes)."""

    processes: int = 1024
    file_bytes: int = 2 << 30
    open_files: int = 4096
    data_bytes: int = 16 << 30


@dataclass(frozen=True)
class Box:
    """One start of bubblewrap."""

    folders: Folders
    furniture: Furniture
    env: Mapping[str, str]
    cwd: str
    sockets: str | None
    """The host's folder of sockets, for a box with a way out."""
    dies_with_parent: bool
    own: str | None = None
    """The host's folder of sockets for this environment alone."""


def prefix(uid: int | None, limits: BoxLimits, ceilings: Mapping[str, int]) -> list[str]:
    """What runs before bubblewrap: limits that everything inside inherits and, from root, the step down to a user.

    Without that step a box is no sandbox: the kernel lets the global uid 0 write sysctls, from any namespace.
    """
    wanted = {
        # Counted per user: an ordinary user's boxes all draw on one number, with whatever else that user runs.
        "nproc": limits.processes if uid is not None else limits.processes * SHARED_BY,
        "fsize": limits.file_bytes,
        "nofile": limits.open_files,
        "data": limits.data_bytes,
        "core": 0,
    }
    capped = {name: min(value, ceilings.get(name, value)) for name, value in wanted.items()}
    steps = ["choom", "-n", "500", "--", "prlimit", *(f"--{name}={value}" for name, value in capped.items()), "--"]
    if uid is not None:
        steps += ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
        steps += ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
    return steps


def arguments(box: Box, *, seccomp_fd: int, status_fd: int) -> list[str]:
    """The options of bubblewrap, to be given over a descriptor: its own command line is seen from inside."""
    options = [
        *_namespaces(box, seccomp_fd, status_fd),
        *_skeleton(box),
        *_bound(box),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", box.cwd),
        *_environment(box),
    ]
    if any("\0" in option for option in options):
        # The list is cut at NUL bytes: one in a value would begin an option of its author's choice.
        raise SandboxError("a NUL byte in an environment variable or a path")
    return options


def encoded(options: Sequence[str]) -> bytes:
    return b"".join(option.encode("utf-8", "surrogateescape") + b"\0" for option in options)


def _namespaces(box: Box, seccomp_fd: int, status_fd: int) -> list[str]:
    options = ["--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
    options += ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    options += ["--hostname", "forgehand", "--new-session", "--cap-drop", "ALL"]
    options += ["--seccomp", str(seccomp_fd), "--json-status-fd", str(status_fd)]
    return [*options, "--die-with-parent"] if box.dies_with_parent else options


def _skeleton(box: Box) -> list[str]:
    """Folders of our own making: bubblewrap makes missing parents 0700."""
    inside = [path for _, path in box.furniture.read_only]
    inside += [at.HOME, at.OUT, at.SOCKETS, at.OWN, at.RUNNER, "/var/tmp"]  # noqa: S108
    made = sorted({parent for path in inside for parent in _parents(path) if parent != "/usr"})
    return [option for folder in made for option in ("--perms", "0755", "--dir", folder)]


def _parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")[:-1]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def _bound(box: Box) -> list[str]:
    size = str(SHARED_MEMORY_BYTES)
    options = ["--proc", "/proc", "--dev", "/dev"]
    options += ["--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]  # noqa: S108
    options += ["--perms", "1777", "--size", size, "--tmpfs", "/var/tmp"]  # noqa: S108
    for source, target in box.furniture.read_only:
        options += ["--ro-bind", source, target]
    for source, target in box.furniture.links:
        options += ["--symlink", source, target]
    # Last, so that no mount point is ever looked for in a folder in which the agent may have laid a link.
    options += ["--bind", str(box.folders.temporary), at.TEMPORARY]
    options += ["--bind", str(box.folders.home), at.HOME]
    options += ["--bind", str(box.folders.work), at.WORK]
    options += ["--bind", str(box.folders.out), at.OUT]
    options += ["--ro-bind", str(box.folders.runner), at.RUNNER]
    if box.sockets is not None:
        # The folder and not its sockets: a host that restarts makes new ones, and they are found again.
        options += ["--ro-bind", box.sockets, at.SOCKETS]
    if box.own is not None:
        options += ["--ro-bind", box.own, at.OWN]
    return options


def _environment(box: Box) -> list[str]:
    values = {
        "HOME": at.HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/sh",
        "PATH": box.furniture.path,
        "LANG": "C.UTF-8",
        "TMPDIR": at.TEMPORARY,
        **box.env,
    }
    options = ["--clearenv"]
    for name, value in values.items():
        if not _NAME.fullmatch(name):
            raise SandboxError(f"{name[:40]!r} is not a name for an environment variable")
        options += ["--setenv", name, value]
    return options


def forwarded(box: Box, command: Sequence[str], *, name: str | None = None) -> list[str]:
    """The command behind the forwarder; with a name, as a launched one with a log and a way in for the host."""
    egress = at.SOCKETS if box.own is None else at.OWN
    found = [box.furniture.python, "-I", "-S", f"{at.RUNNER}/forwarder.py"]
    found += ["--gateway", f"{at.SOCKETS}/{at.GATEWAY_SOCKET}", "--egress", f"{egress}/{at.EGRESS_SOCKET}"]
    found += ["--denied", f"{at.OUT}/{blocked.LOG}"]
    if name is not None:
        found += ["--log", f"{at.OUT}/launch-{name}.log", "--expose", f"{at.OUT}/{exposure(name)}"]
    return [*found, "--", *command]


def exposure(name: str) -> str:
    """The file name, in `out`, of the socket through which the host reaches a launched command's ports."""
    return f".expose-{name}.sock"
