"""Follows a guide of CONTRIBUTING: its patch is applied to a copy of the tree, tried there, and taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATCHES = ROOT / "tests/data/guide"
"""One patch a guide. If the tree around it changes, make the change by hand and keep `git diff --cached -U1`."""
TRY_SECONDS = 100


@dataclass(frozen=True)
class Copy:
    """The tree with the patch in it."""

    root: Path
    touched: list[str]
    """The files that the patch adds or changes."""

    def python(self, *arguments: str) -> str:
        """What Python prints there; a failure shows all of it."""
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        found = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TRY_SECONDS,
            check=False,
        )
        assert found.returncode == 0, f"{found.stdout}\n{found.stderr}"
        return found.stdout

    def tests(self, *names: str) -> str:
        return self.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *names)


@contextmanager
def followed(patch: str, folder: Path) -> Iterator[Copy]:
    """A copy of the tree with `tests/data/guide/PATCH` in it; at the end the patch comes off and leaves nothing."""
    root, file = folder / "copy", str(PATCHES / patch)
    _copy(root)
    _git(root, "init", "--quiet")
    _git(root, "add", "--all")
    before = _git(root, "write-tree")
    _git(root, "apply", "--index", file)
    yield Copy(root, _git(root, "diff", "--cached", "--name-only", before).splitlines())
    _git(root, "apply", "--index", "--reverse", file)
    _git(root, "add", "--all")
    assert _git(root, "write-tree") == before


def _copy(root: Path) -> None:
    """What git has of the tree, and what is new in it."""
    listed = _git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if not (ROOT / name).is_symlink() and not (ROOT / name).exists():
            continue  # deleted, and not committed yet
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name, follow_symlinks=False)


def _git(folder: Path, *arguments: str) -> str:
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | plain
    found = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 0, f"git {' '.join(arguments)}: {found.stderr}"
    return found.stdout.strip()
