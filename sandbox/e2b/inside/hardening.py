"""Closes the ways by which the agent's user could become root, and looks whether they are closed.

E2B's images have passwordless sudo, an sshd that lets root in without a password, and a `/usr/local` that everybody may
write, of which root executes whatever has the right name. All of this runs as root before an agent has been there, and
again for each turn.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandbox.runner import family

from . import places
from .hands import Refused

CLIMBERS = ("/usr/bin/sudo", "/usr/bin/su", "/bin/su", "/usr/bin/pkexec", "/usr/bin/doas", "/usr/bin/newgrp")
SSHD = ("/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd", "/usr/sbin/dropbear")
UNITS = ("ssh.service", "ssh.socket", "sshd.service", "sshd.socket", "ssh@.service", "sshd@.service")
SYSTEMCTL = "/usr/bin/systemctl"
SYSTEMD = "/run/systemd/system"
MASKS = "/etc/systemd/system"
NPMRC = "/usr/local/etc/npmrc"

LOCAL = "/usr/local"
DEEP = (LOCAL, "/etc", "/root", places.CODE, places.STATE, "/lib/systemd", "/usr/lib/systemd", "/var/spool/cron")
"""Root executes, loads or obeys something of these, at whatever depth."""
SHALLOW = (
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
    "/lib",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/lib/openssh",
)
"""Their entries alone: there are many more below, and they are as their packages made them."""
LIBRARIES = ("/usr/lib", "/usr/local/lib")
"""Python's and the loader's folders lie there under names that tell a version or a machine."""
ABOVE = ("/", "/usr", "/opt", "/var", "/var/lib", "/var/forgehand", "/home")
ENGINES = (
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/podman/podman.sock",
    "/run/buildkit/buildkitd.sock",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
)
"""Whoever may write to one of these has a container of root's with the whole disk in it."""
AGENTS_OWN = ("/var/spool/cron/crontabs/", "/var/spool/cron/", "/var/spool/atjobs/", "/var/lib/systemd/linger/")
"""With the user's name: what would be started for it without anybody asking."""
OTHERS_WRITE, GROUP_WRITES, CLIMBS = stat.S_IWOTH, stat.S_IWGRP, stat.S_ISUID | stat.S_ISGID
ELSEWHERE = "x"  # in the place of a password: it is in the file that root alone reads
MOST_LINKS = 40  # of one way, as the system has it
STOP_SECONDS = 10.0
TOLD = 5


def harden() -> None:
    """Refused where the agent could still become root."""
    if os.geteuid() != 0:
        return
    _close_climbers()
    _close_ssh()
    _lock_passwords()
    _forget_appointments()
    _take(LOCAL)
    _home_for_packages()
    check()


def check() -> None:
    """What is found open is closed; what cannot be closed makes the machine useless."""
    for path in _open():
        _close(path)
        if Path(path).is_symlink():
            _close_behind(path)
    family.end(_servers, STOP_SECONDS)  # one that was just being started when its program was closed
    left = [*_open(), *_ways_in()]
    if left:
        named = ", ".join(left[:TOLD])
        words = f"An agent could become root in this template through {named}. Make root its only writer"
        raise Refused("bad", f"{words}, and build the template again.")


def _close_climbers() -> None:
    for path in CLIMBERS:
        with contextlib.suppress(OSError):
            if not Path(path).is_symlink():
                Path(path).chmod(0o700)


def _take(top: str) -> None:
    """Root's with all that is in it, and for nobody else to write."""
    for path, _ in _entries(top, deep=True):
        _close(path)


def _close(path: str) -> None:
    """Touched only where it is open: what is written grows what a pause has to save. No link is followed."""
    with contextlib.suppress(OSError):
        about = os.lstat(path)
        if stat.S_ISLNK(about.st_mode):
            if about.st_uid != 0:
                os.chown(path, 0, 0, follow_symlinks=False)
            return
        held = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _close_held(f"/proc/self/fd/{held}", os.fstat(held))
        finally:
            os.close(held)


def _close_held(path: str, about: os.stat_result) -> None:
    if about.st_uid != 0:
        os.chown(path, 0, 0)
    forbidden = OTHERS_WRITE | GROUP_WRITES | (CLIMBS if stat.S_ISREG(about.st_mode) else 0)
    if about.st_mode & forbidden and not stat.S_ISLNK(about.st_mode):
        Path(path).chmod(stat.S_IMODE(about.st_mode) & ~forbidden)


def _close_behind(link: str) -> None:
    """What root passes by a link, as far as it is not in a folder that is the agent's to work in."""
    for place in _way(link):
        steps = [place, *map(str, Path(place).parents)]
        if not any(base in steps for base in places.BASES) and not _is_safe(place):
            _close(place)


def _home_for_packages() -> None:
    """Global packages of npm's go to the agent's home: their usual place is root's."""
    path = Path(NPMRC)
    with contextlib.suppress(OSError):
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        prefix = f"prefix={places.HOME}/.local"
        if prefix not in lines:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            kept = [line for line in lines if line.partition("=")[0].strip() != "prefix"]
            path.write_text("\n".join([*kept, prefix, ""]), encoding="utf-8")
            path.chmod(0o644)


def _close_ssh() -> None:
    """Neither started now nor at a boot: its unit leads nowhere, its program cannot be executed, and what runs ends."""
    with contextlib.suppress(OSError):
        Path(MASKS).mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in UNITS:
        with contextlib.suppress(OSError):
            unit = Path(MASKS, name)
            if not unit.is_symlink() or str(unit.readlink()) != os.devnull:
                unit.unlink(missing_ok=True)
                unit.symlink_to(os.devnull)
    for program in SSHD:
        with contextlib.suppress(OSError):
            Path(program).chmod(0o600)
    if Path(SYSTEMD).is_dir() and os.access(SYSTEMCTL, os.X_OK):
        for command in (["daemon-reload"], ["stop", *(name for name in UNITS if "@" not in name)]):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                asked = [SYSTEMCTL, "--no-ask-password", "--quiet", *command]
                silent: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
                subprocess.run(asked, env={}, timeout=STOP_SECONDS, check=False, **silent)
    family.end(_servers, STOP_SECONDS)


def _servers() -> Iterator[int]:
    """Processes that let people in; newer ones have a name for each of their parts."""
    for pid, _ in family.living():
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
            if name.startswith(("sshd", "dropbear")):
                yield pid


def _lock_passwords() -> None:
    """Nobody logs in here: also the empty password is one."""
    for name in ("/etc/shadow", "/etc/passwd"):
        with contextlib.suppress(FileNotFoundError):
            text = Path(name).read_text(encoding="utf-8", errors="surrogateescape")
            locked = "".join(_locked(line, is_shadow=name == "/etc/shadow") for line in text.splitlines(keepends=True))
            if locked != text:
                _replace(name, locked)


def _locked(line: str, *, is_shadow: bool) -> str:
    user, colon, rest = line.partition(":")
    password, second, more = rest.partition(":")
    if not second or password.startswith(("!", "*")) or (password == ELSEWHERE and not is_shadow):
        return line
    return f"{user}{colon}!{password if is_shadow else ''}{second}{more}"


def _replace(name: str, text: str) -> None:
    about = Path(name).stat()
    partial = Path(name + ".forgehand")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        os.fchown(file.fileno(), about.st_uid, about.st_gid)
        os.fchmod(file.fileno(), stat.S_IMODE(about.st_mode))
    partial.replace(name)


def _forget_appointments() -> None:
    for folder in AGENTS_OWN:
        with contextlib.suppress(OSError):
            Path(folder, places.USER).unlink()


def _ways_in() -> Iterator[str]:
    """What is not a matter of files that others may write."""
    if next(_servers(), None) is not None:
        yield "an sshd that runs"
    for name in ("/etc/shadow", "/etc/passwd"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(name).read_text(encoding="utf-8", errors="replace").splitlines():
                if line.split(":")[1:2] == [""]:
                    yield f"an empty password in {name}"


def _open() -> list[str]:
    """What of root's the agent could change, or by which it could climb."""
    found: list[str] = []
    seen: dict[str, bool] = {}
    for path, about in _everything():
        if stat.S_ISLNK(about.st_mode):
            if not _leads_safely(path, seen):
                found.append(path)
        elif _agents(about) or _climbs(path, about):
            found.append(path)
    return found


def _everything() -> Iterator[tuple[str, os.stat_result]]:
    for top in ABOVE:
        with contextlib.suppress(OSError):
            yield top, os.lstat(top)
    for path in ENGINES:
        with contextlib.suppress(OSError):
            yield path, os.lstat(path)
    for top in DEEP:
        yield from _entries(top, deep=True)
    for top in {os.path.realpath(one): one for one in SHALLOW}:  # many of them are one and the same by now
        yield from _entries(top, deep=False)
    for top in LIBRARIES:
        for folder in _named(top, "-linux-"):
            yield from _entries(folder, deep=False)
        for folder in _named(top, "python3"):
            yield from _entries(folder, deep=True)


def _named(top: str, part: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(top) as entries:
        return [entry.path for entry in entries if part in entry.name and entry.is_dir(follow_symlinks=False)]
    return []


def _entries(top: str, *, deep: bool) -> Iterator[tuple[str, os.stat_result]]:
    """A folder and what is in it."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        with contextlib.suppress(OSError):
            yield folder, os.lstat(folder)
            with os.scandir(folder) as entries:
                for entry in entries:
                    about = entry.stat(follow_symlinks=False)
                    if deep and stat.S_ISDIR(about.st_mode):
                        waiting.append(entry.path)
                    else:
                        yield entry.path, about


def _agents(about: os.stat_result) -> bool:
    """Also what a group may write: the same bit stands for everybody whom an access list names."""
    return about.st_uid == places.identity()[0] or bool(about.st_mode & (OTHERS_WRITE | GROUP_WRITES))


def _climbs(path: str, about: os.stat_result) -> bool:
    if not stat.S_ISREG(about.st_mode) or not about.st_mode & CLIMBS:
        return False
    return not os.statvfs(path).f_flag & os.ST_NOSUID


def _leads_safely(link: str, seen: dict[str, bool]) -> bool:
    """Nothing that is passed on its way is the agent's to change, other links included."""
    for place in _way(link):
        if place not in seen:
            seen[place] = _is_safe(place)
        if not seen[place]:
            return False
    return True


def _is_safe(place: str) -> bool:
    """By itself. What is not there is as its folder is, which the way has passed before."""
    with contextlib.suppress(OSError):
        about = os.lstat(place)
        if stat.S_ISLNK(about.st_mode) or stat.S_ISCHR(about.st_mode):  # as /dev/null, which everybody writes to
            return True
        return not _agents(about)
    return True


def _way(link: str) -> Iterator[str]:
    """Every folder, link and file that the system passes when it follows a link."""
    here, steps, links = "/", _steps(link), 0
    while steps and links <= MOST_LINKS:
        step = steps.pop()
        if step == "..":
            here = posixpath.dirname(here)
            continue
        place = posixpath.join(here, step)
        yield place
        try:
            target = Path(place).readlink()
        except OSError:
            here = place
            continue
        links += 1
        here = "/" if target.is_absolute() else here
        steps += _steps(str(target))


def _steps(path: str) -> list[str]:
    """The last one first."""
    return [step for step in reversed(path.split("/")) if step not in ("", ".")]
