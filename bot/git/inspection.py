"""Reads trees, files and changes in a quarantine, path by path or as a patch, always within bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from bot.git.errors import BundleRefused, GitFailed
from bot.git.run import Io, run_git

LOOK_SECONDS = 120.0
LOOK_MEMORY = 1 << 30
"""Git may take this much to compare: enough for two files of the largest size that it compares."""
COUNT_MEMORY = 96 << 20
MOST_PATHS = 1_000_000
MOST_NAME_BYTES = 64 << 20
"""The limit for all names together; a million files with folders have less."""
BYTES_PER_PATH = 512
MOST_CHANGED_BYTES = 16 << 20
MAX_TARGET = 4096
BATCH_BYTES = 8 << 20
PATHS_AT_ONCE = 200
GITLINK = "160000"
SYMLINK = "120000"
ABSENT = "000000"
_PLAIN_DIFF = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index"]


class Names(Collection[str]):
    """Paths, held as git wrote them; each becomes a string only while somebody looks at it."""

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
    """Counts the paths that git writes, up to the first part that is too much; `keep` also stores them."""

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


async def _listed(git_dir: Path, tree: str, count: Count) -> Count:
    argv = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree]
    await run_git(argv, git_dir, io=Io(each=count.take), timeout=LOOK_SECONDS)
    return count


@dataclass(frozen=True)
class Change:
    """A changed path; bytes that are not UTF-8 are surrogate escapes in it."""

    path: str
    status: str
    """A, M, D or T (another type of entry under the same name); a rename is a D and an A."""
    old_mode: str
    new_mode: str
    sha: str
    """The new blob (a commit for a submodule; zeros if deleted)."""
    size: int = 0
    added: int = 0
    removed: int = 0
    binary: bool = False
    target: str | None = None
    """The target of a symbolic link."""
    old_sha: str = ""

    @property
    def is_deleted(self) -> bool:
        return self.status == "D"

    @property
    def had_blob(self) -> bool:
        return self.old_mode not in (GITLINK, ABSENT)

    @property
    def has_blob(self) -> bool:
        return self.new_mode not in (GITLINK, ABSENT)


def parse(output: bytes) -> list[Change]:
    """Read `diff-tree -r -z --raw --numstat --no-renames`; sizes and targets are left to fill in."""
    fields = iter(output.split(b"\0")[:-1])
    found: list[Change] = []
    counts: dict[str, tuple[int, int, bool]] = {}
    for entry in fields:
        if entry.startswith(b":"):
            old_mode, new_mode, old_sha, sha, status = entry[1:].decode("ascii").split(" ")
            found.append(Change(decode(next(fields)), status[0], old_mode, new_mode, sha, old_sha=old_sha))
        else:
            added, removed, path = entry.split(b"\t", 2)
            counts[decode(path)] = (0, 0, True) if added == b"-" else (int(added), int(removed), False)
    counted = ((one, *counts.get(one.path, (0, 0, False))) for one in found)
    return [replace(one, added=added, removed=removed, binary=binary) for one, added, removed, binary in counted]


def decode(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


async def require_bounded(git_dir: Path, tree: str, max_paths: int) -> None:
    """Refuse a tree that is small in git but endless when written out."""
    if not await is_bounded(git_dir, tree, max_paths):
        raise BundleRefused(_too_many(max_paths))


async def paths(git_dir: Path, tree: str) -> Names:
    found = await _listed(git_dir, tree, Count(MOST_PATHS, keep=True))
    if not found.is_bounded:
        raise BundleRefused(_too_many(MOST_PATHS))
    return Names(found.said, found.paths)


def _too_many(max_paths: int) -> str:
    most = MOST_NAME_BYTES >> 20
    return f"The work holds more than {max_paths} files, or more than {most} MiB of names."


async def changes(git_dir: Path, base: str, tree: str, *, max_files: int) -> list[Change]:
    most = MOST_CHANGED_BYTES >> 20
    too_many = BundleRefused(
        f"The work changes more than {max_files} files, or files with more than {most} MiB of names."
    )
    if not await _is_small_change(git_dir, base, tree, max_files):
        raise too_many
    argv = ["diff-tree", "-r", "-z", "--raw", "--numstat", *_PLAIN_DIFF, f"{base}^{{tree}}", tree]
    io = Io(cap=max_files * BYTES_PER_PATH, max_memory=LOOK_MEMORY)
    result = await run_git(argv, git_dir, io=io, timeout=LOOK_SECONDS)
    if result.truncated:
        raise too_many
    found = parse(result.stdout)
    shas = sorted({one.sha for one in found if one.has_blob})
    rows = await _cat_file(git_dir, "--batch-check=%(objectname) %(objectsize)", shas, len(shas) * 80 + 1024)
    sizes = {sha: int(size) for sha, size in (row.split(" ") for row in rows.decode().splitlines())}
    targets = await _targets(git_dir, {one.sha for one in found if one.new_mode == SYMLINK}, sizes)
    sized = [replace(one, size=sizes.get(one.sha, 0)) for one in found]
    return [replace(one, target=targets.get(one.sha, "\0")) if one.new_mode == SYMLINK else one for one in sized]


async def _is_small_change(git_dir: Path, base: str, tree: str, max_files: int) -> bool:
    """Count before we hold anything; git itself lists all that differs before it writes the first path."""
    count = Count(max_files, MOST_CHANGED_BYTES)
    argv = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", f"{base}^{{tree}}", tree]
    try:
        await run_git(argv, git_dir, io=Io(each=count.take, max_memory=COUNT_MEMORY), timeout=LOOK_SECONDS)
    except GitFailed as error:
        if not error.out_of_memory:
            raise
        return False
    return count.is_bounded


async def _targets(git_dir: Path, shas: Iterable[str], sizes: dict[str, int]) -> dict[str, str]:
    """Read the targets of links in one command, except those too long for a path or beyond what we can hold."""
    short = [sha for sha in sorted(shas) if sizes.get(sha, 0) <= MAX_TARGET]
    upto = accumulate(sizes.get(sha, 0) for sha in short)
    wanted = [sha for sha, size in zip(short, upto, strict=True) if size <= BATCH_BYTES]
    output = await _cat_file(git_dir, "--batch", wanted, BATCH_BYTES + len(wanted) * 128)
    return dict(zip(wanted, map(decode, _contents(output)), strict=True))


async def _cat_file(git_dir: Path, batch: str, shas: Sequence[str], cap: int) -> bytes:
    if not shas:
        return b""
    io = Io(stdin="".join(f"{sha}\n" for sha in shas).encode(), cap=cap)
    return (await run_git(["cat-file", batch], git_dir, io=io, timeout=LOOK_SECONDS)).stdout


async def blob(git_dir: Path, sha: str, max_bytes: int) -> bytes | None:
    result = await run_git(["cat-file", "blob", sha], git_dir, io=Io(cap=max_bytes), timeout=LOOK_SECONDS)
    return None if result.truncated else result.stdout


async def contents(git_dir: Path, shas: Sequence[str], max_bytes: int) -> list[bytes]:
    """Return small files, each of at most `max_bytes`, in their order."""
    return _contents(await _cat_file(git_dir, "--batch", shas, len(shas) * (max_bytes + 128)))


async def blobs(git_dir: Path, changed: Sequence[Change], max_bytes: int) -> AsyncIterator[tuple[Change, bytes]]:
    for batch in _batches([change for change in changed if change.has_blob and change.size <= max_bytes]):
        cap = sum(change.size + 128 for change in batch)
        output = await _cat_file(git_dir, "--batch", [change.sha for change in batch], cap)
        for change, content in zip(batch, _contents(output), strict=True):
            yield change, content


@dataclass(frozen=True)
class TreeFile:
    """A file of a commit, or a link with its target as content."""

    content: bytes
    is_link: bool = False


async def files(git_dir: Path, sha: str, paths: Sequence[str], max_bytes: int) -> dict[str, TreeFile]:
    """Read these files of a commit, as far as they are there: none larger than `max_bytes`, `BATCH_BYTES` in all."""
    entries: dict[str, tuple[bool, str]] = {}
    sizes: dict[str, int] = {}
    for at in range(0, len(paths), PATHS_AT_ONCE):
        argv = ["ls-tree", "-z", "-l", "--full-tree", sha, "--", *paths[at : at + PATHS_AT_ONCE]]
        listed = await run_git(argv, git_dir, io=Io(env={"GIT_LITERAL_PATHSPECS": "1"}), timeout=LOOK_SECONDS)
        for entry in listed.stdout.split(b"\0")[:-1]:
            head, path = entry.split(b"\t", 1)
            mode, kind, blob, size = head.decode("ascii").split()
            if kind == "blob" and int(size) <= max_bytes and sum(sizes.values()) + int(size) <= BATCH_BYTES:
                entries[decode(path)], sizes[blob] = (mode == SYMLINK, blob), int(size)
    output = await _cat_file(git_dir, "--batch", list(sizes), sum(sizes.values()) + len(sizes) * 128)
    content = dict(zip(sizes, _contents(output), strict=True))
    return {path: TreeFile(content[blob], is_link) for path, (is_link, blob) in entries.items()}


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


@dataclass(frozen=True)
class TreePatch:
    """A change as a patch; `cut` says that it was longer than we read."""

    content: bytes
    cut: bool = False


async def patch(git_dir: Path, base: str, tree: str, max_bytes: int, paths: Sequence[str] = ()) -> TreePatch:
    only = ["--", *(f":(literal){path}" for path in paths)] if paths else []
    argv = ["diff-tree", "-r", "-p", "--binary", *_PLAIN_DIFF, f"{base}^{{tree}}", tree, *only]
    result = await run_git(argv, git_dir, io=Io(cap=max_bytes, max_memory=LOOK_MEMORY), timeout=LOOK_SECONDS)
    content = result.stdout[: result.stdout.rfind(b"\n") + 1] if result.truncated else result.stdout
    return TreePatch(content, result.truncated)
