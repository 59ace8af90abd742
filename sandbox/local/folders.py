"""Where local environments lie on the host, and which processes see such a folder as their home."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import stat
import subprocess
from collections.abc import Iterator
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
KEY_LENGTH = 14  # of a session's environments, at most


@dataclass(frozen=True)
class Folders:
    """One environment's. `box` is its user's own; `state` is ours and never seen from inside."""

    box: Path
    state: Path
    own: Path  # where the host listens for this environment alone, if it is to reach more than the others

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
        """The host folder that is bound at or above a path inside, and the steps from there; NotThere elsewhere."""
        bound = {WORK: self.work, OUT: self.out, HOME: self.home, TEMPORARY: self.temporary, RUNNER: self.runner}
        found = SafePath.below(path, bound)
        if found is None:
            raise NotThere(f"{path[:200]!r} is not in a folder that the host may open")
        return found._replace(base=str(bound[found.base]))


class EnvironmentsFolder:
    """The folder above all environments: reachable for the users that they run as, listable by none of them."""

    def __init__(self, root: Path) -> None:
        wanted = root.resolve()
        self.path = wanted if _serves(wanted) else _fallback(wanted)
        self.sockets = self.path / "sockets"
        self.tools = self.path / "tools"
        self.ways = self.path / "ways"
        for folder, mode in (
            (self.path, 0o711),
            (self.path / "boxes", 0o711),
            (self.sockets, 0o711),
            (self.tools, 0o755),
            (self.ways, 0o711),
            (self.path / "state", 0o700),
        ):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)

    def folders(self, environment_id: str) -> Folders:
        return Folders(
            self.path / "boxes" / environment_id, self.path / "state" / environment_id, self.ways / environment_id
        )

    def environment_ids(self) -> list[str]:
        return sorted(entry.parent.name for entry in (self.path / "state").glob("*/spec.json"))


def _serves(root: Path) -> bool:
    """Whether boxes can live there: other users reach it when we are root, and a socket's path fits into an address."""
    if len(os.fsencode(root / "ways" / ("x" * KEY_LENGTH) / EGRESS_SOCKET)) > _SOCKET_PATH_LIMIT:
        return False
    if root.is_relative_to("/usr"):
        return False  # /usr is shown inside
    return os.geteuid() != 0 or (root.parent.is_dir() and others_reach(root.parent))


def others_reach(folder: Path) -> bool:
    """Every folder up to the root may be passed through by any user."""
    real = folder.resolve()
    return all(one.stat().st_mode & stat.S_IXOTH for one in (real, *real.parents))


def _fallback(root: Path) -> Path:
    """A folder with a name that anybody can foresee: it must be ours, and nobody else's to write to."""
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
    """The folders of an environment, each for its user alone; safe to repeat."""
    folders.launched.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder, mode in (
        (folders.box, 0o700),
        (folders.home, 0o700),
        (folders.work, 0o700),
        (folders.out, 0o700),
        (folders.temporary, 0o1777),
    ):
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
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
    """For the environment's user to pass through, and for nobody else; ours all the same."""
    folders.own.mkdir(mode=0o700, exist_ok=True)
    if uid is not None:
        os.chown(folders.own, -1, uid)
    folders.own.chmod(0o700 if uid is None else 0o710)


def remove(folders: Folders) -> None:
    """The box first: as long as `state` is there, an interrupted removal is found and repeated.

    By `rm`, which stands trees of any depth; an ordinary user must first open folders that the agent has closed.
    """
    for folder in (folders.box, folders.own, folders.state):
        for command in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            if folder.exists():
                _run([*command, "--", str(folder)])
    if folders.box.exists() or folders.state.exists():
        raise EnvironmentBusy("the folders of an environment could not be removed")


def _run(command: list[str]) -> None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(command, check=False, capture_output=True, timeout=REMOVE_SECONDS)


_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Member:
    pid: int
    is_init: bool  # the first process of its box: its death ends the box
    cpu_seconds: float
    memory_bytes: int


def members(home: Path) -> list[Member]:
    """All processes in boxes over this home folder."""
    try:
        about = home.stat()
    except OSError:
        return []
    return list(_members((about.st_dev, about.st_ino)))


def _members(identity: tuple[int, int]) -> Iterator[Member]:
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names will do, and there may be thousands
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # `root` is a box's own view; where we may not look, the process is not ours.
            seen = os.lstat(f"/proc/{entry}/root{HOME}")
            if (seen.st_dev, seen.st_ino) == identity:
                fields = family.stat_fields(int(entry))
                cpu = (int(fields[11]) + int(fields[12])) / _TICKS
                status = Path(f"/proc/{entry}/status").read_text(encoding="utf-8", errors="replace")
                is_init = re.search(r"^NSpid:.*\t1$", status, re.MULTILINE) is not None
                yield Member(int(entry), is_init, cpu, int(fields[21]) * _PAGE)


def namespace_of(pid: int) -> int:
    """The number of the process namespace that a living process is in."""
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
    """The first processes of boxes first: with them the others end. False when some stay."""

    def find() -> list[int]:
        return [member.pid for member in sorted(members(home), key=lambda one: not one.is_init)]

    return family.end(find, seconds)
