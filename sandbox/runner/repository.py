"""Calls git inside the environment, without the machine's settings, hooks and prompts."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from . import processes

SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.safecrlf", "false"),
    ("core.autocrlf", "false"),
    ("core.fileMode", "true"),
    ("core.symlinks", "true"),
    ("core.ignoreCase", "false"),
    ("core.excludesFile", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.sparseCheckout", "false"),
    ("core.untrackedCache", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("advice.addEmbeddedRepo", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("safe.directory", "*"),  # another user of the environment may have made the folder
)
IDENTITY = ("Forgehand agent", "agent@forgehand.invalid")
RAW_BYTES = 64 << 20
WHEN = "1767225600 +0000"  # the host makes the commit that counts; this one only carries the tree


class CheckoutGitFailed(Exception):
    """git failed or ran out of time; the text is its last words."""


class CheckoutGitTimedOut(CheckoutGitFailed):
    """git ran out of time, so a second try is useless."""


class Checkout:
    """A git directory with a work tree; every call shares one deadline."""

    def __init__(self, git: str, git_dir: Path, work: Path, *, seconds: float) -> None:
        self.git_dir = git_dir
        self.work = work
        self._git = git
        self._deadline = time.monotonic() + seconds
        self._index: Path | None = None
        self._more: dict[str, str] = {}

    def configure(self, settings: dict[str, str]) -> None:
        """Let git have these settings too, whatever the repository's own say."""
        self._more = settings

    def use_index(self, path: Path) -> None:
        self._index = path

    def __call__(
        self,
        *arguments: str,
        stdin: IO[bytes] | None = None,
        allowed: Sequence[int] = (0,),
        raw: bool = False,
        seconds: float = math.inf,
    ) -> str:
        """Run git and return its output. `raw`: keep every byte, also of names that are no text. `seconds` may end it
        before the common deadline."""
        left = min(self._deadline - time.monotonic(), seconds)
        done = processes.run(
            [self._git, *arguments],
            cwd=str(self.work),
            env=self._environment(),
            limits=processes.CommandLimits(left, RAW_BYTES) if raw else processes.CommandLimits(left),
            stdin=stdin,
        )
        if done.timed_out:
            raise CheckoutGitTimedOut(f"git {arguments[0]} did not end in time")
        if done.exit_code not in allowed:
            words = done.errors.decode("utf-8", "replace").strip()
            raise CheckoutGitFailed(f"git {arguments[0]} failed: {words[-1500:]}")
        return done.output.decode("utf-8", "surrogateescape") if raw else done.output.decode("utf-8", "replace").strip()

    def has(self, thing: str) -> bool:
        try:
            self("cat-file", "-e", thing)
        except CheckoutGitFailed:
            return False
        return True

    def _environment(self) -> dict[str, str]:
        own = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.environ.get("HOME", "/"),
            "LC_ALL": "C",
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.work),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_TERMINAL_PROMPT": "0",
            **dict.fromkeys(("GIT_CONFIG_NOSYSTEM", "GIT_NO_REPLACE_OBJECTS"), "1"),
            **dict.fromkeys(("GIT_LITERAL_PATHSPECS", "GIT_LFS_SKIP_SMUDGE"), "1"),
            "GIT_CONFIG_COUNT": str(len(SETTINGS) + len(self._more)),
        }
        for number, (name, value) in enumerate((*SETTINGS, *self._more.items())):
            own[f"GIT_CONFIG_KEY_{number}"] = name
            own[f"GIT_CONFIG_VALUE_{number}"] = value
        for role in ("AUTHOR", "COMMITTER"):
            own[f"GIT_{role}_NAME"], own[f"GIT_{role}_EMAIL"] = IDENTITY
            own[f"GIT_{role}_DATE"] = WHEN
        if self._index:
            own["GIT_INDEX_FILE"] = str(self._index)
        return own


def create(repository: Checkout, *, packs: Sequence[Path], sha: str, shallow: Sequence[str]) -> None:
    hashing = ["--object-format=sha256"] if len(sha) == 64 else []
    repository("init", "--quiet", "--template=", *hashing)
    add(repository, packs=packs, sha=sha, shallow=shallow)


def add(repository: Checkout, *, packs: Sequence[Path], sha: str, shallow: Sequence[str]) -> None:
    """Add packs in order, because a later one may be a set of differences to an earlier one."""
    for pack in packs:
        with pack.open("rb") as file:
            repository("index-pack", "--stdin", "--fix-thin", stdin=file)
    if shallow:
        (repository.git_dir / "shallow").write_text("".join(f"{commit}\n" for commit in shallow), encoding="ascii")
    if not repository.has(f"{sha}^{{commit}}"):
        raise CheckoutGitFailed(f"the pack does not hold {sha}")


def remove(path: Path) -> None:
    """Remove a folder, a file or a link (which is not followed), or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
