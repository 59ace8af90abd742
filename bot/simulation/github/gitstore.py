"""Bare repositories on disk. Writes that need no existing objects start no process."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

Content = str | bytes
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
NO_SHA = "0" * 40
_SHA = re.compile(r"[0-9a-f]{40}")
CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = true
[http]
\treceivepack = true
[uploadpack]
\tallowFilter = true
\tallowReachableSHA1InWant = true
\tallowAnySHA1InWant = true
[receive]
\tautogc = false
\tadvertisePushOptions = true
[gc]
\tauto = 0
[transfer]
\tfsckObjects = true
"""


def environment() -> dict[str, str]:
    """Build git's environment, without the machine's configuration."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        "GIT_AUTHOR_NAME": "GitHub",
        "GIT_AUTHOR_EMAIL": "noreply@github.com",
        "GIT_COMMITTER_NAME": "GitHub",
        "GIT_COMMITTER_EMAIL": "noreply@github.com",
    }


def git(path: Path, *argv: str, stdin: bytes = b"", ok: tuple[int, ...] = (0,)) -> bytes:
    """Run git in the bare repository; an unexpected exit code is a mistake of the stand-in's user."""
    command = ["git", "--git-dir", str(path), *argv]
    done = subprocess.run(command, input=stdin, capture_output=True, env=environment(), timeout=60, check=False)
    if done.returncode not in ok:
        raise ValueError(f"git {argv[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


@lru_cache(maxsize=64)
def settled(path: Path, *argv: str, ok: tuple[int, ...] = (0,)) -> bytes:
    """Run git once for a command that names everything by its whole SHA, because its answer never changes, and each
    event of a pull request asks again. A failure is not remembered: the object may come later."""
    return git(path, *argv, ok=ok)


def on_commits(path: Path, *argv: str) -> bytes:
    """Run git on commits; only once if all are named by their SHAs."""
    named = [one.removeprefix("^") for one in argv[1:] if not one.startswith("-")]
    return (settled if all(map(_SHA.fullmatch, named)) else git)(path, *argv)


def create(path: Path, default_branch: str) -> None:
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (path / folder).mkdir(parents=True)
    (path / "HEAD").write_text(f"ref: refs/heads/{default_branch}\n")
    (path / "config").write_text(CONFIG)


def write_object(path: Path, kind: str, data: bytes) -> str:
    raw = f"{kind} {len(data)}\0".encode() + data
    sha = hashlib.sha1(raw).hexdigest()
    target = path / "objects" / sha[:2] / sha[2:]
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(zlib.compress(raw, 1))
    return sha


def write_tree(path: Path, entries: Mapping[str, tuple[str, str]]) -> str:
    """Write a tree and its subtrees from `path -> (mode, sha)`."""
    here: dict[str, tuple[str, str]] = {}
    below: dict[str, dict[str, tuple[str, str]]] = {}
    for name, entry in entries.items():
        folder, slash, rest = name.partition("/")
        if slash:
            below.setdefault(folder, {})[rest] = entry
        else:
            here[name] = entry
    here |= {folder: ("40000", write_tree(path, inside)) for folder, inside in below.items()}
    # git orders a folder as if its name ended in a slash
    order = sorted(here.items(), key=lambda each: (each[0] + ("/" if each[1][0] == "40000" else "")).encode())
    return write_object(path, "tree", b"".join(f"{m} {n}".encode() + b"\0" + bytes.fromhex(s) for n, (m, s) in order))


def write_blobs(path: Path, files: Mapping[str, Content], mode: str = "100644") -> dict[str, tuple[str, str]]:
    return {
        name: (mode, write_object(path, "blob", text.encode() if isinstance(text, str) else text))
        for name, text in files.items()
    }


def write_commit(path: Path, tree: str, parents: list[str], message: str, *, who: str, when: float) -> str:
    stamp = f"{who} <{who}@users.noreply.github.com> {int(when)} +0000"
    lines = [f"tree {tree}", *(f"parent {sha}" for sha in parents), f"author {stamp}", f"committer {stamp}", ""]
    return write_object(path, "commit", ("\n".join(lines) + f"\n{message}\n").encode())


def entries(path: Path, ref: str) -> dict[str, tuple[str, str]]:
    """Return every file of a commit as `path -> (mode, sha)`."""
    found = {}
    for line in git(path, "ls-tree", "-r", "-z", ref).decode("utf-8", "surrogateescape").split("\0"):
        if line:
            head, _, name = line.partition("\t")
            mode, _, sha = head.split(" ")
            found[name] = (mode, sha)
    return found


def set_ref(path: Path, ref_name: str, sha: str | None) -> None:
    if sha is None:
        git(path, "update-ref", "-d", ref_name)
        return
    target = path / ref_name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"{sha}\n")


def ref(path: Path, name: str) -> str | None:
    """Read a ref from its loose file, because nothing here packs refs."""
    if ".." in name:
        return None
    target = path / name
    try:
        return target.read_text().strip() or None
    except OSError:  # not there, a folder, or a name that no file can have
        return None


def refs(path: Path, prefix: str = "refs/") -> dict[str, str]:
    """Return the refs as name below the prefix -> sha."""
    root = path / prefix
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            full = Path(folder, name)
            if not name.endswith(".lock") and (sha := ref(path, str(full.relative_to(path)))):
                found[str(full.relative_to(root))] = sha
    return found


def resolve(path: Path, name: str, kind: str = "commit") -> str | None:
    """Return the sha of a branch, tag, full ref or sha, or None. git is asked only for what no loose file says."""
    if name.startswith("-"):
        return None
    for ref_name in (f"refs/heads/{name}", f"refs/tags/{name}"):
        if sha := ref(path, ref_name):
            return sha if _loose_kind(path, sha) == kind else _asked(path, ref_name, kind)
    return name if _SHA.fullmatch(name) and _loose_kind(path, name) == kind else _asked(path, name, kind)


def _loose_kind(path: Path, sha: str) -> str | None:
    """Return the kind of an object in a separate file; None for one in a pack."""
    try:
        start = (path / "objects" / sha[:2] / sha[2:]).read_bytes()[:64]
    except OSError:
        return None
    return zlib.decompressobj().decompress(start, 32).partition(b" ")[0].decode("ascii")


def _asked(path: Path, name: str, kind: str) -> str | None:
    argv = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{{kind}}}")
    return git(path, *argv, ok=(0, 1, 128)).decode().strip() or None


def object_at(path: Path, commit: str, name: str) -> tuple[str, str, str] | None:
    """Return (mode, kind, sha) of a path's entry."""
    if not name:
        return ("040000", "tree", git(path, "rev-parse", f"{commit}^{{tree}}").decode().strip())
    try:
        line = settled(path, "ls-tree", "-z", commit, "--", f":(literal){name}").decode().rstrip("\0")
    except ValueError:
        return None
    if not line:
        return None
    mode, kind, sha = line.partition("\t")[0].split(" ")
    return mode, kind, sha


def blob(path: Path, sha: str) -> bytes:
    return git(path, "cat-file", "blob", sha)


def file(path: Path, name: str, file_path: str) -> bytes | None:
    commit = resolve(path, name)
    found = object_at(path, commit, file_path) if commit else None
    return blob(path, found[2]) if found and found[1] == "blob" else None


def diff(path: Path, base: str, head: str) -> str:
    """Return the changes of `head` since it left `base`, as a pull request shows them."""
    start = merge_base(path, base, head) or EMPTY_TREE
    end = resolve(path, head)
    assert end, f"{head} is not there"
    return on_commits(path, "diff", "-M", "--full-index", start, end).decode("utf-8", "replace")


def merge_base(path: Path, base: str, head: str) -> str | None:
    first, second = resolve(path, base), resolve(path, head)
    if not first or not second:
        return None
    return settled(path, "merge-base", first, second, ok=(0, 1)).decode().strip() or None


def count(path: Path, base: str, head: str) -> int:
    """Count the commits of `head` that `base` lacks."""
    return int(on_commits(path, "rev-list", "--count", head, f"^{base}"))


def checkout(path: Path, branch: str, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    commit = resolve(path, branch)
    assert commit, f"{branch} is not there"
    archive = git(path, "archive", "--format=tar", commit)
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive, check=True, timeout=60)


def merge_tree(path: Path, base: str, head: str) -> str:
    """Return the tree of a merge; ValueError if there are conflicts."""
    return git(path, "merge-tree", "--write-tree", base, head).decode().split("\n")[0]
