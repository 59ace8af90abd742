"""What a turn changed, path by path, as `git diff-tree` tells it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

GITLINK = "160000"
SYMLINK = "120000"
ABSENT = "000000"


@dataclass(frozen=True)
class Change:
    """One path; bytes that are not UTF-8 stand in it as surrogate escapes."""

    path: str
    status: str
    """A, M, D or T (another kind of thing under the same name); renames are a D and an A."""
    old_mode: str
    new_mode: str
    sha: str
    """Of the new blob (a commit for a submodule; zeros when deleted)."""
    size: int = 0
    added: int = 0
    removed: int = 0
    binary: bool = False
    target: str | None = None
    """Where a symbolic link points."""
    old_sha: str = ""
    """Of what stood there before."""

    @property
    def is_deleted(self) -> bool:
        return self.status == "D"

    @property
    def had_blob(self) -> bool:
        return self.old_mode not in (GITLINK, ABSENT)

    @property
    def has_blob(self) -> bool:
        return self.new_mode not in (GITLINK, ABSENT)


@dataclass(frozen=True)
class RawChange:
    path: str
    status: str
    old_mode: str
    new_mode: str
    sha: str
    old_sha: str


def parse(output: bytes) -> tuple[list[RawChange], Mapping[str, tuple[int, int, bool]]]:
    """The raw entries and the line counts of `diff-tree -r -z --raw --numstat --no-renames`."""
    fields = iter(output.split(b"\0")[:-1])
    raw: list[RawChange] = []
    counts: dict[str, tuple[int, int, bool]] = {}
    for entry in fields:
        if entry.startswith(b":"):
            raw.append(_raw(entry, fields))
        else:
            added, removed, path = entry.split(b"\t", 2)
            counts[decode(path)] = (_count(added), _count(removed), added == b"-")
    return raw, counts


def _raw(entry: bytes, fields: Iterator[bytes]) -> RawChange:
    old_mode, new_mode, old_sha, sha, status = entry[1:].decode("ascii").split(" ")
    return RawChange(decode(next(fields)), status[0], old_mode, new_mode, sha, old_sha)


def _count(text: bytes) -> int:
    return 0 if text == b"-" else int(text)


def decode(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
