"""How people lay out their repositories: all of it works, or is refused with a sentence that says what to do."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.git.errors import MirrorLost
from bot.workbench import folder as folders
from tests.foreign_folder.rig import Taken, committed, executed, repository
from tests.world.git_remote import ENV, git

pytestmark = [pytest.mark.review("security-4"), pytest.mark.usefixtures("home")]


async def works(folder: Path, root: Path, *, at: Path | None = None) -> Taken:
    """What is not committed goes along, the work comes back as a branch and into the folder, and nothing is damaged."""
    (folder / "loose.txt").write_text("not committed\n")
    head, status = git(folder, "rev-parse", "HEAD"), git(folder, "status", "--porcelain")
    taken = await executed(at or folder, root)
    assert (taken.box / "loose.txt").read_text() == "not committed\n"
    assert git(folder, "rev-parse", "HEAD") == head
    assert git(folder, "rev-parse", f"{taken.branch}~2") == head
    assert git(folder, "show", f"{taken.branch}:work.txt") == "worked"
    assert taken.landed.applied and (folder / "work.txt").read_text() == "worked\n", taken.landed
    (folder / "work.txt").unlink()
    assert git(folder, "status", "--porcelain") == status
    git(folder, "fsck", "--strict")
    return taken


async def refused(folder: Path, root: Path, words: str) -> str:
    with pytest.raises(UserError, match=words) as raised:
        await executed(folder, root)
    return str(raised.value)


def obey(sentence: str) -> None:
    """Do what the sentence says: its command stands at its end."""
    command = shlex.split(sentence[sentence.index(": git ") + 2 :])
    subprocess.run(command, env=ENV, check=True, cwd="/")


async def test_a_plain_one_and_a_part_of_it(tmp_path: Path) -> None:
    folder = repository(tmp_path / "plain", **{"sub/b.txt": "b\n"})
    await works(folder, tmp_path)
    taken = await works(folder, tmp_path, at=folder / "sub")
    assert taken.folder.inside == "sub"


async def test_packed_refs_and_a_head_that_is_no_branch(tmp_path: Path) -> None:
    folder = repository(tmp_path / "packed")
    git(folder, "pack-refs", "--all")
    git(folder, "gc", "-q")
    await works(folder, tmp_path)
    git(folder, "switch", "-q", "--detach")
    await works(folder, tmp_path)


async def test_before_the_first_commit(tmp_path: Path) -> None:
    folder = tmp_path / "fresh"
    git(tmp_path, "init", "-q", str(folder))
    (folder / "a.txt").write_text("a\n")
    taken = await executed(folder, tmp_path)
    assert git(folder, "ls-tree", "--name-only", taken.branch).split() == ["a.txt", "work.txt"]


@pytest.mark.parametrize("relative", [False, True])
async def test_a_linked_worktree(tmp_path: Path, relative: bool) -> None:
    main = repository(tmp_path / "main")
    linked = tmp_path / "linked"
    git(main, "worktree", "add", "-q", "-b", "other", str(linked))
    if relative:  # as git 2.48 writes them with worktree.useRelativePaths
        (linked / ".git").write_text("gitdir: ../main/.git/worktrees/linked\n")
        (main / ".git/worktrees/linked/gitdir").write_text("../../../../linked/.git\n")
    committed(linked, {"there.txt": "there\n"})
    taken = await works(linked, tmp_path)
    assert (taken.box / "there.txt").exists()
    await works(main, tmp_path)


async def test_a_worktree_beside_a_bare_repository(tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository(tmp_path / "origin")), str(tmp_path / "all/.bare"))
    (tmp_path / "all/.git").write_text("gitdir: ./.bare\n")
    git(tmp_path / "all", "worktree", "add", "-q", str(tmp_path / "all/work"), "main")
    await works(tmp_path / "all/work", tmp_path)
    await refused(tmp_path / "all", tmp_path, "name a folder with files")


async def test_a_worktree_that_was_moved_says_how_it_is_found_again(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "linked").rename(tmp_path / "moved")
    obey(await refused(tmp_path / "moved", tmp_path, "does not know .*/moved as its worktree"))
    await works(tmp_path / "moved", tmp_path)


async def test_a_worktree_whose_repository_is_gone(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    shutil.rmtree(main / ".git")
    await refused(tmp_path / "linked", tmp_path, "which is no git directory")
    (main / ".git/worktrees/linked").mkdir(parents=True)
    for name, text in (("HEAD", "ref: refs/heads/linked\n"), ("commondir", "../..\n"), ("gitdir", "x\n")):
        (main / ".git/worktrees/linked" / name).write_text(text)
    await refused(tmp_path / "linked", tmp_path, "it is a part of .*/main/.git, which is no git directory")


async def test_a_submodule_also_in_a_worktree(tmp_path: Path) -> None:
    part, main = repository(tmp_path / "part"), repository(tmp_path / "main")
    allowed = ("-c", "protocol.file.allow=always")
    git(main, *allowed, "submodule", "--quiet", "add", str(part), "deep/part")
    git(main, "commit", "-q", "-m", "part")
    await works(main / "deep/part", tmp_path)
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(tmp_path / "linked", *allowed, "submodule", "--quiet", "update", "--init")
    await works(tmp_path / "linked/deep/part", tmp_path)
    taken = await executed(main, tmp_path)
    assert "deep/part" in taken.snapshot.left_out


async def test_a_git_directory_apart(tmp_path: Path) -> None:
    """git leaves no trace of the folder in it but the index, which knows its files."""
    folder = tmp_path / "apart"
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "store"), str(folder))
    committed(folder, {"a.txt": "a\n", "b.txt": "b\n"})
    await works(folder, tmp_path)
    shutil.copytree(folder, tmp_path / "copied")
    obey(await refused(tmp_path / "copied", tmp_path, "does not know .*/copied"))
    await works(tmp_path / "copied", tmp_path)


@pytest.mark.parametrize("how", ["--shared", "--reference"])
async def test_a_clone_that_borrows_works_once_the_lender_says_so(tmp_path: Path, how: str) -> None:
    lender, clone = repository(tmp_path / "lender"), tmp_path / "clone"
    given = [how] if how == "--shared" else ["--no-local", how, str(lender)]
    git(tmp_path, "clone", "-q", *given, str(lender), str(clone))
    assert (clone / ".git/objects/info/alternates").exists()
    obey(await refused(clone, tmp_path, "borrows objects from"))
    await works(clone, tmp_path)


async def test_a_clone_that_borrows_works_once_it_has_the_objects_itself(tmp_path: Path) -> None:
    """The other way that the sentence names, for who may not write to the lender."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--shared", str(repository(tmp_path / "lender")), str(clone))
    assert "`git repack -a -d` there and remove its objects/info/alternates" in await refused(clone, tmp_path, "lends")
    git(clone, "repack", "-a", "-d", "-q")
    (clone / ".git/objects/info/alternates").unlink()
    shutil.rmtree(tmp_path / "lender")
    await works(clone, tmp_path)


async def test_one_that_was_copied_moved_or_unpacked(tmp_path: Path) -> None:
    folder = repository(tmp_path / "first")
    folder.rename(tmp_path / "moved")
    await works(tmp_path / "moved", tmp_path)
    for number, how in enumerate((["cp", "-r"], ["cp", "-a"])):
        subprocess.run([*how, str(tmp_path / "moved"), str(tmp_path / f"copied-{number}")], check=True)
        await works(tmp_path / f"copied-{number}", tmp_path)
    shutil.make_archive(str(tmp_path / "packed"), "tar", tmp_path / "moved")
    shutil.unpack_archive(tmp_path / "packed.tar", tmp_path / "unpacked", filter="data")
    await works(tmp_path / "unpacked", tmp_path)


async def test_pointers_of_lfs_stay_pointers(tmp_path: Path) -> None:
    """Whether or not the large file is there in its place: the filter is a program, and none is run."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 4\n"
    folder = repository(tmp_path / "lfs", **{"large.bin": pointer})
    committed(folder, {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    git(folder, "config", "filter.lfs.clean", f"touch {tmp_path}/ran")
    git(folder, "config", "filter.lfs.required", "true")
    os.utime(folder / "large.bin")
    taken = await executed(folder, tmp_path)
    assert taken.landed.applied and (taken.box / "large.bin").read_text() == pointer and not (tmp_path / "ran").exists()


async def test_one_that_borrows_from_within_itself(tmp_path: Path) -> None:
    folder = repository(tmp_path / "whole")
    (folder / ".git/objects").rename(folder / ".git/store")
    for name in ("info", "pack"):
        (folder / ".git/objects" / name).mkdir(parents=True)
    (folder / ".git/objects/info/alternates").write_text("../store\n")
    await works(folder, tmp_path)


async def test_a_shallow_clone_and_a_sparse_checkout(tmp_path: Path) -> None:
    origin = repository(tmp_path / "origin", **{"in/b.txt": "b\n", "out/c.txt": "c\n"})
    for number in range(3):
        committed(origin, {"in/b.txt": f"{number}\n"})
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "2", "--no-local", f"file://{origin}", str(clone))
    git(clone, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
    taken = await works(clone, tmp_path)
    assert git(taken.box, "show", "HEAD:out/c.txt") == "c" and not (clone / "out").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
async def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    """git itself would refuse: it fears the owner's hooks, of which none is run here."""
    folder = repository(tmp_path / "theirs")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534)
    taken = await executed(folder, tmp_path)
    assert taken.landed.applied and (folder / ".git/refs/heads" / taken.branch).is_file()


async def test_a_partial_clone_fetches_nothing_by_itself(tmp_path: Path) -> None:
    origin, clone = repository(tmp_path / "origin"), tmp_path / "clone"
    committed(origin, {"a.txt": "b\n"})
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-local", f"file://{origin}", str(clone))
    git(clone, "config", "remote.origin.uploadpack", f"touch {tmp_path}/asked; git-upload-pack")
    with pytest.raises(MirrorLost):  # which `place` tells in a sentence
        await executed(clone, tmp_path)
    assert not (tmp_path / "asked").exists()


async def test_what_is_not_handled_is_said(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", str(tmp_path / "long"))
    await refused(tmp_path / "long", tmp_path, "SHA-256")
    other = repository(tmp_path / "table")
    git(other, "config", "core.repositoryFormatVersion", "1")
    with (other / ".git/config").open("a") as config:
        config.write("[extensions]\n\trefStorage = reftable\n")
    await refused(other, tmp_path, "does not keep its refs in files")
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "bare"))
    await refused(tmp_path / "bare", tmp_path, "name a folder with files")
    await refused(repository(tmp_path / "in") / ".git/refs", tmp_path, "inside git's own folder")


async def test_ignore_rules_and_line_ends_of_ones_own_count(tmp_path: Path, home: Path) -> None:
    folder = repository(tmp_path / "plain")
    (home / "more").write_text("[core]\n\texcludesFile = ~/mine\n")
    (home / ".gitconfig").write_text("[include]\n\tpath = more\n")
    (home / "mine").write_text("*.own\n")
    git(folder, "config", "core.autocrlf", "input")
    (folder / ".git/info/exclude").write_text("*.here\n")
    (folder / "x.own").write_text("x")
    (folder / "x.here").write_text("x")
    (folder / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    taken = await executed(folder, tmp_path)
    assert sorted(path.name for path in taken.box.iterdir()) == [".git", "a.txt", "crlf.txt", "work.txt"]
    assert (taken.box / "crlf.txt").read_bytes() == b"one\ntwo\n"


async def test_a_folder_without_a_repository(tmp_path: Path) -> None:
    folder = tmp_path / "loose"
    (folder / ".git").mkdir(parents=True)  # empty: git passes over it as well
    (folder / "a.txt").write_text("a\n")
    assert (await folders.look(folder)).repository is None
    taken = await executed(folder, tmp_path)
    assert taken.landed.applied and (folder / "work.txt").exists()
