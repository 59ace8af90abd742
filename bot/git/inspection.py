"""Looks at trees and files in a quarantine: what changed, what is in it, as a patch; all of it bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from bot.git import listing
from bot.git.changes import SYMLINK, Change, RawChange, decode, parse
from bot.git.errors import BundleRefused, GitFailed
from bot.git.listing import Names
from bot.git.run import Io, run_git

LOOK_SECONDS = 120.0
BYTES_PER_PATH = 512
MOST_CHANGED_BYTES = 16 << 20
COUNT_MEMORY = 96 << 20
MAX_TARGET = 4096
BATCH_BYTES = 8 << 20
_PLAIN_DIFF = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index"]


async def require_bounded(git_dir: Path, tree: str, max_paths: int) -> None:
    """Refuse a tree that is small in git and endless when written out."""
    if not await listing.is_bounded(git_dir, tree, max_paths):
        raise BundleRefused(_too_many(max_paths))


async def paths(git_dir: Path, tree: str, *, max_paths: int = listing.MOST_PATHS) -> Names:
    found = await listing.names(git_dir, tree, max_paths)
    if found is None:
        raise BundleRefused(_too_many(max_paths))
    return found


def _too_many(max_paths: int) -> str:
    most = listing.MOST_NAME_BYTES >> 20
    return f"The work holds more than {max_paths} files, or more than {most} MiB of names."


async def changes(git_dir: Path, base: str, tree: str, *, max_files: int) -> list[Change]:
    await _require_few(git_dir, base, tree, max_files)
    argv = ["diff-tree", "-r", "-z", "--raw", "--numstat", *_PLAIN_DIFF, f"{base}^{{tree}}", tree]
    io = Io(cap=max_files * BYTES_PER_PATH, max_memory=listing.LOOK_MEMORY)
    result = await run_git(argv, git_dir, io=io, timeout=LOOK_SECONDS)
    if result.truncated:
        raise BundleRefused(_too_many_changed(max_files))
    raw, counts = parse(result.stdout)
    sizes = await _sizes(git_dir, {entry.sha for entry in raw if _has_blob(entry)})
    targets = await _targets(git_dir, {entry.sha for entry in raw if entry.new_mode == SYMLINK}, sizes)
    return [_change(entry, counts.get(entry.path, (0, 0, False)), sizes, targets) for entry in raw]


async def _require_few(git_dir: Path, base: str, tree: str, max_files: int) -> None:
    """Before any of it is held; git itself holds a list of all that differs before it says the first."""
    count = listing.Count(max_files, MOST_CHANGED_BYTES)
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
