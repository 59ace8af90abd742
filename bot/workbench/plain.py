"""Reads files that somebody else may have put there: no link is followed, nothing but a plain file is opened."""

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
    """None where there is nothing."""
    found = content(path)
    return None if found is None else os.fsdecode(found)


def content(path: Path, most_bytes: int = MOST_BYTES) -> bytes | None:
    """Its first bytes."""
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
    """It may be absent. Its size."""
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
    """As it says, not as it takes room: a file of holes takes none, and git would read all of it."""
    if most_bytes is not None and size > most_bytes:
        raise UserError(words.large_file(path, most_bytes))


def require_tree(folder: Path, most_bytes: int | None = None) -> None:
    """The folder and all that is in it; `most_bytes` of each file."""
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
    """Those of a store of objects that git looks into, so that none is lent that was not judged: where a disk tells no
    capitals apart, a link named `AB` would answer for `ab`."""
    return [folder for folder in sorted(objects.iterdir()) if _DATA_FOLDER.fullmatch(folder.name)]


def about(top: bytes, path: bytes) -> os.stat_result | None:
    """Of a file or link of a folder; None where there is none, or where it lies behind a link."""
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
    """With its dates: an entry written in the same moment as the index is one that git looks at again."""
    for file in (git_dir / "index", *git_dir.glob("sharedindex.*")):
        if file.is_file():
            shutil.copy2(file, place / file.name)
