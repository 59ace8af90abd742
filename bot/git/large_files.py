"""Files of Git LFS in git's own data: finds pointers, writes pointers in place of contents, hands contents out."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.git import inspection
from bot.git.errors import RepositoryUnsupported
from bot.git.inspection import LOOK_SECONDS, decode
from bot.git.run import Io, run_git

ATTRIBUTES = ".gitattributes"
MOST_CANDIDATES = 100_000
MOST_NEW = 3_000
HASH_SECONDS = 300.0
_PLAIN_FILES = ("100644", "100755")
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (0|[1-9][0-9]{0,14})\n"
)
_SIZES = range(120, 160)
"""Bytes of a pointer: only these blobs are read."""


@dataclass(frozen=True)
class Pointer:
    """The name of a content, which is its SHA-256, and its size."""

    oid: str
    size: int

    @property
    def text(self) -> bytes:
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.oid}\nsize {self.size}\n".encode()


def parse(content: bytes) -> Pointer | None:
    """Read a pointer as the specification spells it; None for everything else, also for one with extensions."""
    found = _POINTER.fullmatch(content)
    return Pointer(found[1].decode(), int(found[2])) if found else None


@dataclass(frozen=True)
class LargeFile:
    """A file that LFS tracks; `blob` is what git has at its path: the pointer, or the content."""

    path: str
    blob: str
    pointer: Pointer


class _Listed:
    """Keeps what may be a pointer, and all files of attributes, from a list of a whole tree."""

    def __init__(self, sizes: range) -> None:
        self.small: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str]] = []
        self._sizes, self._rest = sizes, b""

    def take(self, part: bytes) -> bool:
        *entries, self._rest = (self._rest + part).split(b"\0")
        for entry in entries:
            head, _, name = entry.partition(b"\t")
            mode, _, blob, size = head.decode("ascii").split()
            if mode not in _PLAIN_FILES:
                continue
            if name.rpartition(b"/")[2] == ATTRIBUTES.encode():
                self.attributes.append((decode(name), blob))
            elif int(size) in self._sizes:
                self.small.append((decode(name), blob))
        return len(self.small) + len(self.attributes) <= MOST_CANDIDATES


async def _listed(git_dir: Path, commit: str, sizes: range = range(0)) -> _Listed:
    kept = _Listed(sizes)
    argv = ["ls-tree", "-r", "-l", "-z", "--full-tree", commit]
    result = await run_git(argv, git_dir, io=Io(each=kept.take), timeout=LOOK_SECONDS)
    if result.truncated:
        raise RepositoryUnsupported(f"The repository holds more than {MOST_CANDIDATES} files like those of Git LFS.")
    return kept


async def pointers(git_dir: Path, commit: str) -> list[LargeFile]:
    """List the pointers of a commit, as far as its own attributes say that LFS tracks them."""
    listed = await _listed(git_dir, commit, _SIZES)
    blobs = sorted({blob for _, blob in listed.small})
    contents = dict(zip(blobs, await inspection.contents(git_dir, blobs, _SIZES.stop), strict=True))
    found = await asyncio.to_thread(
        lambda: [LargeFile(path, blob, known) for path, blob in listed.small if (known := parse(contents[blob]))]
    )
    tracked = await _tracked(git_dir, listed.attributes, [one.path for one in found])
    return [one for one in found if one.path in tracked]


async def _tracked(git_dir: Path, attributes: Sequence[tuple[str, str]], paths: Sequence[str]) -> set[str]:
    """Ask git which of these paths have `filter=lfs`, by the attributes of one commit alone."""
    if not attributes or not paths:
        return set()
    async with _index(git_dir) as io:
        rows = "".join(f"100644 {blob}\t{path}\0" for path, blob in attributes)
        await run_git(["update-index", "-z", "--index-info"], git_dir, io=Io(stdin=_encoded(rows), env=io.env))
        asked = Io(stdin=_encoded("\0".join(paths) + "\0"), env=io.env, cap=inspection.MOST_NAME_BYTES)
        said = await run_git(["check-attr", "-z", "--cached", "--stdin", "filter"], git_dir, io=asked)
    fields = said.stdout.split(b"\0")
    return {decode(path) for path, value in zip(fields[0::3], fields[2::3], strict=False) if value == b"lfs"}


@asynccontextmanager
async def _index(git_dir: Path) -> AsyncIterator[Io]:
    with tempfile.TemporaryDirectory(dir=git_dir, prefix="index-") as folder:
        yield Io(env={"GIT_INDEX_FILE": f"{folder}/index"})


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Pointed:
    """A tree with pointers in place of contents."""

    tree: str
    contents: tuple[LargeFile, ...] = ()
    """The files whose content git has in the tree before."""
    named: tuple[LargeFile, ...] = ()
    """The files that were pointers already, and new at their paths: their content must be elsewhere."""


async def pointed(git_dir: Path, base: str, tree: str, *, max_files: int = 100_000) -> Pointed:
    """Write pointers for the contents that are new since `base`, as far as LFS tracks them before and after.

    The work cannot hide files from the diff by tracking them, and what it takes out of LFS is a plain file."""
    changes = await inspection.changes(git_dir, base, tree, max_files=max_files)
    changed = [one for one in changes if one.new_mode in _PLAIN_FILES and one.size]
    tracked = {one.path for one in changed}
    moved = any(one.path.rpartition("/")[2] == ATTRIBUTES for one in changes)
    for side in (base, tree) if moved else (base,):
        tracked = await _tracked(git_dir, (await _listed(git_dir, side)).attributes, sorted(tracked))
    if len(tracked) > MOST_NEW:
        raise RepositoryUnsupported(f"The work changes more than {MOST_NEW} files of Git LFS.")
    contents, named, modes = list[LargeFile](), list[LargeFile](), dict[str, str]()
    for one in changed:
        if one.path in tracked:
            known = parse(await inspection.blob(git_dir, one.sha, _SIZES.stop) or b"") if one.size in _SIZES else None
            file = LargeFile(one.path, one.sha, known or await _hashed(git_dir, one.sha, one.size))
            (contents if known is None else named).append(file)
            modes[one.path] = one.new_mode
    if not contents:
        return Pointed(tree, named=tuple(named))
    return Pointed(await _with_pointers(git_dir, tree, contents, modes), tuple(contents), tuple(named))


async def _hashed(git_dir: Path, blob: str, size: int) -> Pointer:
    digest = hashlib.sha256()

    def take(part: bytes) -> bool:
        digest.update(part)
        return True

    await run_git(["cat-file", "blob", blob], git_dir, io=Io(each=take), timeout=HASH_SECONDS)
    return Pointer(digest.hexdigest(), size)


async def _with_pointers(git_dir: Path, tree: str, files: Sequence[LargeFile], modes: dict[str, str]) -> str:
    async with _index(git_dir) as io:
        await run_git(["read-tree", "--end-of-options", tree], git_dir, io=io)
        rows = []
        for file in files:
            written = Io(stdin=file.pointer.text)
            blob = (await run_git(["hash-object", "-w", "--stdin"], git_dir, io=written)).text
            rows.append(f"{modes[file.path]} {blob}\t{file.path}\0")
        fed = Io(stdin=_encoded("".join(rows)), env=io.env)
        await run_git(["update-index", "-z", "--index-info"], git_dir, io=fed)
        return (await run_git(["write-tree"], git_dir, io=io)).text


async def export(git_dir: Path, blob: str, target: Path) -> None:
    """Write a content to a new file."""
    output = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        await run_git(["cat-file", "blob", blob], git_dir, io=Io(stdout=output), timeout=HASH_SECONDS)
    finally:
        os.close(output)
