"""Judges by its index whether a git directory that names no folder has worked on this one.

`git init --separate-git-dir` leaves no other trace. The index holds each file's inode and time of change, and someone
who packs a folder cannot make files that match those of another repository's index.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from pathlib import Path

from bot.git.errors import GitFailed, GitTimedOut
from bot.git.run import Io, run_git
from bot.workbench import plain

MOST_BYTES = 256 << 10
"""The part of git's listing that we read: about a thousand files."""
_ENTRY = re.compile(
    rb"([^\0\n][^\0]*)\0  ctime: (\d+):(\d+)\n  mtime: [\d:]+\n  dev: \d+\tino: (\d+)\n"
    rb"  uid: \d+\tgid: \d+\n  size: \d+\tflags: [0-9a-f]+\n"
)


async def knows(git_dir: Path, top: Path) -> bool:
    """Return True if at least half of the first files are the same ones: a file or two prove nothing."""
    with tempfile.TemporaryDirectory(prefix="forgehand-index-") as scratch:
        place = Path(scratch) / "look.git"
        try:
            await run_git(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(place)])
            await asyncio.to_thread(plain.copy_index, git_dir, place)
            listed = await run_git(["ls-files", "--debug", "-z"], place, io=Io(cap=MOST_BYTES))
        except (GitFailed, GitTimedOut):
            return False
    return await asyncio.to_thread(_are_same, listed.stdout, os.fsencode(top))


def _are_same(listed: bytes, top: bytes) -> bool:
    entries = [match.groups() for match in _ENTRY.finditer(listed)]
    same = 0
    for path, seconds, nanoseconds, inode in entries:
        if about := plain.about(top, path):
            found = about.st_ino & 0xFFFFFFFF, *divmod(about.st_ctime_ns, 1_000_000_000)
            same += found == (int(inode), int(seconds), int(nanoseconds))
    return bool(entries) and 2 * same >= len(entries)
