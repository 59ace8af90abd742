"""What becomes of the folder while the agent works: its work is kept in any case, and nothing beside is touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.foreign_folder.rig import executed, private, repository
from tests.world.git_remote import git

pytestmark = [pytest.mark.review("security-4"), pytest.mark.usefixtures("home")]

Change = Callable[[Path, Path], None]


def repository_gone(folder: Path, own: Path) -> None:
    shutil.rmtree(folder / ".git")


def folder_gone(folder: Path, own: Path) -> None:
    shutil.rmtree(folder)


def refs_lead_out(folder: Path, own: Path) -> None:
    shutil.rmtree(folder / ".git/refs")
    (folder / ".git/refs").symlink_to(own / ".git/refs")


def objects_lead_out(folder: Path, own: Path) -> None:
    (folder / ".git/objects/pack").rmdir()
    (folder / ".git/objects/pack").symlink_to(own / ".git/objects/pack")


def another_repository(folder: Path, own: Path) -> None:
    shutil.rmtree(folder / ".git")
    git(folder.parent, "init", "-q", str(folder))


@pytest.mark.parametrize("change", [repository_gone, folder_gone, refs_lead_out, objects_lead_out, another_repository])
@pytest.mark.parametrize("apply", [True, False])
async def test_the_work_is_kept_and_goes_nowhere_else(tmp_path: Path, change: Change, apply: bool) -> None:
    own, folder = private(tmp_path), repository(tmp_path / "mine")
    before = files(own)
    taken = await executed(folder, tmp_path, apply=apply, meanwhile=lambda: change(folder, own))
    assert files(own) == before
    assert taken.landed.branch is None
    is_here = (folder / "work.txt").exists()
    assert is_here or (taken.landed.kept and list((tmp_path / "data/execute/kept").iterdir())), taken.landed
    assert taken.landed.held or taken.landed.notes, "it is said"


async def test_a_link_that_is_put_where_work_is_applied_leads_it_nowhere(tmp_path: Path) -> None:
    own, folder = private(tmp_path), repository(tmp_path / "mine")
    taken = await executed(folder, tmp_path, meanwhile=lambda: (folder / "work.txt").symlink_to(own / "new"))
    assert not (own / "new").exists() and not taken.landed.applied and taken.branch


async def test_a_pipe_that_is_put_there_while_work_is_applied_is_named(tmp_path: Path) -> None:
    folder = repository(tmp_path / "mine")
    taken = await executed(folder, tmp_path, meanwhile=lambda: os.mkfifo(folder / ".gitattributes"))
    assert taken.landed.applied or "named pipe" in " ".join(taken.landed.notes)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
