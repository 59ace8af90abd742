"""Lays out local environments on the host, and finds the processes whose home is such a folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import EnvironmentBusy, IsolationMissing, NotThere
from sandbox.runner import family
from sandbox.runner.safe_files import SafePath

HOME = "/home/agent"
WORK = "/work"
TEMPORARY = "/tmp"  # noqa: S108 - the path inside a box, where it is the session's own folder
RUN = "/run/forgehand"
OUT = f"{RUN}/out"
SOCKETS = f"{RUN}/sockets"
OWN = f"{RUN}/own"
RUNNER = "/opt/forgehand/runner"
AGENT = "/opt/forgehand/bin/claude"

GATEWAY_SOCKET = "gateway.sock"
EGRESS_SOCKET = "egress.sock"

RUNNER_SOURCES = Path(__file__).parents[1] / "runner"
REMOVE_SECONDS = 120.0

_FALLBACK = Path("/var/tmp")  # noqa: S108 - checked for its owner and mode before use
_SOCKET_PATH_LIMIT = 107
KEY_LENGTH = 14  # the most for a session's environments


@dataclass(frozen=True)
class Folders:
    """Folders of one environment. `box` belongs to its user; `state` is ours and never visible inside."""

    box: Path
    state: Path
    own: Path  # the host listens here for this environment alone, if it may reach hosts of its own

    @property
    def home(self) -> Path:
        return self.box / "home"

    @property
    def work(self) -> Path:
        return self.box / "work"

    @property
    def out(self) -> Path:
        return self.box / "out"

    @property
    def temporary(self) -> Path:
        return self.box / "tmp"

    @property
    def runner(self) -> Path:
        return self.box / "runner"

    @property
    def launched(self) -> Path:
        return self.state / "launched"

    @property
    def spec(self) -> Path:
        return self.state / "spec.json"

    def behind(self, path: str) -> SafePath:
        """Find the host folder bound at or above a path inside, and the steps from there; else NotThere."""
        bound = {WORK: self.work, OUT: self.out, HOME: self.home, TEMPORARY: self.temporary, RUNNER: self.runner}
        found = SafePath.below(path, bound)
        if found is None:
            raise NotThere(f"{path[:200]!r} is not in a folder that the host may open")
        return found._replace(base=str(bound[found.base]))


class EnvironmentsFolder:
    """The folder above all environments. Their users can pass through it, but cannot list it."""

    def __init__(self, root: Path) -> None:
        wanted = root.resolve()
        self.path = wanted if _serves(wanted) else _fallback(wanted)
        self.sockets = self.path / "sockets"
        self.tools = self.path / "tools"
        self.ways = self.path / "ways"
        passable = dict.fromkeys((self.path, self.path / "boxes", self.sockets, self.ways), 0o711)
        for folder, mode in {**passable, self.tools: 0o755, self.path / "state": 0o700}.items():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)

    def folders(self, environment_id: str) -> Folders:
        return Folders(
            self.path / "boxes" / environment_id, self.path / "state" / environment_id, self.ways / environment_id
        )

    def environment_ids(self) -> list[str]:
        return sorted(entry.parent.name for entry in (self.path / "state").glob("*/spec.json"))


def _serves(root: Path) -> bool:
    """Decide whether boxes can live there: a socket's path fits an address, and other users reach it if we are root."""
    if len(os.fsencode(root / "ways" / ("x" * KEY_LENGTH) / EGRESS_SOCKET)) > _SOCKET_PATH_LIMIT:
        return False
    if root.is_relative_to("/usr"):
        return False  # /usr is shown inside
    return os.geteuid() != 0 or (root.parent.is_dir() and others_reach(root.parent))


def others_reach(folder: Path) -> bool:
    """Decide whether any user may pass through every folder up to the root."""
    real = folder.resolve()
    return all(one.stat().st_mode & stat.S_IXOTH for one in (real, *real.parents))


def _fallback(root: Path) -> Path:
    """Return a folder with a predictable name, after checking that only we can write to it."""
    found = _FALLBACK / f"forgehand-{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"
    try:
        found.mkdir(mode=0o711, exist_ok=True)
    except OSError as error:
        raise IsolationMissing(
            f"Boxes cannot live in {root}, which other users do not reach or whose path is too long, nor in {found} "
            f"({error.strerror}): choose another data directory, or do not run as root."
        ) from None
    about = found.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise IsolationMissing(f"{found} belongs to somebody else: remove it, or choose another data directory.")
    return found


def make(folders: Folders, uid: int | None) -> None:
    """Make the folders of an environment, each for its user alone; safe to repeat."""
    folders.launched.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (folders.box, folders.home, folders.work, folders.out, folders.temporary):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777 if folder == folders.temporary else 0o700)
        if uid is not None:
            os.chown(folder, uid, uid, follow_symlinks=False)
    folders.runner.mkdir(exist_ok=True)
    folders.runner.chmod(0o755)
    for script in RUNNER_SOURCES.glob("*.py"):
        partial = folders.runner / f".{script.name}.new"
        partial.write_bytes(script.read_bytes())
        partial.chmod(0o644)
        partial.replace(folders.runner / script.name)


def make_own(folders: Folders, uid: int | None) -> None:
    """Make a folder that belongs to us and that only the environment's user may pass through."""
    folders.own.mkdir(mode=0o700, exist_ok=True)
    if uid is not None:
        os.chown(folders.own, -1, uid)
    folders.own.chmod(0o700 if uid is None else 0o710)


def remove(folders: Folders) -> None:
    """Remove the box first: as long as `state` exists, an interrupted removal is found and repeated.

    `rm` handles trees of any depth. An ordinary user must first open folders that the agent has closed.
    """
    for folder in (folders.box, folders.own, folders.state):
        for command in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                if folder.exists():
                    argv = [*command, "--", str(folder)]
                    subprocess.run(argv, check=False, capture_output=True, timeout=REMOVE_SECONDS)
    if folders.box.exists() or folders.state.exists():
        raise EnvironmentBusy("the folders of an environment could not be removed")


_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Member:
    pid: int
    is_init: bool  # the first process of its box, whose death ends the box
    cpu_seconds: float
    memory_bytes: int


def members(home: Path) -> list[Member]:
    """List all processes in boxes over this home folder."""
    try:
        about = home.stat()
    except OSError:
        return []
    found: list[Member] = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names will do, and there may be thousands
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # `root` is the box's view of the file system; if we may not look, the process is not ours.
            seen = os.lstat(f"/proc/{entry}/root{HOME}")
            if (seen.st_dev, seen.st_ino) == (about.st_dev, about.st_ino):
                fields = family.stat_fields(int(entry))
                cpu = (int(fields[11]) + int(fields[12])) / _TICKS
                status = Path(f"/proc/{entry}/status").read_text(encoding="utf-8", errors="replace")
                is_init = re.search(r"^NSpid:.*\t1$", status, re.MULTILINE) is not None
                found.append(Member(int(entry), is_init, cpu, int(fields[21]) * _PAGE))
    return found


def namespace_of(pid: int) -> int:
    """Return the number of a living process's process namespace."""
    return Path(f"/proc/{pid}/ns/pid").stat().st_ino


def freeze(home: Path) -> None:
    family.freeze(lambda: _commands(home))


def thaw(home: Path) -> None:
    family.send(_commands(home), signal.SIGCONT)


def are_frozen(home: Path) -> bool:
    return family.are_still(_commands(home))


def _commands(home: Path) -> list[int]:
    return [member.pid for member in members(home) if not member.is_init]


def kill_all(home: Path, seconds: float) -> bool:
    """Kill the first processes of boxes first, because the others end with them. False if some stay."""
    return family.end(lambda: [one.pid for one in sorted(members(home), key=lambda one: not one.is_init)], seconds)
