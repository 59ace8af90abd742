"""Lets a bundle into a quarantine, after its header and its pack were read by us; git then reads it under limits."""

from __future__ import annotations

import asyncio
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

from bot.git import inspection
from bot.git.bundle import MAX_HEADER, BundleHeader, parse_header
from bot.git.errors import BundleRefused, GitFailed, GitTimedOut, MirrorLost
from bot.git.measure import ImportLimits, measure
from bot.git.remote import clean
from bot.git.run import Io, run_git
from sandbox.runner.safe_files import NotRegular, open_regular

COMMIT_CAP = 4 << 20


@dataclass(frozen=True)
class _Examined:
    """An open file, so that what was judged is what git reads."""

    file: int
    header: BundleHeader


async def admit(git_dir: Path, bundle: Path, base: str, limits: ImportLimits) -> str:
    examined = await asyncio.to_thread(_examine, bundle, limits)
    try:
        await _require_prerequisites(git_dir, examined.header, base)
        try:
            await _index(git_dir, examined, limits)
            tree = await _require_one_commit(git_dir, examined.header.tip, base)
            await inspection.require_bounded(git_dir, tree, limits.max_paths)
            await _require_connected(git_dir, examined.header.tip, base)
        except GitFailed as error:
            raise BundleRefused(_sentence(error)) from None
        except GitTimedOut:
            raise BundleRefused("The work took git too long to check.") from None
    finally:
        os.close(examined.file)
    return tree


async def readmit(git_dir: Path, bundle: Path, commit: str, limits: ImportLimits) -> str:
    """Of our own making, but it has lain on a disk: the commit's name is what is believed."""
    examined = await asyncio.to_thread(_examine, bundle, limits)
    try:
        if examined.header.tip != commit:
            raise BundleRefused("What was kept is not the commit that was held.")
        for parent in examined.header.prerequisites:
            if not await _is_commit(git_dir, parent):
                raise MirrorLost("the commit that the held work stands on is not in the cache")
        await _index(git_dir, examined, limits)
        for parent in examined.header.prerequisites:
            await _require_connected(git_dir, commit, parent)
    except GitFailed as error:
        raise BundleRefused(_sentence(error)) from None
    finally:
        os.close(examined.file)
    return (await run_git(["rev-parse", "--verify", f"{commit}^{{tree}}"], git_dir)).text


def _examine(bundle: Path, limits: ImportLimits) -> _Examined:
    try:
        file = open_regular(bundle)
    except NotRegular:
        raise BundleRefused("The work's bundle is not a regular file.") from None
    except OSError:
        raise BundleRefused("The work's bundle cannot be opened.") from None
    try:
        return _examine_open(file, limits)
    except BaseException:
        os.close(file)
        raise


def _examine_open(file: int, limits: ImportLimits) -> _Examined:
    if os.fstat(file).st_size > limits.max_bundle_bytes:
        raise BundleRefused(f"The work's bundle is larger than {limits.max_bundle_bytes >> 20} MiB.")
    header = parse_header(os.pread(file, MAX_HEADER + 64, 0))
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as content:
        measure(content, header.pack_offset, limits)
    os.lseek(file, header.pack_offset, os.SEEK_SET)
    return _Examined(file, header)


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


async def _index(git_dir: Path, examined: _Examined, limits: ImportLimits) -> None:
    size = limits.max_bundle_bytes
    strict = "--strict=badFilemode=error"
    argv = ["index-pack", "--stdin", "--fix-thin", strict, "--threads=1", f"--max-input-size={size}"]
    # Fixing a thin pack appends the bases that it leans on; they come from the mirror and count as unpacked.
    io = Io(stdin=examined.file, max_file_bytes=size + limits.max_unpacked_bytes)
    await run_git(argv, git_dir, io=io, timeout=limits.timeout_seconds)


async def _require_one_commit(git_dir: Path, tip: str, base: str) -> str:
    result = await run_git(["cat-file", "commit", tip], git_dir, io=Io(cap=COMMIT_CAP))
    lines = result.stdout.partition(b"\n\n")[0].split(b"\n")
    parents = [line[7:].decode("ascii", "replace") for line in lines if line.startswith(b"parent ")]
    if parents != [base]:
        raise BundleRefused("The work is not one commit on top of the commit that the session started from.")
    return lines[0].removeprefix(b"tree ").decode("ascii", "replace")


async def _require_connected(git_dir: Path, tip: str, base: str) -> None:
    """Everything that the new commit reaches is here, or was when the mirror was fetched."""
    argv = ["rev-list", "--objects", "--quiet", "--end-of-options", tip, f"^{base}"]
    await run_git(argv, git_dir, timeout=120.0)


def _sentence(error: GitFailed) -> str:
    told = next((line for line in error.words.splitlines() if "error" in line or "fatal" in line), "")
    return f"git does not accept the work: {clean(told)[:200] or 'it is damaged'}"
