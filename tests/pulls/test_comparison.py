"""What a pull request changes, told from the mirror: from where it left its base, bounded, names as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.git.cache import RepositoryCache
from bot.git.errors import MirrorLost, RepositoryUnsupported
from bot.git.run import RemoteAccess
from bot.models import RepoId
from bot.settings import Secret
from tests.world.git_remote import GitRemote, git

REPO = RepoId(7)
TOKEN = "ghs_canary-0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass
class Bench:
    cache: RepositoryCache
    access: RemoteAccess
    dev: Path
    bare: Path

    def commit(self, branch: str, files: dict[str, str | None]) -> str:
        git(self.dev, "checkout", "-q", "-B", branch)
        for name, text in files.items():
            path = self.dev / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text) if text is not None else path.unlink()
        git(self.dev, "add", "-A")
        git(self.dev, "commit", "-q", "--allow-empty", "-m", "change")
        git(self.dev, "push", "-q", str(self.bare), f"HEAD:refs/heads/{branch}")
        return git(self.dev, "rev-parse", "HEAD")

    async def fetch(self, branch: str, depth: int = 50) -> str:
        return await self.cache.fetch(REPO, self.access, f"refs/heads/{branch}", depth=depth)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    (tmp_path / "remotes").mkdir()
    async with GitRemote.running(tmp_path / "remotes", TOKEN) as remote:
        remote.create("calc")
        dev = tmp_path / "dev"
        git(tmp_path, "init", "-q", "-b", "main", str(dev))
        access = RemoteAccess(remote.url("calc"), Secret(TOKEN))
        yield Bench(RepositoryCache(tmp_path / "cache"), access, dev, remote.path("calc"))


async def test_only_what_the_branch_itself_changed_is_told(bench: Bench) -> None:
    parted = bench.commit("main", {"a.py": "a = 1\n" * 9, "b.py": "b = 1\n"})
    head = bench.commit("topic", {"c.py": "a = 1\n" * 9, "a.py": None, "t\u200b.md": "x\n"})
    git(bench.dev, "checkout", "-q", "main")
    base = bench.commit("main", {"b.py": "b = 2\n"})
    assert (await bench.fetch("main"), await bench.fetch("topic")) == (base, head)
    found = await bench.cache.compare(REPO, base, head, max_bytes=10_000)
    assert found is not None
    assert (found.parted, found.head, found.cut) == (parted, head, False)
    assert sorted(found.paths) == ["a.py", "c.py", "t\u200b.md"]
    assert b"rename from a.py" in found.patch and b"b.py" not in found.patch
    assert b"t\\342\\200\\213.md" in found.patch, "git writes out what draws nothing"


async def test_a_long_patch_is_cut_at_a_line(bench: Bench) -> None:
    base = bench.commit("main", {"a.py": ""})
    head = bench.commit("topic", {"a.py": "x = 1\n" * 10_000})
    await bench.fetch("main")
    await bench.fetch("topic")
    found = await bench.cache.compare(REPO, base, head, max_bytes=1_000)
    assert found is not None and found.cut
    assert len(found.patch) <= 1_000 and found.patch.endswith(b"+x = 1\n")


async def test_a_history_that_is_too_short_says_so_until_more_is_fetched(bench: Bench) -> None:
    bench.commit("main", {"a.py": "1"})
    head = bench.commit("topic", {"t.py": "1"})
    git(bench.dev, "checkout", "-q", "main")
    for n in range(5):
        base = bench.commit("main", {"a.py": f"{n + 2}"})
    for branch in ("main", "topic"):
        await bench.fetch(branch, depth=2)
    assert await bench.cache.compare(REPO, base, head, max_bytes=1_000) is None
    for branch in ("main", "topic"):
        await bench.fetch(branch, depth=20)
    found = await bench.cache.compare(REPO, base, head, max_bytes=1_000)
    assert found is not None and found.paths == ("t.py",)


async def test_a_commit_that_is_not_there_is_a_lost_mirror(bench: Bench) -> None:
    bench.commit("main", {"a.py": "1"})
    sha = await bench.fetch("main")
    assert await bench.cache.paths(REPO, sha) == ("a.py",)
    with pytest.raises(MirrorLost):
        await bench.cache.paths(REPO, "0" * 40)


@pytest.mark.review("security-6")
async def test_a_branch_that_is_endless_when_written_out_is_not_compared(bench: Bench) -> None:
    """Nor merged: git would hold a list of all that differs before it says the first of it."""
    base = bench.commit("main", {"a.py": "a = 1\n"})
    entry = f"100644 blob {git(bench.dev, 'hash-object', '-w', 'a.py')}"
    for _ in range(12):
        tree = git(bench.dev, "mktree", stdin="".join(f"{entry}\t{number}\n" for number in range(10)).encode())
        entry = f"040000 tree {tree}"
    head = git(bench.dev, "commit-tree", tree, "-p", base, "-m", "endless")
    git(bench.dev, "push", "-q", str(bench.bare), f"{head}:refs/heads/topic")
    assert (await bench.fetch("main"), await bench.fetch("topic")) == (base, head)
    with pytest.raises(RepositoryUnsupported, match="more than 1000000 files"):
        await bench.cache.compare(REPO, base, head, max_bytes=1 << 20)
    with pytest.raises(RepositoryUnsupported, match="more than 1000000 files"):
        await bench.cache.join(REPO, base, head)
