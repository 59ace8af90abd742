"""The runner's filter beside the real git-lfs, and pointers in git's own data on the host."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bot.git import large_files
from sandbox.runner import pointer_filter

ATTRIBUTES = "*.bin filter=lfs -text\nplain/** -filter\n"
FILES = {
    "a.bin": b"\0" * 70_000,
    "deep/b.bin": b"text\n",
    "plain/c.bin": b"not in LFS",
    "empty.bin": b"",
    "d.txt": b"d\n",
}
FILTER = [sys.executable, "-E", "-s", "-S", "-B", pointer_filter.__file__, "keep"]


def git(folder: Path, *argv: str) -> str:
    safe = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "PATH": os.environ["PATH"], "HOME": "/x"}
    names = {f"GIT_{role}_{key}": "a@b" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    done = subprocess.run(["git", *argv], cwd=folder, env=safe | names, capture_output=True, check=True, timeout=60)
    return done.stdout.decode().strip()


def repository(folder: Path, process: str) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "filter.lfs.process", process)
    for name, content in {".gitattributes": ATTRIBUTES.encode(), **FILES}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    return folder


def ours(folder: Path) -> str:
    return shlex.join([*FILTER, str(folder / ".git")])


def test_contents_become_pointers_and_come_back(tmp_path: Path) -> None:
    folder = repository(tmp_path / "ours", ours(tmp_path / "ours"))
    listed = git(folder, "ls-tree", "-r", "-l", "HEAD").splitlines()
    sizes = {row.split("\t")[1]: int(row.split()[3]) for row in listed}
    assert sizes["a.bin"] == len(large_files.Pointer("0" * 64, 70_000).text)
    assert (sizes["plain/c.bin"], sizes["empty.bin"]) == (len(b"not in LFS"), 0)
    for name in FILES:
        (folder / name).unlink()
    git(folder, "checkout", "--", ".")
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
    assert git(folder, "status", "--short") == ""


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed (Debian: git-lfs)")
def test_the_real_git_lfs_makes_the_same_commit_and_finds_our_contents(tmp_path: Path) -> None:
    mine = repository(tmp_path / "ours", ours(tmp_path / "ours"))
    theirs = repository(tmp_path / "theirs", "git-lfs filter-process")
    tree = "HEAD^{tree}"
    assert git(mine, "rev-parse", tree) == git(theirs, "rev-parse", tree)
    (mine / "a.bin").unlink()
    git(mine, "config", "filter.lfs.process", "git-lfs filter-process")
    git(mine, "checkout", "--", "a.bin")
    assert (mine / "a.bin").read_bytes() == FILES["a.bin"], "from where our filter has put it"


async def test_the_host_finds_pointers_and_writes_them_as_the_attributes_of_the_base_say(tmp_path: Path) -> None:
    folder = repository(tmp_path / "ours", ours(tmp_path / "ours"))
    git_dir, base = folder / ".git", git(folder, "rev-parse", "HEAD")
    found = {one.path: one.pointer for one in await large_files.pointers(git_dir, base)}
    assert {path: one.size for path, one in found.items()} == {"a.bin": 70_000, "deep/b.bin": 5}

    git(folder, "config", "--unset", "filter.lfs.process")
    pointer = large_files.Pointer("0" * 64, 7)
    new = {
        "new.bin": b"new",
        "plain/e.bin": b"plain",
        "p.bin": pointer.text,
        "run.bin": b"#!",
        "d.txt": b"dd",
        "out.bin": b"o",
    }
    for name, content in new.items():
        (folder / name).write_bytes(content)
    for name in ("a.bin", "deep/b.bin"):
        os.utime(folder / name, (1, 1))  # git looks at them again, and takes their contents
    (folder / "run.bin").chmod(0o755)
    (folder / "link.bin").symlink_to("a.bin")
    (folder / ".gitattributes").write_text(f"{ATTRIBUTES}*.txt filter=lfs\nout.bin -filter\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "raw")
    pointed = await large_files.pointed(git_dir, base, git(folder, "rev-parse", "HEAD^{tree}"))
    assert {one.path for one in pointed.contents} == {"new.bin", "run.bin", "a.bin", "deep/b.bin"}
    assert git(folder, "diff", "--name-only", base, pointed.tree, "--", "a.bin", "deep") == "", "those are as before"
    assert [one.path for one in pointed.named] == ["p.bin"]
    rows = git(folder, "ls-tree", pointed.tree, "run.bin", "new.bin", "link.bin").splitlines()
    assert [row.split()[0] for row in rows] == ["120000", "100644", "100755"]
    name = hashlib.sha256(b"new").hexdigest()
    assert git(folder, "cat-file", "blob", f"{pointed.tree}:new.bin").encode() + b"\n" == (
        large_files.Pointer(name, 3).text
    )
    assert git(folder, "cat-file", "blob", f"{pointed.tree}:d.txt") == "dd", "tracked only from here on"
    assert git(folder, "cat-file", "blob", f"{pointed.tree}:out.bin") == "o", "no longer tracked"


@pytest.mark.parametrize(
    "text",
    [
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 1\nsize 2\n",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:../" + b"a" * 61 + b"\nsize 1\n",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize -1\n",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize " + b"9" * 40 + b"\n",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 1",
    ],
)
def test_what_is_not_quite_a_pointer_is_none(text: bytes) -> None:
    assert large_files.parse(text) is None
