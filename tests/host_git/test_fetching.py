"""Repositories in: real git over real smart HTTP, mirrors that break, packs for environments."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bot.errors import NotFound, Unrecognised
from bot.git.cache import RepositoryCache
from bot.git.errors import (
    BadName,
    MirrorLost,
    RefMissing,
    RepositoryEmpty,
    RepositoryUnsupported,
)
from bot.git.run import RemoteAccess
from bot.settings import Secret
from tests.host_git.bench import (
    REPO,
    TOKEN,
    Bench,
    contents,
    left_behind,
)
from tests.world.git_remote import git


async def test_a_pack_carries_the_whole_tree_and_the_history_up_to_its_boundary(bench: Bench) -> None:
    for n in range(6):
        bench.commit({f"f{n}.txt": f"{n}\n"}, f"c{n}")
    bench.publish()
    sha = await bench.cache.fetch(REPO, bench.access, "refs/heads/main")
    assert sha == bench.remote_heads()["main"]

    box = await bench.box(sha, depth=3)
    assert contents(box, sha) == contents(bench.dev, sha)
    assert git(box, "rev-list", sha).split() == git(bench.dev, "rev-list", "-n3", sha).split()
    git(box, "fsck", "--strict")


async def test_a_pack_with_merges_ends_at_consistent_boundaries(bench: Bench) -> None:
    bench.commit({"a": "1"}, "root")
    for n in range(4):
        git(bench.dev, "checkout", "-q", "-b", f"side{n}")
        bench.commit({f"s{n}": "x", f"t{n}": "y"}, "side")
        git(bench.dev, "checkout", "-q", "main")
        bench.commit({f"m{n}": "z"}, "main")
        git(bench.dev, "merge", "-q", "--no-ff", "-m", "merge", f"side{n}")
    bench.publish()
    sha = await bench.cache.fetch(REPO, bench.access, "main")
    for depth in (1, 2, 4, 7, 13):
        box = await bench.box(sha, depth=depth, name=f"box{depth}")
        git(box, "fsck", "--strict", "--no-dangling")
        listed = set(git(box, "rev-list", sha).split())
        assert listed <= set(git(bench.dev, "rev-list", f"-n{depth}", sha).split())
        assert contents(box, sha) == contents(bench.dev, sha)


async def test_first_fetch_is_shallow_and_later_ones_bring_the_rest(bench: Bench) -> None:
    for n in range(8):
        bench.commit({"a": str(n)})
    bench.publish()
    first = await bench.cache.fetch(REPO, bench.access, "main", depth=2)
    mirror = bench.cache._root / f"{REPO}.git"
    assert len(git(mirror, "rev-list", first).split()) == 2

    newer = bench.commit({"b": "new"})
    bench.publish()
    assert await bench.cache.fetch(REPO, bench.access, "main", depth=2) == newer
    assert await bench.cache.fetch(REPO, bench.access, "main", depth=50) == newer
    assert len(git(mirror, "rev-list", newer).split()) == 9
    assert not any(TOKEN in p.read_text("latin-1") for p in mirror.rglob("*") if p.is_file())


async def test_what_was_fetched_deeper_is_not_cut_off_by_a_later_fetch_of_this_or_another_branch(bench: Bench) -> None:
    bench.commit({"a": "0"}, "parted")
    parted = git(bench.dev, "rev-parse", "HEAD").strip()
    git(bench.dev, "branch", "old")
    for n in range(1, 6):
        bench.commit({"a": f"{n}"}, f"c{n}")
    git(bench.dev, "branch", "young")
    bench.publish("HEAD:refs/heads/main", "old", "young")
    main = await bench.cache.fetch(REPO, bench.access, "main", depth=2)
    old = await bench.cache.fetch(REPO, bench.access, "old", depth=2)
    assert await bench.cache.compare(REPO, main, old, max_bytes=1) is None
    await bench.cache.fetch(REPO, bench.access, "main", depth=100)
    for branch in ("main", "young"):
        await bench.cache.fetch(REPO, bench.access, branch, depth=2)
        found = await bench.cache.compare(REPO, main, old, max_bytes=1)
        assert found is not None and found.parted == parted


@pytest.mark.acceptance("E13")
async def test_fetch_by_sha_and_of_unusual_names(bench: Bench) -> None:
    old = bench.commit({"a": "1"})
    new = bench.commit({"a": "2"})
    bench.publish("HEAD:refs/heads/main", "HEAD:refs/heads/naïve/ブランチ+#1,x", "HEAD:refs/tags/v1")
    assert await bench.cache.fetch(REPO, bench.access, old, depth=1) == old
    assert await bench.cache.fetch(REPO, bench.access, "naïve/ブランチ+#1,x") == new
    assert await bench.cache.fetch(REPO, bench.access, "refs/tags/v1") == new
    assert await bench.cache.fetch(REPO, bench.access, "HEAD") == new
    seen = len(bench.remote.requests)
    assert await bench.cache.fetch(REPO, bench.access, old) == old
    assert len(bench.remote.requests) == seen


async def test_a_deleted_branch_does_not_stand_in_the_way_of_one_below_its_name(bench: Bench) -> None:
    bench.commit({"a": "1"})
    bench.publish("HEAD:refs/heads/x")
    await bench.cache.fetch(REPO, bench.access, "x")
    bench.publish(":refs/heads/x")
    bench.publish("HEAD:refs/heads/x/y")
    assert await bench.cache.fetch(REPO, bench.access, "x/y") == bench.remote_heads()["x/y"]


@pytest.mark.acceptance("E13")
async def test_what_is_not_there_is_said_in_one_sentence(bench: Bench) -> None:
    with pytest.raises(RepositoryEmpty, match="empty"):
        await bench.cache.fetch(REPO, bench.access, "main")
    bench.commit({"a": "1"})
    bench.publish()
    with pytest.raises(RefMissing, match="`gone` is not in the repository"):
        await bench.cache.fetch(REPO, bench.access, "gone")
    with pytest.raises(RefMissing):
        await bench.cache.fetch(REPO, bench.access, "1" * 40)
    with pytest.raises(BadName):
        await bench.cache.fetch(REPO, bench.access, "--upload-pack=touch x")
    with pytest.raises(NotFound):
        await bench.cache.fetch(REPO, RemoteAccess(bench.remote.url("nowhere"), Secret(TOKEN)), "main")
    with pytest.raises(Unrecognised, match="401"):
        await bench.cache.fetch(REPO, RemoteAccess(bench.remote.url("calc"), Secret("ghs_old")), "main")


@pytest.mark.acceptance("E13")
async def test_sha256_repositories_are_refused_clearly(bench: Bench) -> None:
    path = bench.remote.create("new", "--object-format=sha256")
    tree = git(path, "mktree")
    git(path, "update-ref", "refs/heads/main", git(path, "commit-tree", tree, "-m", "x"))
    with pytest.raises(RepositoryUnsupported, match="SHA-256"):
        await bench.cache.fetch(REPO, RemoteAccess(bench.remote.url("new"), Secret(TOKEN)), "main")


@pytest.mark.acceptance("E13")
async def test_a_repository_over_the_limit_is_refused_and_leaves_nothing(bench: Bench) -> None:
    (bench.dev / "noise").write_bytes(os.urandom(1 << 20))
    bench.commit({})
    bench.publish()
    small = RepositoryCache(bench.root / "small", max_bytes=200_000)
    with pytest.raises(RepositoryUnsupported, match="too large"):
        await small.fetch(REPO, bench.access, "main")
    assert sum(p.stat().st_size for p in (bench.root / "small").rglob("*") if p.is_file()) < 10_000


async def test_two_sessions_fetch_one_repository_in_order(bench: Bench) -> None:
    sha = bench.commit({"a": "1"})
    bench.publish()
    found = await asyncio.gather(*(bench.cache.fetch(REPO, bench.access, "main") for _ in range(4)))
    assert found == [sha] * 4


def _truncate_packs(mirror: Path) -> None:
    for pack in (mirror / "objects" / "pack").glob("*.pack"):
        pack.chmod(0o600)
        pack.write_bytes(pack.read_bytes()[:40])
    for loose in (mirror / "objects").glob("??/*"):
        loose.chmod(0o600)
        loose.write_bytes(b"")


@pytest.mark.parametrize("harm", ["head", "lock", "packs"])
async def test_a_broken_mirror_is_made_anew(bench: Bench, base: str, harm: str) -> None:
    mirror = bench.cache._root / f"{REPO}.git"
    newer = bench.commit({"b": "1"})
    bench.publish()
    if harm == "head":
        (mirror / "HEAD").unlink()
    elif harm == "lock":
        (mirror / "shallow.lock").write_text("")
    else:
        _truncate_packs(mirror)
        with pytest.raises(MirrorLost):
            await bench.cache.pack(REPO, base, bench.root / "x.pack")
        assert not (bench.root / "x.pack").exists()
    assert await bench.cache.fetch(REPO, bench.access, "main") == newer
    assert contents(await bench.box(newer), newer) == contents(bench.dev, newer)
    assert left_behind(bench) == []


async def test_many_small_fetches_are_packed_together(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.git.cache.MAX_PACKS", 2)
    for n in range(5):
        bench.commit({f"{n}-{k}": f"{n}{k}" for k in range(2)})
        bench.publish()
        sha = await bench.cache.fetch(REPO, bench.access, "main")
    assert len(list((bench.cache._root / f"{REPO}.git").glob("objects/pack/*.pack"))) <= 3
    assert contents(await bench.box(sha), sha) == contents(bench.dev, sha)


async def test_remove_and_sweep_leave_nothing(bench: Bench, base: str) -> None:
    (bench.cache._root / "quarantine-7-dead").mkdir()
    await bench.cache.sweep()
    await bench.cache.remove(REPO)
    await bench.cache.remove(REPO)
    assert list(bench.cache._root.iterdir()) == []
    with pytest.raises(MirrorLost):
        async with bench.cache.quarantine(REPO):
            pass


async def test_files_and_commits_are_read_from_the_mirror(
    bench: Bench, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    assert await bench.cache.file(REPO, base, "docs/a.md") == b"# A\n"
    assert await bench.cache.file(REPO, base, "docs") is None
    assert await bench.cache.file(REPO, base, "docs/none.md") is None
    assert await bench.cache.file(REPO, base, "docs/a.md", max_bytes=1) is None
    facts = await bench.cache.describe(REPO, base)
    assert (facts.subject, facts.author, facts.parents) == ("first", "dev", ())
    with pytest.raises(MirrorLost):
        await bench.cache.file(REPO, "1" * 40, "calc.py")
