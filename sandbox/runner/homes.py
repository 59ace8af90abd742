"""Tells what lies in the agent's home, and takes away what a turn has laid there: the next one would obey some of it.

No file of the agent's is read, and none is believed: the times at which the system saw files change cannot be set.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from . import documents
from .repository import remove

CACHES = frozenset(
    {
        *(".cache", ".npm", ".pnpm-store", ".bundle/cache", ".cargo/.global-cache", ".cargo/.package-cache"),
        *(".cargo/git", ".cargo/registry", ".gradle/caches", ".m2/repository", ".nuget/packages", ".yarn/berry"),
        "go/pkg",
    }
)
"""What package clients keep there, and look at again before they use it; a kept environment is kept for that."""


def main() -> int:
    spec = documents.read_stdin()
    home, known = Path(spec["home"]), spec.get("known")
    try:
        names = sorted(name for name in _names(home) if name not in CACHES and name not in spec["own"])
        if known is None:
            documents.answer({"ok": True, "home": {_said(name): _digest(home, name) for name in names}})
            return 0
        changed = comb(home, names, known)
        empty(Path(os.environ["TMPDIR"]))
    except OSError as error:
        documents.answer({"ok": False, "error": str(error)})
        return 1
    documents.answer({"ok": True, "changed": changed})
    return 0


def comb(home: Path, names: list[str], known: dict[str, str]) -> list[str]:
    """What has come is removed. Returned is what is not as it was, for which there is nothing to put in its place, and
    what nobody could look into before."""
    found = {_said(name): _digest(home, name) for name in names if _said(name) in known}
    for name in names:
        if _said(name) not in known:
            _remove(home / name)
    return sorted(name for name, digest in known.items() if not digest or found.get(name) != digest)


def empty(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
            _remove(Path(entry.path))


def _remove(path: Path) -> None:
    """Also folders that their owner has closed to itself."""
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        if stat.S_ISDIR(folder.lstat().st_mode):
            folder.chmod(0o700)
            waiting += folder.iterdir()
    remove(path)


def _names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def _said(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _digest(home: Path, name: str) -> str:
    """Which any change of it changes; empty where its owner has closed it to itself."""
    found = hashlib.sha256()
    try:
        for path, about in sorted(_entries(home, name)):
            facts = [about.st_mode, about.st_ino, about.st_size, about.st_ctime_ns]
            found.update(json.dumps([path.encode("utf-8", "surrogateescape").hex(), facts]).encode())
    except PermissionError:
        return ""
    return found.hexdigest()


def _entries(home: Path, name: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [name]
    while waiting:
        path = waiting.pop()
        if path in CACHES:
            continue
        about = os.lstat(home / path)
        if stat.S_ISDIR(about.st_mode):
            waiting += [f"{path}/{entry}" for entry in _names(home / path)]
            if any(cache.startswith(f"{path}/") for cache in CACHES):
                continue  # it changes with what is below it
        yield path, about


if __name__ == "__main__":
    sys.exit(main())
