"""What a hostile bundle may cost the host: a tree that is small in git and endless when written out takes no memory."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.host_git.bench import REPO, Bench, write_blob, write_commit
from tests.world.git_remote import git

pytestmark = pytest.mark.review("security-6")

ALLOWED = 100 << 20


def nested(box: Path, levels: int, *, name: int = 50, each: int = 10) -> str:
    """A tree of trees: `each` to the power of `levels` files, whose paths are long."""
    entry = f"100644 blob {write_blob(box, 'x').decode()}"
    for _ in range(levels):
        rows = "".join(f"{entry}\t{number:0{name}}\n" for number in range(each))
        tree = git(box, "mktree", stdin=rows.encode())
        entry = f"040000 tree {tree}"
    return tree


@dataclass(frozen=True)
class Found:
    """What became of a bundle, and the bytes that it took, here and in the largest of git's processes."""

    words: str
    before: int
    after: int
    helpers: int

    @property
    def taken(self) -> int:
        return self.after - self.before


async def admitted(bench: Bench, base: str, box: Path, tree: str) -> Found:
    bundle = bench.bundle(box, write_commit(box, tree, base), base)
    assert bundle.stat().st_size < 20_000
    mirror, place = bench.cache._root / f"{REPO}.git", bench.root / f"quarantine-{tree}.git"
    argv = [sys.executable, "-m", "tests.host_git.peak", str(mirror), str(place), str(bundle), base]
    process = await asyncio.create_subprocess_exec(*argv, stdout=-1, cwd=Path(__file__).parents[2])
    out, _ = await process.communicate()
    return Found(**json.loads(out))


@pytest.mark.parametrize("levels", [10, 12])
async def test_nested_trees_are_refused_in_little_memory(bench: Bench, base: str, box: Path, levels: int) -> None:
    found = await admitted(bench, base, box, nested(box, levels))
    assert "more than 1000000 files" in found.words
    assert found.taken < ALLOWED and found.helpers < ALLOWED, found


async def test_names_that_are_too_long_together_are_refused(bench: Bench, base: str, box: Path) -> None:
    """Few enough, and still more than anybody should hold: 100,000 of 1,250 bytes."""
    found = await admitted(bench, base, box, nested(box, 5, name=249))
    assert "64 MiB of names" in found.words
    assert found.taken < ALLOWED and found.helpers < ALLOWED, found


async def test_a_change_is_counted_before_it_is_held(bench: Bench, base: str, box: Path) -> None:
    """83,521 new files with names of 57 MB are too much for one change; with names of 11 MB they are not."""
    found = await admitted(bench, base, box, nested(box, 4, each=17, name=170))
    assert "changes more than 100000 files, or files with more than 16 MiB of names" in found.words
    assert found.taken < ALLOWED and found.helpers < 2 * ALLOWED, found
    found = await admitted(bench, base, box, nested(box, 4, each=17, name=32))
    assert found.words == "83523 changes, 83521 files"
    assert found.helpers < 2 * ALLOWED, found
