"""Prepares what a box shows of the host, read-only: the agent's binary, interpreters, certificates, some of /etc."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import IsolationMissing
from sandbox.local.folders import AGENT, HOME, TEMPORARY, WORK, EnvironmentsFolder, others_reach

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SECRET_NAMES = frozenset(
    (".ssh", ".aws", ".gnupg", ".config", ".docker", ".kube", ".azure", ".netrc", ".git-credentials", ".claude")
)
KEPT_BINARIES = 3  # another process of ours may still start boxes with an older one

_TOO_BROAD = frozenset(
    Path("/", name) for name in ("", "home", "root", "etc", "var", "proc", "sys", "dev", "run", "tmp", "srv")
)

# Written once and bound from disk, which saves four descriptors per box.
_ETC: Mapping[str, str] = {
    "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000::{HOME}:/bin/sh\n"
    "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
}

# Bound one by one, because their folders also hold private keys.
_ETC_OF_HOST = (
    *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "ca-certificates", "ca-certificates.conf"),
    *("pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "crypto-policies"),
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("java-11-openjdk", "java-17-openjdk", "java-21-openjdk"),
)


@dataclass(frozen=True)
class Furniture:
    """Pairs to bind (host path, path inside), links, and the places of programs inside."""

    read_only: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    path: str
    python: str
    git: str


def furnish(base: EnvironmentsFolder, agent: Path, extra: Sequence[Path]) -> Furniture:
    """Prepare everything; IsolationMissing says what to do. Slow the first time, when it hashes the agent's binary."""
    prefixes = [check_prefix(prefix, base) for prefix in extra]
    python, base_prefix = _python()
    if base_prefix is not None:
        prefixes.append(base_prefix)
    roots, links = _system_roots()
    shown = [*roots, *_etc(base), (str(_agent(base, agent)), AGENT)]
    shown += [(str(prefix), str(prefix)) for prefix in dict.fromkeys(prefixes)]
    folders = [str(prefix / "bin") for prefix in prefixes if (prefix / "bin").is_dir()]
    # Programs that the agent installs come last, so that they do not replace the system's.
    path = ":".join([*folders, SYSTEM_PATH, f"{HOME}/.local/bin"])
    git = shutil.which("git", path=SYSTEM_PATH)
    if git is None:
        raise IsolationMissing("git is not installed in /usr/bin or /usr/local/bin: install the git package.")
    return Furniture(tuple(shown), tuple(links), path, python, git)


def check_prefix(prefix: Path, base: EnvironmentsFolder) -> Path:
    """Return a folder of tools if it may be shown inside; else IsolationMissing says why not."""
    found = Path(os.path.realpath(prefix))
    why = None
    if not found.is_dir():
        why = "is not a folder"
    elif found in _TOO_BROAD:
        why = "shows too much of the host"
    elif SECRET_NAMES.intersection(found.parts) or any((found / name).exists() for name in SECRET_NAMES):
        why = "holds credentials"
    elif base.path.is_relative_to(found) or found.is_relative_to(base.path):
        why = "overlaps with the data directory"
    elif any(found.is_relative_to(own) for own in (HOME, WORK, TEMPORARY)):
        why = "lies where a session has a folder of its own"
    elif os.geteuid() == 0 and not others_reach(found):
        why = "cannot be read by the users that sessions run as"
    if why is not None:
        raise IsolationMissing(f"The tool folder {prefix} {why}: name a narrower folder, or leave it out.")
    return found


def _python() -> tuple[str, Path | None]:
    for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if os.access(path, os.X_OK):
            return path, None
    prefix = Path(os.path.realpath(sys.base_prefix))
    binary = prefix / "bin" / "python3"
    if not binary.exists() or (os.geteuid() == 0 and not others_reach(prefix)):
        raise IsolationMissing(
            "No python3 that a session can run: install the system's python3 package (there is none in /usr/bin, "
            "and our own interpreter lies where other users cannot read it)."
        )
    return str(binary), prefix


def _system_roots() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """List the system's folders to show, and the old roots that are links into /usr."""
    shown, links = [("/usr", "/usr")], []
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        root = Path(name)
        if root.is_symlink():
            links.append((str(root.readlink()), name))
        elif root.is_dir():
            shown.append((name, name))
    return shown, links


def _etc(base: EnvironmentsFolder) -> list[tuple[str, str]]:
    folder = base.tools / "etc"
    folder.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(0o755)
    for name, text in _ETC.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o644)
    of_host = [str(path) for name in _ETC_OF_HOST if (path := Path("/etc", name)).exists()]
    return [*((str(folder / name), f"/etc/{name}") for name in _ETC), *zip(of_host, of_host, strict=True)]


def _agent(base: EnvironmentsFolder, source: Path) -> Path:
    """Link or copy the binary once, under a name that contains its hash."""
    try:
        about = source.stat()
    except OSError as error:
        raise IsolationMissing(f"The agent's binary {source} cannot be read: {error.strerror}.") from None
    index = base.tools / "index.json"
    known = _read_index(index)
    key = f"{about.st_dev}:{about.st_ino}:{about.st_mtime_ns}:{about.st_size}"
    name = known.get(key)
    with contextlib.suppress(OSError):
        if name is not None:
            kept = (base.tools / name).lstat()
            if stat.S_ISREG(kept.st_mode) and kept.st_size == about.st_size and kept.st_mode & 0o005 == 0o005:
                return base.tools / name
    target = _take(base.tools, source)
    known[key] = target.name
    for old in list(known)[:-KEPT_BINARIES]:
        name = known.pop(old)
        if name not in known.values():
            (base.tools / name).unlink(missing_ok=True)
    partial = index.with_name(f".index-{os.getpid()}")
    partial.write_text(json.dumps(known), encoding="utf-8")
    partial.replace(index)
    return target


def _read_index(index: Path) -> dict[str, str]:
    try:
        found = json.loads(index.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _take(folder: Path, source: Path) -> Path:
    partial = folder / f".partial-{os.getpid()}"
    partial.unlink(missing_ok=True)
    try:
        # Link only a binary that we own and others can already run, because a link shares owner and mode.
        if source.stat().st_uid != os.geteuid() or source.stat().st_mode & 0o027 != 0o005:
            raise PermissionError
        os.link(os.path.realpath(source), partial)
        digest = _sha256(partial)
    except OSError:
        digest = _copy(source, partial)
    target = folder / f"agent-{digest[:16]}"
    partial.replace(target)
    partial.unlink(missing_ok=True)  # rename() between two links to one file leaves both
    return target


def _copy(source: Path, target: Path) -> str:
    shutil.copyfile(source, target)
    target.chmod(0o755)
    digest = _sha256(target)
    if target.stat().st_size != source.stat().st_size or digest != _sha256(source):
        target.unlink()
        raise IsolationMissing(f"The agent's binary {source} changed while it was copied: start again.")
    return digest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
