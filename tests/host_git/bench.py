"""A remote, a developer's clone of it and the cache under test; and what an environment would send back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.git.cache import RepositoryCache
from bot.git.commits import Author
from bot.git.run import RemoteAccess
from bot.models import RepoId
from bot.settings import Secret
from tests.world.git_remote import GitRemote, git, git_bytes

REPO = RepoId(7)
TOKEN = "ghs_canary-0123456789abcdefghijklmnopqrstuvwxyz"
BOT = Author("forgehand[bot]", "1+forgehand[bot]@users.noreply.example.org")


@dataclass
class Bench:
    """A remote with `calc.git`, a developer's clone of it, and the cache under test."""

    remote: GitRemote
    cache: RepositoryCache
    root: Path
    dev: Path

    @property
    def access(self) -> RemoteAccess:
        return RemoteAccess(self.remote.url("calc"), Secret(TOKEN))

    def commit(self, files: dict[str, str], message: str = "change") -> str:
        for name, text in files.items():
            (self.dev / name).parent.mkdir(parents=True, exist_ok=True)
            (self.dev / name).write_text(text)
        git(self.dev, "add", "-A")
        git(self.dev, "commit", "-q", "--allow-empty", "-m", message)
        return git(self.dev, "rev-parse", "HEAD")

    def publish(self, *refs: str) -> None:
        git(self.dev, "push", "-q", str(self.remote.path("calc")), *(refs or ("HEAD:refs/heads/main",)))

    def remote_heads(self) -> dict[str, str]:
        rows = git(self.remote.path("calc"), "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads")
        return dict(row.split(" ") for row in rows.splitlines())

    async def box(self, base: str, *, depth: int = 50, name: str = "box") -> Path:
        """What an environment does with a pack: a checkout at the pinned commit, without any remote."""
        pack = await self.cache.pack(REPO, base, self.root / f"{name}.pack", depth=depth)
        box = self.root / name
        git(self.root, "init", "-q", "-b", "work", str(box))
        git(box, "index-pack", "--stdin", stdin=pack.path.read_bytes())
        (box / ".git" / "shallow").write_text("".join(f"{sha}\n" for sha in pack.shallow))
        git(box, "reset", "-q", "--hard", base)
        return box

    def snapshot(self, box: Path, base: str, name: str = "work.bundle") -> Path:
        """What the runner does at the end: one commit on the base, bundled thin under the one ref."""
        git(box, "add", "-A")
        tree = git(box, "write-tree")
        return self.bundle(box, git(box, "commit-tree", tree, "-p", base, "-m", "agent's"), base, name)

    def bundle(self, box: Path, commit: str, base: str, name: str = "work.bundle") -> Path:
        git(box, "update-ref", "refs/forgehand/work", commit)
        target = self.root / name
        git(box, "bundle", "create", "-q", str(target), "refs/forgehand/work", f"^{base}")
        return target


def contents(repo: Path, sha: str) -> dict[str, bytes]:
    names = git(repo, "ls-tree", "-r", "-z", "--name-only", sha).rstrip("\0").split("\0")
    return {name: git_bytes(repo, "cat-file", "blob", f"{sha}:{name}") for name in names}


def left_behind(bench: Bench) -> list[str]:
    found = [str(p) for p in bench.cache._root.rglob("*") if p.name.startswith(("tmp_", "quarantine-", "trash-"))]
    git(bench.cache._root / f"{REPO}.git", "fsck", "--strict")
    return found


def write_tree(box: Path, entries: bytes) -> str:
    return git(box, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=entries)


def write_commit(box: Path, tree: str, *parents: str) -> str:
    flags = [part for parent in parents for part in ("-p", parent)]
    return git(box, "commit-tree", tree, *flags, "-m", "x")


def write_blob(box: Path, text: str) -> bytes:
    return git(box, "hash-object", "-w", "--stdin", stdin=text.encode()).encode()


def command_lines() -> Iterator[bytes]:
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield found.read_bytes()
        except OSError:
            continue
