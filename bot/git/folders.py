"""Reads small folders of a commit from a mirror: regular files only, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.git.errors import GitFailed, MirrorLost
from bot.git.inspection import LOOK_SECONDS, decode
from bot.git.run import Io, run_git

REGULAR = ("100644", "100755")
LIST_BYTES = 4 << 20
"""The names that we look at: more than a thousand times the files that anybody keeps there."""


@dataclass(frozen=True)
class FolderBounds:
    most_files: int
    max_file: int
    max_bytes: int
    first: Callable[[str], bool]
    """The paths that come before the others if not all have room."""


@dataclass(frozen=True)
class FolderFile:
    path: str
    executable: bool
    data: bytes


@dataclass(frozen=True)
class FolderContent:
    files: tuple[FolderFile, ...]
    special: int
    """Links and submodules."""
    beyond: int
    """Files that are too large, or more than we take."""


@dataclass(frozen=True)
class _Entry:
    path: str
    mode: str
    sha: str
    size: int

    @classmethod
    def of(cls, line: bytes) -> _Entry:
        head, _, path = line.partition(b"\t")
        mode, _, sha, size = head.decode("ascii").split()
        return cls(decode(path), mode, sha, int(size) if size.isdigit() else 0)


async def read(mirror: Path, sha: str, folders: Sequence[str], bounds: FolderBounds) -> FolderContent:
    """Read what lies below the folders of a commit."""
    argv = ["ls-tree", "-r", "-z", "-l", "--full-tree", sha, *folders]
    try:
        listed = await run_git(argv, mirror, io=Io(cap=LIST_BYTES), timeout=LOOK_SECONDS)
        entries = [_Entry.of(one) for one in listed.stdout.split(b"\0")[:-1]]
        regular = [one for one in entries if one.mode in REGULAR]
        taken = _within(sorted(regular, key=lambda one: (not bounds.first(one.path), one.path)), bounds)
        blobs = await _blobs(mirror, taken, bounds.max_bytes)
    except GitFailed:
        raise MirrorLost("the cached repository does not give out its files") from None
    files = (FolderFile(one.path, one.mode == REGULAR[1], data) for one, data in zip(taken, blobs, strict=True))
    return FolderContent(tuple(files), len(entries) - len(regular), len(regular) - len(taken))


def _within(entries: Sequence[_Entry], bounds: FolderBounds) -> list[_Entry]:
    taken: list[_Entry] = []
    left = bounds.max_bytes
    for one in entries:
        if one.size <= min(bounds.max_file, left) and len(taken) < bounds.most_files:
            taken.append(one)
            left -= one.size
    return taken


async def _blobs(mirror: Path, entries: Sequence[_Entry], max_bytes: int) -> list[bytes]:
    if not entries:
        return []
    wanted = "".join(f"{one.sha}\n" for one in entries).encode()
    io = Io(stdin=wanted, cap=max_bytes + 128 * len(entries))
    said = (await run_git(["cat-file", "--batch"], mirror, io=io, timeout=LOOK_SECONDS)).stdout
    found, at = [], 0
    for one in entries:
        head = said.find(b"\n", at)
        if head < 0 or said[at:head] != f"{one.sha} blob {one.size}".encode():
            raise MirrorLost("the cached repository does not give out its files")
        found.append(said[head + 1 : head + 1 + one.size])
        at = head + 1 + one.size + 1
    return found
