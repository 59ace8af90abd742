"""Reads files that others may have planted: it follows no link and opens only plain files."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from bot.errors import UserError
from bot.workbench import words
from sandbox.runner.safe_files import open_regular

MOST_BYTES = 1 << 20
_DATA_FOLDER = re.compile(r"[0-9a-f]{2}|pack")


def text(path: Path) -> str | None:
    found = content(path)
    return None if found is None else os.fsdecode(found)


def content(path: Path, most_bytes: int = MOST_BYTES) -> bytes | None:
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return None
    except OSError:
        raise UserError(words.not_plain(path)) from None
    with os.fdopen(file, "rb") as opened:
        return opened.read(most_bytes)


def require_file(path: Path, most_bytes: int) -> None:
    _require_size(path, _require(path, stat.S_ISREG), most_bytes)


def require_folder(path: Path) -> None:
    _require(path, stat.S_ISDIR)


def _require(path: Path, is_kind: Callable[[int], bool]) -> int:
    """Check the kind of a file that may be absent, and return its size."""
    try:
        about = path.lstat()
    except FileNotFoundError:
        return 0
    except OSError:
        raise UserError(words.not_plain(path)) from None
    if not is_kind(about.st_mode):
        raise UserError(words.not_plain(path))
    return about.st_size


def _require_size(path: Path, size: int, most_bytes: int | None) -> None:
    """Check the apparent size, not the room on disk: git would read all of a sparse file."""
    if most_bytes is not None and size > most_bytes:
        raise UserError(words.large_file(path, most_bytes))


def require_tree(folder: Path, most_bytes: int | None = None) -> None:
    """Check everything in the folder; each file may hold `most_bytes`."""
    require_folder(folder)
    waiting = [folder] if folder.exists() else []
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    raise UserError(words.not_plain(Path(entry.path)))
                elif most_bytes is not None:
                    _require_size(Path(entry.path), entry.stat(follow_symlinks=False).st_size, most_bytes)


def data_folders(objects: Path) -> list[Path]:
    """Return the folders of a store in which git finds objects. The exact names matter: on a disk that ignores case, a
    link named `AB` would pass for `ab` without being judged."""
    return [folder for folder in sorted(objects.iterdir()) if _DATA_FOLDER.fullmatch(folder.name)]


def about(top: bytes, path: bytes) -> os.stat_result | None:
    """Return the status of a file or link; None if it is absent or behind a link."""
    steps = path.split(b"/")
    here = top
    try:
        for step in steps[:-1]:
            here += b"/" + step
            if not stat.S_ISDIR(os.lstat(here).st_mode):
                return None
        found = os.lstat(here + b"/" + steps[-1])
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode) else None


def copy_index(git_dir: Path, place: Path) -> None:
    """Copy the index with its dates: git looks again at an entry that is as young as the index."""
    for file in (git_dir / "index", *git_dir.glob("sharedindex.*")):
        if file.is_file():
            shutil.copy2(file, place / file.name)
