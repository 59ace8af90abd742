"""What a box shows of the host, read-only: the agent's binary, interpreters, certificates, a few files of /etc."""

from __future__ import annotations

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
KEPT_BINARIES = 3  # another process of ours may still start boxes with the one before

_TOO_BROAD = frozenset(
    Path("/", name) for name in ("", "home", "root", "etc", "var", "proc", "sys", "dev", "run", "tmp", "srv")
)

# Written once and bound from disk: four descriptors fewer in every box.
_ETC: Mapping[str, str] = {
    "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000::{HOME}:/bin/sh\n"
    "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
}

# Bound one by one: their folders also hold private keys.
_ETC_OF_HOST = (
    "ssl/certs",
    "ssl/openssl.cnf",
    "ssl/cert.pem",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/ca-trust",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "crypto-policies",
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
)


@dataclass(frozen=True)
class Furniture:
    """Ready to be bound: (host path, path inside) pairs, links, and where the programs are found."""

    read_only: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    path: str
    python: str
    git: str


def furnish(base: EnvironmentsFolder, agent: Path, extra: Sequence[Path]) -> Furniture:
    """Slow the first time (the binary is hashed and perhaps copied); raises IsolationMissing with a cure."""
    prefixes = [check_prefix(prefix, base) for prefix in extra]
    python, base_prefix = _python()
    if base_prefix is not None:
        prefixes.append(base_prefix)
    roots, links = _system_roots()
    shown = [*roots, *_etc(base), (str(_agent(base, agent)), AGENT)]
    shown += [(str(prefix), str(prefix)) for prefix in dict.fromkeys(prefixes)]
    folders = [str(prefix / "bin") for prefix in prefixes if (prefix / "bin").is_dir()]
    # What the agent installs for itself comes last: it must not stand before the system's own programs.
    path = ":".join([*folders, SYSTEM_PATH, f"{HOME}/.local/bin"])
    return Furniture(tuple(shown), tuple(links), path, python, _git())


def check_prefix(prefix: Path, base: EnvironmentsFolder) -> Path:
    """A folder of tools that may be shown inside, or IsolationMissing saying why not."""
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


def _git() -> str:
    found = shutil.which("git", path=SYSTEM_PATH)
    if found is None:
        raise IsolationMissing("git is not installed in /usr/bin or /usr/local/bin: install the git package.")
    return found


def _system_roots() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """/usr, and the old roots either as links into it or as folders of their own."""
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
    shown = [(str(folder / name), f"/etc/{name}") for name in _ETC]
    for name in _ETC_OF_HOST:
        path = Path("/etc") / name
        if path.exists():
            shown.append((str(path), str(path)))
    return shown


def _agent(base: EnvironmentsFolder, source: Path) -> Path:
    """The binary under a name that carries its hash, linked or copied once; a changed source gets a new name."""
    try:
        about = source.stat()
    except OSError as error:
        raise IsolationMissing(f"The agent's binary {source} cannot be read: {error.strerror}.") from None
    index = base.tools / "index.json"
    known = _read_index(index)
    key = f"{about.st_dev}:{about.st_ino}:{about.st_mtime_ns}:{about.st_size}"
    name = known.get(key)
    if name is not None and _is_ours(base.tools / name, about.st_size):
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


def _is_ours(path: Path, size: int) -> bool:
    try:
        about = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and about.st_size == size and about.st_mode & 0o005 == 0o005


def _take(folder: Path, source: Path) -> Path:
    partial = folder / f".partial-{os.getpid()}"
    partial.unlink(missing_ok=True)
    try:
        # Only a binary that we own and others can run already: a link shares owner and mode with its source.
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
