"""Makes our commits and merges without a work tree, so that no filter, hook or merge driver runs."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.git import inspection
from bot.git.admission import WORK_REF
from bot.git.errors import RepositoryUnsupported
from bot.git.inspection import decode
from bot.git.run import Io, run_git

MAX_MESSAGE = 64 * 1024
MAX_NAME = 200
MERGE_SECONDS = 120.0
MOST_MADE = 200
MOST_PATHS, MOST_SUBJECTS = 200, 50
MAX_FILE = 32 << 20
"""The largest file in which we look for marks of conflicts."""
_LATEST = 2**32 - 1
"""Some systems that read commits refuse later seconds."""
MARKER = re.compile(rb"^(?:<{7,}|>{7,}|\|{7,})(?: .*)?\r?$", re.MULTILINE)
"""A line with which git marks a conflict."""
_BETWEEN = re.compile(rb"^={7}\r?$", re.MULTILINE)
"""The line between both sides; texts also underline with it."""
_MADE_UP = re.compile(r"~[0-9a-f]{40}(?:_\d+)?$")


@dataclass(frozen=True)
class Author:
    name: str
    email: str


NOBODY = Author("nobody", "nobody@localhost")
"""The author of commits that exist only for a merge."""


async def make(git_dir: Path, tree: str, parents: Sequence[str], message: str, *, author: Author, when: int) -> str:
    parent_flags = [part for parent in parents for part in ("-p", parent)]
    date = f"@{min(max(when, 0), _LATEST)} +0000"
    identity = {"NAME": _word(author.name), "EMAIL": _word(author.email), "DATE": date}
    env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in identity.items()}
    io = Io(stdin=cleaned(message).encode(), env=env)
    return (await run_git(["commit-tree", tree, *parent_flags], git_dir, io=io)).text


@dataclass(frozen=True)
class Facts:
    sha: str
    tree: str
    parents: tuple[str, ...]
    message: str


async def facts(git_dir: Path, sha: str) -> Facts:
    raw = await run_git(["cat-file", "commit", sha], git_dir, io=Io(cap=1 << 20))
    head, _, message = raw.stdout.decode("utf-8", "replace").partition("\n\n")
    lines = [line.split(" ", 1) for line in head.split("\n") if line.startswith(("tree ", "parent "))]
    tree = next(value for name, value in lines if name == "tree")
    return Facts(sha, tree, tuple(value for name, value in lines if name == "parent"), message)


def cleaned(message: str) -> str:
    """Return a bounded message in UTF-8, without control characters, never empty, with one newline at its end."""
    text = message.replace("\r\n", "\n").encode("utf-8", "replace").decode()
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text).strip()
    text = text.encode()[:MAX_MESSAGE].decode("utf-8", "ignore")
    return (text or "(no message)") + "\n"


def _word(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return re.sub(r"[\x00-\x1f\x7f<>]", "", text).strip()[:MAX_NAME] or "unknown"


async def keep(git_dir: Path, commit: str, target: Path) -> None:
    await run_git(["update-ref", WORK_REF, commit], git_dir)
    argv = ["bundle", "create", "--quiet", "--version=2", "-", WORK_REF, "--not", f"{commit}^@"]
    await _write(git_dir, argv, target)


async def mail(git_dir: Path, commit: str, target: Path, max_bytes: int) -> None:
    plain = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-signature"]
    argv = ["format-patch", "-1", "--stdout", "--binary", "--full-index", *plain, "--end-of-options", commit]
    await _write(git_dir, argv, target, max_bytes)


async def _write(git_dir: Path, argv: list[str], target: Path, max_bytes: int | None = None) -> None:
    """Write git's output to a file that appears as a whole or not at all."""
    partial = target.with_name(f".{target.name}.part")
    output = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        await run_git(argv, git_dir, io=Io(stdout=output, max_file_bytes=max_bytes), timeout=300.0)
        os.fsync(output)
        partial.replace(target)
    finally:
        os.close(output)
        partial.unlink(missing_ok=True)


async def with_file(git_dir: Path, commit: str, path: str, content: bytes) -> str:
    blob = (await run_git(["hash-object", "-w", "--stdin"], git_dir, io=Io(stdin=content))).text
    with tempfile.TemporaryDirectory(dir=git_dir, prefix="index-") as folder:
        io = Io(env={"GIT_INDEX_FILE": f"{folder}/index"})
        await run_git(["read-tree", "--end-of-options", commit], git_dir, io=io)
        await run_git(["update-index", "--add", "--cacheinfo", f"100644,{blob},{path}"], git_dir, io=io)
        return (await run_git(["write-tree"], git_dir, io=io)).text


@dataclass(frozen=True)
class Made:
    """A commit with one parent."""

    sha: str
    tree: str
    parent: str


@dataclass(frozen=True)
class Joined:
    """Two commits merged: `commit` has the result, with the conflicts as git marks them."""

    commit: str
    tree: str
    parted: str
    """Their merge base."""
    conflicts: tuple[str, ...]
    """Paths, also of files that git cannot mark: deleted on one side, or not text."""
    words: tuple[str, ...] = ()
    """git's sentence about each conflict."""


@dataclass(frozen=True)
class Left:
    """Paths in conflict that are as git left them: the version of one side, without the other's."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]


async def reverted(git_dir: Path, commit: str, before: str, tip: str) -> str | None:
    """Return the tree of `tip` without what `commit` changed since `before`; None if later changes conflict."""
    if tip == commit:
        return await _parsed(git_dir, f"{before}^{{tree}}")
    return await merged(git_dir, commit, tip, before)


async def merged(git_dir: Path, base: str, ours: str, theirs: str) -> str | None:
    """Return the tree of `ours` with what `theirs` changed since `base`; None if they conflict.

    This merges two commits that exist only for it, so that `base` alone is their merge base."""
    parent = await _parsed(git_dir, f"{base}^{{commit}}")
    trees = [await _parsed(git_dir, f"{one}^{{tree}}") for one in (ours, theirs)]
    if parent is None or None in trees:
        return None
    sides = [await make(git_dir, tree, [parent], "side", author=NOBODY, when=0) for tree in trees if tree]
    argv = ["merge-tree", "--write-tree", "--no-messages", *sides]
    result = await run_git(argv, git_dir, timeout=MERGE_SECONDS, accept=(0, 1))
    return result.text.split("\n")[0] if result.exit_code == 0 else None


async def continues(git_dir: Path, commit: str, ancestor: str) -> bool:
    """Decide whether `ancestor` is behind `commit`; False also if our history does not reach that far."""
    argv = ["merge-base", "--is-ancestor", "--end-of-options", ancestor, commit]
    return (await run_git(argv, git_dir, timeout=MERGE_SECONDS, accept=(0, 1, 128))).exit_code == 0


async def made_at(git_dir: Path, after: str, head: str, when: int, names: Collection[str]) -> list[Made]:
    """Return the newest commits with one parent that were committed exactly at `when`, or whose SHA is in `names`."""
    argv = ["log", f"--max-count={MOST_MADE}", "--no-merges", "--format=%ct %H %T %P", head, f"^{after}", "--"]
    rows = (line.split() for line in (await run_git(argv, git_dir, timeout=MERGE_SECONDS)).text.splitlines())
    plain = [row for row in rows if len(row) == 4]
    return [Made(row[1], row[2], row[3]) for row in plain if row[0] == str(when) or row[1] in names]


async def merge_base(git_dir: Path, one: str, other: str) -> str | None:
    """Return None if our history has no common ancestor."""
    argv = ["merge-base", "--end-of-options", one, other]
    found = await run_git(argv, git_dir, timeout=MERGE_SECONDS, accept=(0, 1, 128))
    return found.text.split("\n")[0] if found.exit_code == 0 else None


async def parents(git_dir: Path, commit: str) -> list[str]:
    argv = ["show", "--no-patch", "--format=%P", "--end-of-options", commit]
    return (await run_git(argv, git_dir)).text.split()


async def join(mirror: Path, ours: str, theirs: str) -> Joined | None:
    """Merge into a commit that is the same each time, and keep it with a ref; None if they have no common ancestor."""
    parted = await merge_base(mirror, ours, theirs)
    if parted is None:
        return None
    for side in (ours, theirs):
        if not await inspection.is_bounded(mirror, side):
            raise RepositoryUnsupported(f"`{side[:12]}` holds more than {inspection.MOST_PATHS} files.")
    argv = ["merge-tree", "--write-tree", "--name-only", "-z", ours, theirs]
    io = Io(config={"merge.conflictStyle": "diff3"}, cap=16 << 20, max_memory=inspection.LOOK_MEMORY)
    result = await run_git(argv, mirror, io=io, timeout=MERGE_SECONDS, accept=(0, 1))
    tree, conflicts, words = _read_merge(result.stdout)
    commit = await make(mirror, tree, [ours, theirs], "Both sides, as git merges them", author=NOBODY, when=0)
    anchor = f"refs/forgehand/joined-{hashlib.sha256(f'{ours} {theirs}'.encode()).hexdigest()[:16]}"
    await run_git(["update-ref", anchor, commit], mirror)
    return Joined(commit, tree, parted, conflicts if result.exit_code else (), words)


def _read_merge(output: bytes) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Read from `merge-tree -z` the tree, the paths in conflict, and the sentences about them."""
    fields = output.split(b"\0")
    end = fields.index(b"", 1) if b"" in fields[1:] else len(fields)
    words, rest = [], fields[end + 1 :]
    while len(rest) > 2 and rest[0].isdigit():
        after = 1 + int(rest[0])
        if rest[after].startswith(b"CONFLICT"):
            words.append(decode(rest[after + 1]).strip())
        rest = rest[after + 2 :]
    return fields[0].decode().strip(), tuple(decode(path) for path in fields[1:end]), tuple(words)


async def side(mirror: Path, parted: str, tip: str, paths: Sequence[str], max_bytes: int) -> str:
    """Describe the commits of one side that touch the files, newest first, and their diff as a whole."""
    named = _arguments(paths)
    argv = ["log", f"--max-count={MOST_SUBJECTS}", "--no-merges", "--format=%h %s", f"{parted}..{tip}", "--", *named]
    literal = {"GIT_LITERAL_PATHSPECS": "1"}
    commits = await run_git(argv, mirror, io=Io(env=literal), timeout=MERGE_SECONDS)
    argv = ["diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-color", parted, tip, "--", *named]
    diff = await run_git(argv, mirror, io=Io(env=literal, cap=max_bytes), timeout=MERGE_SECONDS)
    return f"{commits.text}\n\n{diff.stdout.decode('utf-8', 'replace')}".strip()


async def marked(git_dir: Path, tree: str, joined: Joined) -> list[str]:
    """Return paths with marks of conflicts, or with a name that git made up because the real one was taken."""
    found = []
    for path in joined.conflicts:
        content = await _file(git_dir, tree, path)
        sides = [await _file(git_dir, f"{joined.commit}^{number}", path) for number in (1, 2)]
        known = [side for side in sides if side is not None]
        made_up = not known and _MADE_UP.search(path) is not None
        if content is not None and (made_up or is_marked(content, known)):
            found.append(path)
    return found


async def left(git_dir: Path, tree: str, joined: Joined) -> Left:
    """Find conflicts that git can neither merge nor mark, and that nobody has touched since."""
    revisions = (tree, joined.tree, f"{joined.commit}^1", f"{joined.commit}^2")
    now, before, ours, theirs = [await _entries(git_dir, one, joined.conflicts) for one in revisions]
    same = [path for path in joined.conflicts if now.get(path) == before.get(path) and path in {**ours, **theirs}]
    mine = tuple(path for path in same if now.get(path) == ours.get(path))
    return Left(mine, tuple(path for path in same if path not in mine and now.get(path) == theirs.get(path)))


async def _entries(git_dir: Path, revision: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Return mode and object of each path that is there."""
    argv = ["ls-tree", "-z", "--full-tree", revision, "--", *_arguments(paths)]
    rows = (await run_git(argv, git_dir)).stdout.split(b"\0")[:-1]
    return {decode(path): entry for entry, _, path in (row.partition(b"\t") for row in rows)}


def _arguments(paths: Sequence[str]) -> list[str]:
    return [os.fsdecode(path.encode("utf-8", "surrogateescape")) for path in paths[:MOST_PATHS]]


async def _file(git_dir: Path, tree: str, path: str) -> bytes | None:
    argv = ["cat-file", "blob", *_arguments([f"{tree}:{path}"])]
    result = await run_git(argv, git_dir, io=Io(cap=MAX_FILE), accept=(0, 128))
    return result.stdout if result.exit_code == 0 or result.truncated else None


def is_marked(content: bytes, sides: Sequence[bytes]) -> bool:
    """Decide whether the file has marks of a conflict that neither of its sides has."""
    known = {line for side in sides for line in MARKER.findall(side)}
    between = sum(len(_BETWEEN.findall(side)) for side in sides)
    return any(line not in known for line in MARKER.findall(content)) or len(_BETWEEN.findall(content)) > between


async def _parsed(git_dir: Path, revision: str) -> str | None:
    argv = ["rev-parse", "--quiet", "--verify", "--end-of-options", revision]
    return (await run_git(argv, git_dir, accept=(0, 1, 128))).text or None
