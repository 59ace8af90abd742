"""Whether a git directory that names no folder has worked on this one: its index knows the files by number and time.

`git init --separate-git-dir` leaves nothing else behind. Nobody who only packs a folder can make files that have the
inode and the time of change that stand in the index of another repository.
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
"""Of what git says of the index: about a thousand files."""
_ENTRY = re.compile(
    rb"([^\0\n][^\0]*)\0  ctime: (\d+):(\d+)\n  mtime: [\d:]+\n  dev: \d+\tino: (\d+)\n"
    rb"  uid: \d+\tgid: \d+\n  size: \d+\tflags: [0-9a-f]+\n"
)


async def knows(git_dir: Path, top: Path) -> bool:
    """At least half of the first files must be the same ones: a copy of a file or two proves nothing."""
    with tempfile.TemporaryDirectory(prefix="forgehand-index-") as scratch:
        try:
            listed = await _listed(git_dir, Path(scratch) / "look.git")
        except (GitFailed, GitTimedOut):
            return False
    return await asyncio.to_thread(_compared, listed, os.fsencode(top))


async def _listed(git_dir: Path, place: Path) -> bytes:
    await run_git(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(place)])
    await asyncio.to_thread(plain.copy_index, git_dir, place)
    return (await run_git(["ls-files", "--debug", "-z"], place, io=Io(cap=MOST_BYTES))).stdout


def _compared(listed: bytes, top: bytes) -> bool:
    entries = [match.groups() for match in _ENTRY.finditer(listed)]
    return bool(entries) and 2 * sum(_is_same(top, *entry) for entry in entries) >= len(entries)


def _is_same(top: bytes, path: bytes, seconds: bytes, nanoseconds: bytes, inode: bytes) -> bool:
    about = plain.about(top, path)
    if about is None:
        return False
    changed = divmod(about.st_ctime_ns, 1_000_000_000)
    return (about.st_ino & 0xFFFFFFFF, changed[0], changed[1]) == (int(inode), int(seconds), int(nanoseconds))
