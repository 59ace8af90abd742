"""A folder whose `.git` leads elsewhere: nothing of what lies beside it comes along, and a sentence says why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.errors import UserError
from tests.foreign_folder.rig import SECRET, committed, executed, private, repository
from tests.world.git_remote import git

pytestmark = [pytest.mark.review("security-4"), pytest.mark.usefixtures("home")]

Attack = Callable[[Path, Path], None]
"""Given the folder that somebody else has packed, and a private repository of the person's beside it."""


def gitfile(evil: Path, target: str) -> None:
    shutil.rmtree(evil / ".git")
    (evil / ".git").write_text(f"gitdir: {target}\n")


def link(evil: Path, name: str, target: Path) -> None:
    place = evil / ".git" / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def git_link(evil: Path, own: Path) -> None:
    shutil.rmtree(evil / ".git")
    (evil / ".git").symlink_to(own / ".git")


def bare(evil: Path, own: Path) -> None:
    git(evil.parent, "clone", "-q", "--bare", str(own), str(evil.parent / "bare"))
    gitfile(evil, str(evil.parent / "bare"))


def through(evil: Path, own: Path) -> None:
    (evil / "inner").symlink_to(own)
    gitfile(evil, "./inner/.git")


def made_up_worktree(evil: Path, own: Path) -> None:
    """Its git directory is the attacker's, and claims to be a worktree of the private one."""
    gitfile(evil, "./fake/worktrees/x")
    fake = evil / "fake/worktrees/x"
    fake.mkdir(parents=True)
    (fake / "HEAD").write_text("ref: refs/heads/main\n")
    (fake / "commondir").write_text(f"{own / '.git'}\n")
    (fake / "gitdir").write_text(f"{evil / '.git'}\n")


def somebodys_worktree(evil: Path, own: Path) -> None:
    git(own, "worktree", "add", "-q", "--detach", str(own.parent / "linked"))
    gitfile(evil, str(own / ".git/worktrees/linked"))


def somebodys_submodule(evil: Path, own: Path) -> None:
    main = repository(own.parent / "main")
    git(main, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(own), "part")
    gitfile(evil, str(main / ".git/modules/part"))


def same_files(evil: Path, own: Path) -> None:
    """Like the private one to the byte, but for the files that are wanted; dates as they were."""
    for file in own.glob("a.txt"):
        shutil.copy2(file, evil / file.name)
    gitfile(evil, str(own / ".git"))


def files_behind_links(evil: Path, own: Path) -> None:
    """The folder's files are the private one's, number and time, where links to folders are followed."""
    committed(own, {f"src/{number}.txt": "x\n" for number in range(9)})
    (evil / "src").symlink_to(own / "src")
    gitfile(evil, str(own / ".git"))


def borrowed(evil: Path, own: Path) -> None:
    """Whoever knows the name of a commit must not get what it holds."""
    (evil / ".git/objects/info").mkdir(exist_ok=True)
    (evil / ".git/objects/info/alternates").write_text(f"{own / '.git/objects'}\n")
    (evil / ".git/refs/heads/main").write_text(git(own, "rev-parse", "HEAD") + "\n")


def borrowed_in_two_steps(evil: Path, own: Path) -> None:
    """The first lender is the attacker's too, and says yes."""
    between = repository(evil.parent / "between")
    git(between, "config", "forgehand.lendsTo", str(evil / ".git"))
    borrowed(between, own)
    (evil / ".git/objects/info").mkdir(exist_ok=True)
    (evil / ".git/objects/info/alternates").write_text(f"{between / '.git/objects'}\n")
    shutil.copy(between / ".git/refs/heads/main", evil / ".git/refs/heads/main")


def a_pipe(evil: Path, own: Path) -> None:
    (evil / ".git/HEAD.old").write_bytes((evil / ".git/index").read_bytes())
    (evil / ".git/index").unlink()
    os.mkfifo(evil / ".git/index")


def write(name: str, text: Callable[[Path], str]) -> Attack:
    def attack(evil: Path, own: Path) -> None:
        (evil / ".git" / name).write_text(text(own))

    return attack


def linked(name: str, target: str | None = None) -> Attack:
    return lambda evil, own: link(evil, name, own / ".git" / (target or name))


def work_tree(where: str) -> Attack:
    def attack(evil: Path, own: Path) -> None:
        git(evil, "config", "core.worktree", where.format(own=own))

    return attack


ATTACKS: dict[str, tuple[Attack, str]] = {
    "work tree above": (work_tree("../.."), "sets core.worktree to a folder other than"),
    "work tree beside": (work_tree("{own}"), "sets core.worktree to a folder other than"),
    "git file": (lambda evil, own: gitfile(evil, str(own / ".git")), "which does not know .*/evil"),
    "git file to a bare one": (bare, "name a folder with files"),
    "git link": (git_link, "which does not know .*/evil"),
    "git file through a link": (through, "which does not know .*/evil"),
    "common directory": (write("commondir", lambda own: f"{own / '.git'}\n"), "does not know .*/evil as its worktree"),
    "made-up worktree": (made_up_worktree, "does not know .*/evil as its worktree"),
    "somebody's worktree": (somebodys_worktree, "does not know .*/evil as its worktree"),
    "somebody's submodule": (somebodys_submodule, "sets core.worktree to a folder other than"),
    "files of the same name": (same_files, "which does not know .*/evil"),
    "files behind links": (files_behind_links, "which does not know .*/evil"),
    "alternates": (borrowed, "borrows objects from"),
    "alternates of alternates": (borrowed_in_two_steps, "borrows objects from"),
    "quoted alternates": (write("objects/info/alternates", lambda own: f'"{own}/.git/objects"\n'), "is not there"),
    "head": (write("HEAD", lambda own: f"ref: refs/../../{own.name}\n"), "names neither a branch nor a commit"),
    "pipe": (a_pipe, "is a link, a pipe or a device"),
    **{
        f"link at {name}": (linked(name), "is a link, a pipe or a device")
        for name in (
            *("HEAD", "index", "config", "packed-refs", "shallow", "info", "info/exclude", "refs", "refs/heads"),
            *("refs/heads/main", "objects", "objects/pack", "objects/info"),
        )
    },
    "link to objects": (linked("objects/pack/pack-1.pack", "index"), "is a link, a pipe or a device"),
    "link to a shared index": (linked("sharedindex.1", "index"), "is a link, a pipe or a device"),
    "link to alternates": (linked("objects/info/alternates", "HEAD"), "is a link, a pipe or a device"),
}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return private(tmp_path)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    return repository(tmp_path / "evil")


@pytest.mark.parametrize("name", ATTACKS)
async def test_what_leads_out_of_the_folder_is_refused(name: str, evil: Path, own: Path, tmp_path: Path) -> None:
    attack, words = ATTACKS[name]
    attack(evil, own)
    before = contents(own)
    with pytest.raises(UserError, match=words) as raised:
        await executed(evil, tmp_path)
    assert SECRET not in str(raised.value)
    assert contents(own) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("objects/info/alternates", "/nowhere/\x1b]0;owned\x07\n"),
        ("objects/info/alternates", "/nowhere/\0\n"),
        ("commondir", "loop\n"),
        ("commondir", "\0\n"),
        ("HEAD", "\x1b[2J\n"),
    ],
)
async def test_nonsense_is_a_sentence_that_says_nothing_to_the_terminal(
    evil: Path, tmp_path: Path, name: str, text: str
) -> None:
    (evil / ".git/loop").symlink_to("loop")
    (evil / ".git" / name).write_text(text)
    with pytest.raises(UserError) as raised:
        await executed(evil, tmp_path)
    assert str(raised.value).isprintable() and "evil" in str(raised.value)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def test_ignore_rules_are_never_a_file_that_the_repository_names(evil: Path, own: Path, tmp_path: Path) -> None:
    git(evil, "config", "core.excludesFile", str(own / "key.txt"))
    git(evil, "config", "core.attributesFile", str(own / "key.txt"))
    (tmp_path / "more").write_text(f"[core]\n\texcludesFile = {own / 'key.txt'}\n")
    git(evil, "config", "include.path", str(tmp_path / "more"))
    taken = await executed(evil, tmp_path)
    assert SECRET.encode() not in taken.inside()


@pytest.mark.parametrize("path", ["../private/key.txt", "/private/key.txt", ".git/config", "sub/../../private/key.txt"])
async def test_an_index_names_no_file_outside(evil: Path, own: Path, tmp_path: Path, path: str) -> None:
    """git reads an index without a look at its paths."""
    (evil / "sub").mkdir()
    plain = "x" * len(path)
    (evil / plain).write_text("x")
    git(evil, "add", plain)
    index = (evil / ".git/index").read_bytes()[:-20].replace(plain.encode(), path.encode())
    (evil / ".git/index").write_bytes(index + bytes(20))  # git takes a hash of zeros for "not computed"
    (evil / plain).unlink()
    taken = await executed(evil, tmp_path)
    assert SECRET.encode() not in taken.inside()
    assert git(taken.box, "ls-tree", "-r", "--name-only", taken.snapshot.base).split() == ["a.txt"]


async def test_a_link_in_the_work_tree_stays_a_link(evil: Path, own: Path, tmp_path: Path) -> None:
    (evil / "key").symlink_to(own / "key.txt")
    (evil / "folder").symlink_to(own)
    (evil / ".gitignore").symlink_to(own / "key.txt")
    (evil / ".gitattributes").symlink_to(own / "key.txt")
    taken = await executed(evil, tmp_path)
    objects = git(taken.box, "ls-tree", "-r", taken.snapshot.base)
    assert "120000" in objects and SECRET.encode() not in taken.inside().replace(os.fsencode(own), b"")


async def test_a_nested_repository_stays_out(evil: Path, own: Path, tmp_path: Path) -> None:
    nested = evil / "nested"
    nested.mkdir()
    (nested / ".git").write_text(f"gitdir: {own / '.git'}\n")
    (nested / "file").write_text("x")
    taken = await executed(evil, tmp_path)
    assert SECRET.encode() not in taken.inside() and not (taken.box / "nested").exists()
