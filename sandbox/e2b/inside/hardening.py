"""Closes the ways by which the agent's user could become root, and checks that they are closed.

E2B's images have passwordless sudo, an sshd that lets root in without a password, and a `/usr/local` that anybody can
write to and from which root runs programs by name. All of this runs as root before an agent comes, and again for each
turn.
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
"""Root executes, loads or obeys files in these, at any depth."""
SHALLOW = (
    *("/bin", "/sbin", "/lib"),
    *("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/lib/openssh"),
)
"""Only their direct entries; the many files below are as their packages made them."""
LIBRARIES = ("/usr/lib", "/usr/local/lib")
"""They hold Python's and the loader's folders, whose names contain a version or a machine."""
ABOVE = ("/", "/usr", "/opt", "/var", "/var/lib", "/var/forgehand", "/home")
ENGINES = (
    *("/run/docker.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/podman/podman.sock"),
    *("/run/buildkit/buildkitd.sock", "/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket"),
    "/var/lib/incus/unix.socket",
)
"""A user who can write to one of these can start a container as root with the whole disk in it."""
AGENTS_OWN = ("/var/spool/cron/crontabs/", "/var/spool/cron/", "/var/spool/atjobs/", "/var/lib/systemd/linger/")
"""Folders of files named after the user, which would start programs for it on their own."""
OTHERS_WRITE, GROUP_WRITES, CLIMBS = stat.S_IWOTH, stat.S_IWGRP, stat.S_ISUID | stat.S_ISGID
ELSEWHERE = "x"  # in place of a password, which is then in the file that only root reads
MOST_LINKS = 40  # links that the system follows in one path
STOP_SECONDS = 10.0
TOLD = 5


def harden() -> None:
    """Close all ways; Refused if the agent could still become root."""
    if os.geteuid() != 0:
        return
    for path in CLIMBERS:
        with contextlib.suppress(OSError):
            if not Path(path).is_symlink():
                Path(path).chmod(0o700)
    _close_ssh()
    _lock_passwords()
    for folder in AGENTS_OWN:
        with contextlib.suppress(OSError):
            Path(folder, places.USER).unlink()
    for path, _ in _entries(LOCAL, deep=True):
        _close(path)
    _home_for_packages()
    check()


def check() -> None:
    """Close every open way that is left; Refused if one stays open."""
    for path in _open():
        _close(path)
        # Root follows this link: close each place on its way, except in the folders that belong to the agent.
        for place in _way(path) if Path(path).is_symlink() else ():
            steps = [place, *map(str, Path(place).parents)]
            if not any(base in steps for base in places.BASES) and not _is_safe(place):
                _close(place)
    family.end(_servers, STOP_SECONDS)  # one may have been starting while we closed its program
    left = [*_open(), *_ways_in()]
    if left:
        named = ", ".join(left[:TOLD])
        words = f"An agent could become root in this template through {named}. Make root its only writer"
        raise Refused("bad", f"{words}, and build the template again.")


def _close(path: str) -> None:
    """Make root its owner and only writer. Change only what is open, because a pause must save all changes. Follow no
    links."""
    with contextlib.suppress(OSError):
        about = os.lstat(path)
        if stat.S_ISLNK(about.st_mode):
            if about.st_uid != 0:
                os.chown(path, 0, 0, follow_symlinks=False)
            return
        held = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            handle, about = f"/proc/self/fd/{held}", os.fstat(held)
            if about.st_uid != 0:
                os.chown(handle, 0, 0)
            forbidden = OTHERS_WRITE | GROUP_WRITES | (CLIMBS if stat.S_ISREG(about.st_mode) else 0)
            if about.st_mode & forbidden and not stat.S_ISLNK(about.st_mode):
                Path(handle).chmod(stat.S_IMODE(about.st_mode) & ~forbidden)
        finally:
            os.close(held)


def _home_for_packages() -> None:
    """Let npm install global packages into the agent's home, because their usual place belongs to root."""
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
    """Keep sshd from starting, now and at a boot: mask its units, make its program unusable, end what runs."""
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
    """Find sshd's processes; newer versions have several with different names."""
    for pid, _ in family.living():
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
            if name.startswith(("sshd", "dropbear")):
                yield pid


def _lock_passwords() -> None:
    """Lock all passwords, empty ones too, so that nobody can log in."""
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


def _ways_in() -> Iterator[str]:
    """Name the ways that are still open and are no files."""
    if next(_servers(), None) is not None:
        yield "an sshd that runs"
    for name in ("/etc/shadow", "/etc/passwd"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(name).read_text(encoding="utf-8", errors="replace").splitlines():
                if line.split(":")[1:2] == [""]:
                    yield f"an empty password in {name}"


def _open() -> list[str]:
    """List files of root that the agent could change, or by which it could become root."""
    found: list[str] = []
    seen: dict[str, bool] = {}
    for path, about in _everything():
        if stat.S_ISLNK(about.st_mode):
            if not _leads_safely(path, seen):
                found.append(path)
        elif _is_agents(about) or _climbs(path, about):
            found.append(path)
    return found


def _everything() -> Iterator[tuple[str, os.stat_result]]:
    for path in (*ABOVE, *ENGINES):
        with contextlib.suppress(OSError):
            yield path, os.lstat(path)
    for top in DEEP:
        yield from _entries(top, deep=True)
    for top in {os.path.realpath(one): one for one in SHALLOW}:  # today many of them are the same
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


def _is_agents(about: os.stat_result) -> bool:
    """Decide whether the agent may write. The group's bit counts, because it also stands for access lists."""
    return about.st_uid == places.identity()[0] or bool(about.st_mode & (OTHERS_WRITE | GROUP_WRITES))


def _climbs(path: str, about: os.stat_result) -> bool:
    is_climber = stat.S_ISREG(about.st_mode) and about.st_mode & CLIMBS
    return bool(is_climber) and not os.statvfs(path).f_flag & os.ST_NOSUID


def _leads_safely(link: str, seen: dict[str, bool]) -> bool:
    """Decide whether the agent can change nothing on a link's way, other links included."""
    for place in _way(link):
        if place not in seen:
            seen[place] = _is_safe(place)
        if not seen[place]:
            return False
    return True


def _is_safe(place: str) -> bool:
    """Judge one place by itself. A missing place is as safe as its folder, which is judged before it."""
    with contextlib.suppress(OSError):
        about = os.lstat(place)
        is_harmless = stat.S_ISLNK(about.st_mode) or stat.S_ISCHR(about.st_mode)  # such as /dev/null
        return is_harmless or not _is_agents(about)
    return True


def _way(link: str) -> Iterator[str]:
    """Yield every folder, link and file that the system passes when it follows a link."""
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
    """Return a path's steps, the last one first."""
    return [step for step in reversed(path.split("/")) if step not in ("", ".")]
