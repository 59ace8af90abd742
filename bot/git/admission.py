"""Takes a bundle into a quarantine after judging its header and measuring its pack in bounded memory."""

from __future__ import annotations

import asyncio
import mmap
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from bot.git import inspection
from bot.git.errors import BundleRefused, GitFailed, GitTimedOut, MirrorLost
from bot.git.remote import clean_words
from bot.git.run import Io, run_git
from sandbox.runner.safe_files import NotRegular, open_regular

_TREE_LIKE = (1, 2, 3)
_OFFSET_DELTA, _REF_DELTA = 6, 7
_TRAILER = 20
WORK_REF = "refs/forgehand/work"
MAX_HEADER = 1 << 20
"""The header repeats the first line of each prerequisite's message, which may be long."""
_V2 = b"# v2 git bundle\n"
_PREREQUISITE = re.compile(rb"-([0-9a-f]{40})(?: .*)?")
_REF = re.compile(rb"([0-9a-f]{40}) (.+)")
COMMIT_CAP = 4 << 20
_CUT_OFF = "The work's bundle is cut off or damaged."


@dataclass(frozen=True)
class ImportLimits:
    max_bundle_bytes: int = 200 << 20
    max_objects: int = 200_000
    max_object_bytes: int = 100 << 20
    max_unpacked_bytes: int = 1 << 30
    max_paths: int = 1_000_000
    """The most files of the whole tree, written out: a few nested trees can stand for more than any disk holds."""
    timeout_seconds: float = 180.0


def measure(pack: mmap.mmap, start: int, limits: ImportLimits) -> None:
    """Walk all entries of a pack, or raise BundleRefused. Sizes that deltas promise count, because git builds them."""
    if len(pack) < start + 12 + _TRAILER or pack[start : start + 8] != b"PACK\0\0\0\2":
        raise BundleRefused(_CUT_OFF)
    count = int.from_bytes(pack[start + 8 : start + 12], "big")
    if count > limits.max_objects:
        raise BundleRefused(f"The work holds {count} git objects; at most {limits.max_objects} are taken.")
    position, total = start + 12, 0
    too_large = BundleRefused(
        f"The work is too large once unpacked: at most {limits.max_object_bytes >> 20} MiB a file and "
        f"{limits.max_unpacked_bytes >> 20} MiB in all are taken."
    )
    for _ in range(count):
        kind, size, position = _entry_header(pack, position)
        total += size
        if size > limits.max_object_bytes or total > limits.max_unpacked_bytes:
            raise too_large
        head, position = _inflate(pack, position, size)
        if kind in (_OFFSET_DELTA, _REF_DELTA):
            result = _delta_result(head)
            total += result
            if result > limits.max_object_bytes:
                raise too_large
    if total > limits.max_unpacked_bytes:
        raise too_large
    if position + _TRAILER != len(pack):
        raise BundleRefused(_CUT_OFF)


def _byte(pack: mmap.mmap, position: int) -> int:
    if position >= len(pack) - _TRAILER:
        raise BundleRefused(_CUT_OFF)
    return pack[position]


def _entry_header(pack: mmap.mmap, position: int) -> tuple[int, int, int]:
    byte = _byte(pack, position)
    kind, size, shift = (byte >> 4) & 7, byte & 15, 4
    while byte & 0x80:
        position += 1
        byte = _byte(pack, position)
        size |= (byte & 0x7F) << shift
        shift += 7
        if shift > 63:
            raise BundleRefused(_CUT_OFF)
    position += 1
    if kind == _OFFSET_DELTA:
        while _byte(pack, position) & 0x80:
            position += 1
        position += 1
    elif kind == _REF_DELTA:
        position += 20
    elif kind not in _TREE_LIKE:
        raise BundleRefused("The work's bundle holds something other than commits, folders and files.")
    return kind, size, position


def _inflate(pack: mmap.mmap, position: int, size: int) -> tuple[bytes, int]:
    """Return the first bytes of an entry's content, and where the next entry starts."""
    inflater = zlib.decompressobj()
    head, length, limit = b"", 0, len(pack) - _TRAILER
    step = min(1 << 16, size + 64)
    data = b""
    try:
        while not inflater.eof:
            if not data:
                data = pack[position : min(position + step, limit)]
                position += len(data)
            part = inflater.decompress(data, 1 << 16)
            head = head or part[:32]
            length += len(part)
            stuck = not data and not part and not inflater.eof
            if stuck or length > size:
                raise BundleRefused(_CUT_OFF)
            data = inflater.unconsumed_tail
    except zlib.error:
        raise BundleRefused(_CUT_OFF) from None
    if length != size:
        raise BundleRefused(_CUT_OFF)
    return head, position - len(inflater.unused_data)


def _delta_result(head: bytes) -> int:
    """Return the size of what a delta makes: the second of the two numbers that it starts with."""
    numbers = iter(head)
    size = 0
    for _ in range(2):
        size, shift = 0, 0
        for byte in numbers:
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        else:
            raise BundleRefused(_CUT_OFF)
    return size


@dataclass(frozen=True)
class BundleHeader:
    tip: str
    prerequisites: frozenset[str]
    pack_offset: int


def parse_header(data: bytes) -> BundleHeader:
    """Read a header, which `data` starts with, and refuse everything except exactly what we asked for."""
    if data.startswith(b"# v3 git bundle"):
        raise BundleRefused("The work's bundle is of version 3, which may be partial; only version 2 is taken.")
    if not data.startswith(_V2):
        raise BundleRefused("The work did not come as a git bundle." if data else "The work's bundle is empty.")
    end = data.find(b"\n\n", len(_V2) - 1)
    if end < 0 or end > MAX_HEADER:
        raise BundleRefused("The work's bundle is cut off or its header is too long.")
    tips: list[str] = []
    prerequisites: set[str] = set()
    for line in data[len(_V2) : end].split(b"\n"):
        if found := _PREREQUISITE.fullmatch(line):
            prerequisites.add(found[1].decode())
        elif (ref := _REF.fullmatch(line)) is None:
            raise BundleRefused("The header of the work's bundle is malformed.")
        elif ref[2] != WORK_REF.encode():
            raise BundleRefused("The work's bundle holds a ref that was not asked for.")
        else:
            tips.append(ref[1].decode())
    if len(tips) != 1:
        raise BundleRefused(f"The work's bundle holds {len(tips)} refs where exactly one was expected.")
    return BundleHeader(tips[0], frozenset(prerequisites), end + 2)


async def admit(git_dir: Path, bundle: Path, base: str, limits: ImportLimits) -> str:
    file, header = await asyncio.to_thread(_examine, bundle, limits)
    try:
        await _require_prerequisites(git_dir, header, base)
        try:
            await _index(git_dir, file, limits)
            tree = await _require_one_commit(git_dir, header.tip, base)
            await inspection.require_bounded(git_dir, tree, limits.max_paths)
            await _require_connected(git_dir, header.tip, base)
            return tree
        except GitFailed as error:
            raise BundleRefused(_sentence(error)) from None
        except GitTimedOut:
            raise BundleRefused("The work took git too long to check.") from None
    finally:
        os.close(file)


async def readmit(git_dir: Path, bundle: Path, commit: str, limits: ImportLimits) -> str:
    """Take in a bundle that we wrote ourselves. It was on a disk since, so we trust only the commit's SHA."""
    file, header = await asyncio.to_thread(_examine, bundle, limits)
    try:
        if header.tip != commit:
            raise BundleRefused("What was kept is not the commit that was held.")
        for parent in header.prerequisites:
            if not await _is_commit(git_dir, parent):
                raise MirrorLost("the commit that the held work stands on is not in the cache")
        await _index(git_dir, file, limits)
        for parent in header.prerequisites:
            await _require_connected(git_dir, commit, parent)
    except GitFailed as error:
        raise BundleRefused(_sentence(error)) from None
    finally:
        os.close(file)
    return (await run_git(["rev-parse", "--verify", f"{commit}^{{tree}}"], git_dir)).text


def _examine(bundle: Path, limits: ImportLimits) -> tuple[int, BundleHeader]:
    """Judge the bundle and return it as an open file at its pack, so that git reads the same bytes that we judged."""
    try:
        file = open_regular(bundle)
    except NotRegular:
        raise BundleRefused("The work's bundle is not a regular file.") from None
    except OSError:
        raise BundleRefused("The work's bundle cannot be opened.") from None
    try:
        if os.fstat(file).st_size > limits.max_bundle_bytes:
            raise BundleRefused(f"The work's bundle is larger than {limits.max_bundle_bytes >> 20} MiB.")
        header = parse_header(os.pread(file, MAX_HEADER + 64, 0))
        with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as content:
            measure(content, header.pack_offset, limits)
        os.lseek(file, header.pack_offset, os.SEEK_SET)
        return file, header
    except BaseException:
        os.close(file)
        raise


async def _require_prerequisites(git_dir: Path, header: BundleHeader, base: str) -> None:
    if not await _is_commit(git_dir, base):
        raise MirrorLost("the commit that the work started from is not in the cache")
    if base not in header.prerequisites:
        raise BundleRefused("The work's bundle does not build on the commit that the session started from.")
    for other in header.prerequisites - {base}:
        if not await _is_commit(git_dir, other):
            raise BundleRefused("The work's bundle builds on a commit that the repository does not have.")


async def _is_commit(git_dir: Path, sha: str) -> bool:
    result = await run_git(["cat-file", "-t", sha], git_dir, accept=(0, 128))
    return result.text == "commit"


async def _index(git_dir: Path, file: int, limits: ImportLimits) -> None:
    size = limits.max_bundle_bytes
    strict = "--strict=badFilemode=error"
    argv = ["index-pack", "--stdin", "--fix-thin", strict, "--threads=1", f"--max-input-size={size}"]
    # Fixing a thin pack appends its bases from the mirror; they count as unpacked.
    io = Io(stdin=file, max_file_bytes=size + limits.max_unpacked_bytes)
    await run_git(argv, git_dir, io=io, timeout=limits.timeout_seconds)


async def _require_one_commit(git_dir: Path, tip: str, base: str) -> str:
    result = await run_git(["cat-file", "commit", tip], git_dir, io=Io(cap=COMMIT_CAP))
    lines = result.stdout.partition(b"\n\n")[0].split(b"\n")
    parents = [line[7:].decode("ascii", "replace") for line in lines if line.startswith(b"parent ")]
    if parents != [base]:
        raise BundleRefused("The work is not one commit on top of the commit that the session started from.")
    return lines[0].removeprefix(b"tree ").decode("ascii", "replace")


async def _require_connected(git_dir: Path, tip: str, base: str) -> None:
    """Fail unless everything that the new commit reaches is here, or was here when the mirror was fetched."""
    argv = ["rev-list", "--objects", "--quiet", "--end-of-options", tip, f"^{base}"]
    await run_git(argv, git_dir, timeout=120.0)


def _sentence(error: GitFailed) -> str:
    told = next((line for line in error.words.splitlines() if "error" in line or "fatal" in line), "")
    return f"git does not accept the work: {clean_words(told)[:200] or 'it is damaged'}"
