"""Makes commits of our own that depend on nothing but what is given, and keeps them as bundles."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.git.bundle import WORK_REF
from bot.git.run import Io, run_git

MAX_MESSAGE = 64 * 1024
MAX_NAME = 200
_LATEST = 2**32 - 1
"""Later seconds are refused by some of the systems that read commits."""


@dataclass(frozen=True)
class Author:
    name: str
    email: str


async def make(git_dir: Path, tree: str, parents: Sequence[str], message: str, *, author: Author, when: int) -> str:
    parent_flags = [part for parent in parents for part in ("-p", parent)]
    io = Io(stdin=cleaned(message).encode(), env=_identity(author, when))
    return (await run_git(["commit-tree", tree, *parent_flags], git_dir, io=io)).text


@dataclass(frozen=True)
class Facts:
    """What a commit is made of, beside its people and dates."""

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
    """UTF-8 without NUL or other control characters, never empty, bounded, with one newline at its end."""
    text = message.replace("\r\n", "\n").encode("utf-8", "replace").decode()
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text).strip()
    text = text.encode()[:MAX_MESSAGE].decode("utf-8", "ignore")
    return (text or "(no message)") + "\n"


def _identity(author: Author, when: int) -> dict[str, str]:
    name, email, date = _word(author.name), _word(author.email), f"@{min(max(when, 0), _LATEST)} +0000"
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
        "GIT_COMMITTER_DATE": date,
    }


def _word(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return re.sub(r"[\x00-\x1f\x7f<>]", "", text).strip()[:MAX_NAME] or "unknown"


async def keep(git_dir: Path, commit: str, target: Path) -> None:
    await run_git(["update-ref", WORK_REF, commit], git_dir)
    await _written(
        git_dir, ["bundle", "create", "--quiet", "--version=2", "-", WORK_REF, "--not", f"{commit}^@"], target
    )


async def mail(git_dir: Path, commit: str, target: Path, max_bytes: int) -> None:
    plain = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-signature"]
    argv = ["format-patch", "-1", "--stdout", "--binary", "--full-index", *plain, "--end-of-options", commit]
    await _written(git_dir, argv, target, max_bytes)


async def _written(git_dir: Path, argv: list[str], target: Path, max_bytes: int | None = None) -> None:
    """What git says, in a file that is there as a whole or not at all."""
    partial = target.with_name(f".{target.name}.part")
    output = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        await run_git(argv, git_dir, io=Io(stdout=output, max_file_bytes=max_bytes), timeout=300.0)
        os.fsync(output)
        partial.replace(target)
    finally:
        os.close(output)
        partial.unlink(missing_ok=True)
