"""Files that git would wait for, or read without end: a sentence names them, soon, and nothing fills up."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.workbench.run import MOST_RULES, instructions
from tests.foreign_folder.rig import committed, executed, repository
from tests.world.git_remote import git

pytestmark = [pytest.mark.review("security-4"), pytest.mark.usefixtures("home")]

SOON_SECONDS = 20.0
HOLES = 6 << 30
"""Takes no room on the disk."""


def pipe(name: str) -> Callable[[Path], None]:
    def put(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        os.mkfifo(folder / name)

    return put


def attributes(folder: Path) -> None:
    (folder / "a.txt").write_text("changed: git reads the attributes\n")
    os.mkfifo(folder / ".gitattributes")


def nested(folder: Path) -> None:
    git(folder, "init", "-q", str(folder / "nested"))
    (folder / "nested/.git/HEAD").unlink()
    os.mkfifo(folder / "nested/.git/HEAD")


def nested_elsewhere(folder: Path) -> None:
    nested(folder)
    (folder / "nested/.git").rename(folder / "trap")
    (folder / "nested/.git").write_text("gitdir: ../trap\n")


PIPES = {
    "ignore rules": (pipe(".gitignore"), ".gitignore"),
    "ignore rules below": (pipe("sub/.gitignore"), "sub/.gitignore"),
    "attributes": (attributes, ".gitattributes"),
    "nested repository": (nested, "nested/.git/HEAD"),
    "nested repository elsewhere": (nested_elsewhere, "trap/HEAD"),
}


@pytest.mark.parametrize("name", PIPES)
async def test_a_pipe_where_git_reads_is_named(tmp_path: Path, name: str) -> None:
    folder = repository(tmp_path / "evil")
    put, path = PIPES[name]
    put(folder)
    async with asyncio.timeout(SOON_SECONDS):
        with pytest.raises(UserError) as raised:
            await executed(folder, tmp_path)
    assert str(raised.value).startswith(f"{folder / path} is a named pipe")
    (folder / path).unlink()
    assert (await executed(folder, tmp_path)).landed.applied, "what the sentence says helps"


async def test_a_pipe_that_git_does_not_open_is_in_nobodys_way(tmp_path: Path) -> None:
    folder = repository(tmp_path / "mine")
    os.mkfifo(folder / "log")
    assert (await executed(folder, tmp_path)).landed.applied


@pytest.mark.parametrize(
    "name", ["index", "sharedindex.1", "HEAD", "config", "packed-refs", "shallow", "info/exclude", "refs/heads/main"]
)
async def test_a_file_of_git_s_is_never_that_large(tmp_path: Path, name: str) -> None:
    folder = repository(tmp_path / "evil")
    with (folder / ".git" / name).open("ab") as file:
        file.truncate(HOLES)
    async with asyncio.timeout(SOON_SECONDS):
        with pytest.raises(UserError, match=f"{name} is larger than [0-9]+ KiB"):
            await executed(folder, tmp_path)


async def test_git_takes_no_more_memory_than_it_may(tmp_path: Path) -> None:
    """It reads ignore rules as a whole."""
    folder = repository(tmp_path / "evil")
    with (folder / ".gitignore").open("wb") as file:
        file.truncate(HOLES)
    async with asyncio.timeout(SOON_SECONDS):
        with pytest.raises(UserError, match=r"git cannot take in .*attempting to allocate [0-9]+ over limit [0-9]+"):
            await executed(folder, tmp_path)


async def test_refs_of_ones_own_are_read_whatever_their_number(tmp_path: Path) -> None:
    folder = committed(repository(tmp_path / "mine"), {"b.txt": "b\n"})
    sha = git(folder, "rev-parse", "HEAD")
    rows = "".join(f"{sha} refs/heads/many/{number:06}\n" for number in range(20_000))
    (folder / ".git/packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{rows}")
    assert (await executed(folder, tmp_path)).branch


async def test_only_the_start_of_the_folders_rules_is_read(tmp_path: Path) -> None:
    folder = repository(tmp_path / "evil", **{".gitignore": "AGENTS.md\nsub\n"})
    with (folder / "AGENTS.md").open("wb") as file:
        file.truncate(1 << 43)  # more than any memory holds
    (folder / "CLAUDE.md").symlink_to(tmp_path)
    taken = await executed(folder, tmp_path)
    told = instructions(taken.snapshot)
    assert "rules (AGENTS.md)" in told and len(told) < MOST_RULES + 4096
    (folder / "AGENTS.md").unlink()
    os.mkfifo(folder / "AGENTS.md")
    assert "rules (" not in instructions(taken.snapshot)
