"""Records what is in the agent's home, and removes what a turn added there, because the next turn might obey it.

It reads and trusts no file of the agent. It compares the times of change, which only the kernel can set.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import documents
from .repository import remove

CACHES = frozenset(
    {
        *(".cache", ".npm", ".pnpm-store", ".bundle/cache", ".cargo/.global-cache", ".cargo/.package-cache"),
        *(".cargo/git", ".cargo/registry", ".gradle/caches", ".m2/repository", ".nuget/packages", ".yarn/berry"),
        "go/pkg",
    }
)
"""Caches of package clients, which verify them before use. A kept environment is kept for their sake."""


def main() -> int:
    return documents.serve(_answer)


def _answer(spec: dict[str, Any]) -> dict[str, Any]:
    home, known = Path(spec["home"]), spec.get("known")
    names = sorted({entry.name for entry in home.iterdir()} - CACHES - {*spec["own"]})
    if known is None:
        return {"home": {_said(name): _digest(home, name) for name in names}}
    changed = comb(home, names, known)
    for entry in os.scandir(os.environ["TMPDIR"]):
        if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
            _remove(Path(entry.path))
    return {"changed": changed}


def comb(home: Path, names: list[str], known: dict[str, str]) -> list[str]:
    """Remove additions. Return what changed, which we cannot restore, and what was unreadable before."""
    found = {_said(name): _digest(home, name) for name in names if _said(name) in known}
    for name in names:
        if _said(name) not in known:
            _remove(home / name)
    return sorted(name for name, digest in known.items() if not digest or found.get(name) != digest)


def _remove(path: Path) -> None:
    """Remove a tree, even with folders that their owner has closed to itself."""
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        if stat.S_ISDIR(folder.lstat().st_mode):
            folder.chmod(0o700)
            waiting += folder.iterdir()
    remove(path)


def _said(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _digest(home: Path, name: str) -> str:
    """Return a digest that changes with any change of the tree; empty if its owner has closed it to itself."""
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
            waiting += [f"{path}/{entry.name}" for entry in (home / path).iterdir()]
            if any(cache.startswith(f"{path}/") for cache in CACHES):
                continue  # caches below it change it
        yield path, about


if __name__ == "__main__":
    sys.exit(main())
