"""Reads trees, files and changes in a quarantine, path by path and as a patch; everything is bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from bot.git.errors import BundleRefused, GitFailed
from bot.git.run import Io, run_git

LOOK_MEMORY = 1 << 30
"""Of git itself, where it compares: room for two files as large as it compares at all."""
MOST_PATHS = 1_000_000
MOST_NAME_BYTES = 64 << 20
"""Of all names together: a million files with folders have less."""


class Names(Collection[str]):
    """Held as git has said them; each is made into a word only while somebody looks at it."""

    def __init__(self, said: bytes | bytearray, count: int) -> None:
        self._said, self._count = said, count

    def __len__(self) -> int:
        return self._count

    def __contains__(self, path: object) -> bool:
        return any(path == one for one in self)

    def __iter__(self) -> Iterator[str]:
        start = 0
        while (end := self._said.find(b"\0", start)) >= 0:
            yield decode(bytes(self._said[start:end]))
            start = end + 1


class Count:
    """What comes in, up to the first part that is too much; `keep` holds on to it."""

    def __init__(self, max_paths: int, max_bytes: int = MOST_NAME_BYTES, *, keep: bool = False) -> None:
        self.paths = 0
        self.said = bytearray()
        self._size = 0
        self._max_paths, self._max_bytes, self._keep = max_paths, max_bytes, keep

    @property
    def is_bounded(self) -> bool:
        return self.paths <= self._max_paths and self._size <= self._max_bytes

    def take(self, part: bytes) -> bool:
        self.paths += part.count(b"\0")
        self._size += len(part)
        if self._keep and self.is_bounded:
            self.said += part
        return self.is_bounded


async def is_bounded(git_dir: Path, tree: str, max_paths: int = MOST_PATHS) -> bool:
    return (await _listed(git_dir, tree, Count(max_paths))).is_bounded


async def names(git_dir: Path, tree: str, max_paths: int = MOST_PATHS) -> Names | None:
    """None where they are too many."""
    found = await _listed(git_dir, tree, Count(max_paths, keep=True))
    return Names(found.said, found.paths) if found.is_bounded else None


async def _listed(git_dir: Path, tree: str, count: Count) -> Count:
    argv = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree]
    await run_git(argv, git_dir, io=Io(each=count.take), timeout=LOOK_SECONDS)
    return count


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


LOOK_SECONDS = 120.0
BYTES_PER_PATH = 512
MOST_CHANGED_BYTES = 16 << 20
COUNT_MEMORY = 96 << 20
MAX_TARGET = 4096
BATCH_BYTES = 8 << 20
_PLAIN_DIFF = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index"]


async def require_bounded(git_dir: Path, tree: str, max_paths: int) -> None:
    """Refuse a tree that is small in git and endless when written out."""
    if not await is_bounded(git_dir, tree, max_paths):
        raise BundleRefused(_too_many(max_paths))


async def paths(git_dir: Path, tree: str, *, max_paths: int = MOST_PATHS) -> Names:
    found = await names(git_dir, tree, max_paths)
    if found is None:
        raise BundleRefused(_too_many(max_paths))
    return found


def _too_many(max_paths: int) -> str:
    most = MOST_NAME_BYTES >> 20
    return f"The work holds more than {max_paths} files, or more than {most} MiB of names."


async def changes(git_dir: Path, base: str, tree: str, *, max_files: int) -> list[Change]:
    await _require_few(git_dir, base, tree, max_files)
    argv = ["diff-tree", "-r", "-z", "--raw", "--numstat", *_PLAIN_DIFF, f"{base}^{{tree}}", tree]
    io = Io(cap=max_files * BYTES_PER_PATH, max_memory=LOOK_MEMORY)
    result = await run_git(argv, git_dir, io=io, timeout=LOOK_SECONDS)
    if result.truncated:
        raise BundleRefused(_too_many_changed(max_files))
    raw, counts = parse(result.stdout)
    sizes = await _sizes(git_dir, {entry.sha for entry in raw if _has_blob(entry)})
    targets = await _targets(git_dir, {entry.sha for entry in raw if entry.new_mode == SYMLINK}, sizes)
    return [_change(entry, counts.get(entry.path, (0, 0, False)), sizes, targets) for entry in raw]


async def _require_few(git_dir: Path, base: str, tree: str, max_files: int) -> None:
    """Before any of it is held; git itself holds a list of all that differs before it says the first."""
    count = Count(max_files, MOST_CHANGED_BYTES)
    argv = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", f"{base}^{{tree}}", tree]
    try:
        await run_git(argv, git_dir, io=Io(each=count.take, max_memory=COUNT_MEMORY), timeout=LOOK_SECONDS)
    except GitFailed as error:
        if "ut of memory" not in error.words:
            raise
        raise BundleRefused(_too_many_changed(max_files)) from None
    if not count.is_bounded:
        raise BundleRefused(_too_many_changed(max_files))


def _too_many_changed(max_files: int) -> str:
    most = MOST_CHANGED_BYTES >> 20
    return f"The work changes more than {max_files} files, or files with more than {most} MiB of names."


def _has_blob(entry: RawChange) -> bool:
    return entry.new_mode not in ("160000", "000000")


async def _targets(git_dir: Path, shas: Iterable[str], sizes: dict[str, int]) -> dict[str, str]:
    """Where links point, read by one command; left out is one too long for a path, and all beyond what can be held."""
    short = [sha for sha in sorted(shas) if sizes.get(sha, 0) <= MAX_TARGET]
    upto = accumulate(sizes.get(sha, 0) for sha in short)
    wanted = [sha for sha, size in zip(short, upto, strict=True) if size <= BATCH_BYTES]
    if not wanted:
        return {}
    io = Io(stdin="\n".join([*wanted, ""]).encode(), cap=BATCH_BYTES + len(wanted) * 128)
    result = await run_git(["cat-file", "--batch"], git_dir, io=io, timeout=LOOK_SECONDS)
    return dict(zip(wanted, map(decode, _contents(result.stdout)), strict=True))


def _change(entry: RawChange, counted: tuple[int, int, bool], sizes: dict[str, int], targets: dict[str, str]) -> Change:
    size = sizes.get(entry.sha, 0)
    target = targets.get(entry.sha, "\0") if entry.new_mode == SYMLINK else None
    added, removed, binary = counted
    return Change(
        entry.path, entry.status, entry.old_mode, entry.new_mode, entry.sha,
        size=size, added=added, removed=removed, binary=binary, target=target, old_sha=entry.old_sha,
    )  # fmt: skip


async def _sizes(git_dir: Path, shas: Iterable[str]) -> dict[str, int]:
    wanted = sorted(shas)
    if not wanted:
        return {}
    io = Io(stdin="\n".join([*wanted, ""]).encode(), cap=len(wanted) * 80 + 1024)
    argv = ["cat-file", "--batch-check=%(objectname) %(objectsize)"]
    rows = (await run_git(argv, git_dir, io=io, timeout=LOOK_SECONDS)).text.splitlines()
    return {sha: int(size) for sha, size in (row.split(" ") for row in rows)}


async def blob(git_dir: Path, sha: str, max_bytes: int) -> bytes | None:
    result = await run_git(["cat-file", "blob", sha], git_dir, io=Io(cap=max_bytes), timeout=LOOK_SECONDS)
    return None if result.truncated else result.stdout


async def blobs(git_dir: Path, changed: Sequence[Change], max_bytes: int) -> AsyncIterator[tuple[Change, bytes]]:
    for batch in _batches([change for change in changed if change.has_blob and change.size <= max_bytes]):
        shas = "".join(f"{change.sha}\n" for change in batch)
        io = Io(stdin=shas.encode(), cap=sum(change.size + 128 for change in batch))
        result = await run_git(["cat-file", "--batch"], git_dir, io=io, timeout=LOOK_SECONDS)
        for change, content in zip(batch, _contents(result.stdout), strict=True):
            yield change, content


def _batches(changed: Sequence[Change]) -> list[list[Change]]:
    batches: list[list[Change]] = []
    room = 0
    for change in changed:
        if room < change.size or not batches:
            batches.append([])
            room = BATCH_BYTES
        batches[-1].append(change)
        room -= change.size + 128
    return batches


def _contents(output: bytes) -> list[bytes]:
    found, position = [], 0
    while position < len(output):
        end = output.index(b"\n", position)
        header = output[position:end].split(b" ")
        if len(header) != 3:
            raise GitFailed("cat-file", 0, "an object is missing")
        size = int(header[2])
        found.append(output[end + 1 : end + 1 + size])
        position = end + size + 2
    return found


async def patch(git_dir: Path, base: str, tree: str, max_bytes: int, paths: Sequence[str] = ()) -> bytes:
    only = ["--", *(f":(literal){path}" for path in paths)] if paths else []
    argv = ["diff-tree", "-r", "-p", "--binary", *_PLAIN_DIFF, f"{base}^{{tree}}", tree, *only]
    result = await run_git(argv, git_dir, io=Io(cap=max_bytes), timeout=LOOK_SECONDS)
    return result.stdout[: result.stdout.rfind(b"\n") + 1] if result.truncated else result.stdout
