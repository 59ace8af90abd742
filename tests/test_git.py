"""Repositories in and out: real git over real smart HTTP, hostile bundles, and pushes whose answers are lost."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.errors import BotError, GitHubRefused, GitHubUnavailable, NotFound
from bot.git.access import RemoteAccess
from bot.git.bundle import parse_header
from bot.git.cache import RepositoryCache
from bot.git.commits import Author
from bot.git.errors import (
    BadName,
    BundleRefused,
    GitFailed,
    GitTimedOut,
    MirrorLost,
    PushRaced,
    PushRefused,
    RefMissing,
    Refusal,
    RepositoryEmpty,
    RepositoryUnsupported,
)
from bot.git.measure import ImportLimits
from bot.git.quarantine import Quarantine
from bot.git.run import GitResult, Io, run_git
from bot.models import RepoId
from bot.publish import policy
from bot.settings import Secret
from tests.git_remote import ENV, GitRemote, git, git_bytes

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


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    (tmp_path / "remotes").mkdir()
    async with GitRemote.running(tmp_path / "remotes", TOKEN) as remote:
        remote.create("calc")
        dev = tmp_path / "dev"
        git(tmp_path, "init", "-q", "-b", "main", str(dev))
        yield Bench(remote, RepositoryCache(tmp_path / "cache"), tmp_path, dev)


@pytest.fixture
async def base(bench: Bench) -> str:
    sha = bench.commit({"calc.py": "def add(a, b):\n    return a - b\n", "docs/a.md": "# A\n"}, "first")
    bench.publish()
    return await bench.cache.fetch(REPO, bench.access, "main") if sha else sha


@pytest.fixture
async def box(bench: Bench, base: str) -> Path:
    return await bench.box(base)


@pytest.fixture
async def quarantine(bench: Bench, base: str) -> AsyncIterator[Quarantine]:
    async with bench.cache.quarantine(REPO) as opened:
        yield opened


def contents(repo: Path, sha: str) -> dict[str, bytes]:
    names = git(repo, "ls-tree", "-r", "-z", "--name-only", sha).rstrip("\0").split("\0")
    return {name: git_bytes(repo, "cat-file", "blob", f"{sha}:{name}") for name in names}


def left_behind(bench: Bench) -> list[str]:
    found = [str(p) for p in bench.cache._root.rglob("*") if p.name.startswith(("tmp_", "quarantine-", "trash-"))]
    git(bench.cache._root / f"{REPO}.git", "fsck", "--strict")
    return found


# ---- in: fetch, pack, unpack


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
    with pytest.raises(GitHubRefused, match="401"):
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


# ---- out: what an honest bundle brings


@pytest.mark.acceptance("E07")
async def test_an_honest_bundle_is_admitted_and_its_changes_are_listed(
    bench: Bench, base: str, box: Path, quarantine: Quarantine
) -> None:
    (box / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (box / "docs" / "a.md").rename(box / "docs" / "ü b.md")
    (box / "bin.dat").write_bytes(bytes(range(256)))
    (box / "run.sh").write_text("#!/bin/sh\r\n")
    (box / "run.sh").chmod(0o755)
    (box / "link").symlink_to("docs/ü b.md")
    bundle = bench.snapshot(box, base)

    tree = await quarantine.admit(bundle, base=base)
    assert tree == git(box, "rev-parse", "refs/forgehand/work^{tree}")
    found = {c.path: c for c in await quarantine.changes(base, tree)}
    expected = {"bin.dat": "A", "calc.py": "M", "docs/a.md": "D", "docs/ü b.md": "A", "link": "A", "run.sh": "A"}
    assert {path: change.status for path, change in found.items()} == expected
    assert (found["calc.py"].added, found["calc.py"].removed, found["calc.py"].binary) == (1, 1, False)
    assert (found["bin.dat"].size, found["bin.dat"].binary) == (256, True)
    assert (found["run.sh"].new_mode, found["link"].new_mode, found["link"].target) == (
        *("100755", "120000", "docs/ü b.md"),
    )
    assert policy.check(list(found.values()), existing=await quarantine.paths(tree)).may_push

    read = {c.path: data async for c, data in quarantine.blobs(list(found.values()))}
    assert read["bin.dat"] == bytes(range(256)) and "docs/a.md" not in read
    assert await quarantine.blob(found["bin.dat"].sha, max_bytes=100) is None


async def test_a_patch_applies_and_is_bounded(bench: Bench, base: str, box: Path, quarantine: Quarantine) -> None:
    (box / "calc.py").write_text("# changed\n" * 50)
    (box / "b").write_bytes(b"\0\1\2")
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    patch = await quarantine.patch(base, tree, 1 << 20)
    git(bench.dev, "apply", "--index", stdin=patch)
    assert git(bench.dev, "write-tree") == tree
    cut = await quarantine.patch(base, tree, 200)
    assert patch.startswith(cut) and cut.endswith(b"\n") and len(cut) <= 200


@pytest.mark.acceptance("E06")
async def test_many_links_are_read_by_one_command(
    bench: Bench, base: str, box: Path, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each would be minutes of the host's time for a tree that is nothing to make."""
    for number in range(300):
        (box / f"link{number}").symlink_to("a" * (1 + number % 7))
    (box / "too-long").symlink_to("b/" * 2047)
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    started: list[str] = []

    async def counted(argv: Sequence[str], git_dir: Path | None = None, **more: Any) -> GitResult:
        started.append(argv[0])
        return await run_git(argv, git_dir, **more)

    monkeypatch.setattr("bot.git.inspection.run_git", counted)
    found = {change.path: change.target for change in await quarantine.changes(base, tree)}
    assert len(started) <= 3
    assert found["link8"] == "aa" and found["link299"] == "a" * (1 + 299 % 7)
    assert found["too-long"] == "b/" * 2047


@pytest.mark.acceptance("E01")
async def test_a_turn_without_changes_lists_none(bench: Bench, base: str, box: Path, quarantine: Quarantine) -> None:
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    assert await quarantine.changes(base, tree) == []
    assert await quarantine.patch(base, tree, 100) == b""


async def test_a_second_turn_builds_on_what_was_pushed(bench: Bench, base: str, box: Path) -> None:
    (box / "one").write_text("1")
    async with bench.cache.quarantine(REPO) as first:
        tree = await first.admit(bench.snapshot(box, base), base=base)
        pushed = await first.commit(tree, [base], "one", BOT, 1_700_000_100)
        await first.push(bench.access, pushed, "forgehand/1-abc", expect=None)
    assert await bench.cache.fetch(REPO, bench.access, "forgehand/1-abc") == pushed
    box2 = await bench.box(pushed, name="box2")
    (box2 / "two").write_text("2")
    async with bench.cache.quarantine(REPO) as second:
        tree = await second.admit(bench.snapshot(box2, pushed), base=pushed)
        commit = await second.commit(tree, [pushed], "two", BOT, 1_700_000_200)
        result = await second.push(bench.access, commit, "forgehand/1-abc", expect=pushed)
    assert (result.sha, result.adopted) == (commit, False)
    assert bench.remote_heads()["forgehand/1-abc"] == commit


@pytest.mark.acceptance("E12")
async def test_commits_are_made_alike_each_time(bench: Bench, base: str) -> None:
    tree = git(bench.dev, "rev-parse", f"{base}^{{tree}}")
    made = []
    for _ in range(2):
        async with bench.cache.quarantine(REPO) as q:
            made.append(await q.commit(tree, [base], "title\n\nbody", BOT, 1_700_000_000))
            shown = git(q._dir, "cat-file", "commit", made[-1])
    assert made[0] == made[1]
    assert shown.splitlines()[2:4] == [
        f"{who} {BOT.name} <{BOT.email}> 1700000000 +0000" for who in ("author", "committer")
    ]


@pytest.mark.acceptance("E12")
@pytest.mark.parametrize(
    ("message", "when", "ends"),
    [
        ("x" * 1_000_000, 0, "x"),
        ("a\0b\x1b[31mc\udcff\r\nd\n\n\n", 2**40, "ab[31mc?\nd"),
        ("", -5, "(no message)"),
        ("gpgsig forged\ntree 0000", 99, "gpgsig forged\ntree 0000"),
    ],
)
async def test_odd_messages_and_dates_are_normalised(
    base: str, quarantine: Quarantine, message: str, when: int, ends: str
) -> None:
    tree = git(quarantine._dir, "rev-parse", f"{base}^{{tree}}")
    commit = await quarantine.commit(tree, [base], message, Author("a<b>\n\0c", ""), when)
    raw = git(quarantine._dir, "cat-file", "commit", commit)
    assert raw.endswith(ends) and len(raw) < 70_000
    assert "author abc <unknown> " in raw
    git(quarantine._dir, "fsck", "--strict", "--no-dangling")


async def test_kept_work_can_be_taken_up_by_a_clone(bench: Bench, base: str, box: Path, quarantine: Quarantine) -> None:
    (box / "new").write_text("kept")
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    commit = await quarantine.commit(tree, [base], "work", BOT, 1)
    target = bench.root / "kept.bundle"
    await quarantine.keep(commit, target)
    git(bench.dev, "fetch", "-q", str(target), "refs/forgehand/work:refs/heads/taken")
    assert git(bench.dev, "rev-parse", "taken") == commit
    assert target.stat().st_mode & 0o077 == 0
    assert parse_header(target.read_bytes()).prerequisites == {base}


# ---- out: what a hostile bundle does not


def _trees(box: Path, entries: bytes) -> str:
    return git(box, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=entries)


def _commit(box: Path, tree: str, *parents: str) -> str:
    flags = [part for parent in parents for part in ("-p", parent)]
    return git(box, "commit-tree", tree, *flags, "-m", "x")


@pytest.mark.acceptance("E12")
@pytest.mark.parametrize(
    ("who", "message"),
    [
        (b"Linus Torvalds <torvalds@example.org> 0 +0000", b"x"),
        (b"alice <alice@example.org> 4294967295 -1200", b"\xff\xfe not text"),
        (b"alice <alice@example.org> 1 +0000", b"m" * 1_000_000),
        (b"alice <alice@example.org> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n garbage", b"signed"),
    ],
)
async def test_whoever_the_agent_claims_to_be_the_commit_is_ours(
    bench: Bench, base: str, box: Path, quarantine: Quarantine, who: bytes, message: bytes
) -> None:
    """Only the tree comes home: of the commit around it nothing is left."""
    (box / "new").write_text("x")
    git(box, "add", "-A")
    tree = git(box, "write-tree")
    author, _, rest = who.partition(b"\n")
    head = [b"tree " + tree.encode(), b"parent " + base.encode(), b"author " + author, b"committer " + author]
    raw = b"\n".join([*head, *([rest] if rest else []), b"", message])
    forged = git(box, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw)
    assert await quarantine.admit(bench.bundle(box, forged, base), base=base) == tree
    made = await quarantine.commit(tree, [base], "ours", BOT, 1_700_000_000)
    shown = git_bytes(quarantine._dir, "cat-file", "commit", made)
    assert b"forgehand[bot]" in shown and shown.endswith(b"\n\nours\n")
    assert not any(word in shown for word in (b"alice", b"Torvalds", b"gpgsig"))


@pytest.mark.acceptance("E07")
async def test_a_pointer_without_its_large_file_comes_in_as_the_text_that_it_is(
    bench: Bench, base: str, box: Path, quarantine: Quarantine
) -> None:
    """Nothing is fetched for it, whatever .lfsconfig and the attributes say."""
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    (box / "model.bin").write_text(pointer)
    (box / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (box / ".lfsconfig").write_text(f"[lfs]\n\turl = {bench.remote.url('elsewhere')}\n")
    asked = len(bench.remote.requests)
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    found = {change.path: change for change in await quarantine.changes(base, tree)}
    assert await quarantine.blob(found["model.bin"].sha, max_bytes=1000) == pointer.encode()
    assert policy.check(list(found.values())).may_push
    assert len(bench.remote.requests) == asked


@pytest.mark.acceptance("E11")
async def test_a_damaged_bundle_never_comes_in(bench: Bench, base: str, box: Path) -> None:
    (box / "noise").write_bytes(os.urandom(3000))
    (box / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    good = bench.snapshot(box, base).read_bytes()
    tree = git(box, "rev-parse", "refs/forgehand/work^{tree}")
    pack_at = good.index(b"PACK")
    cuts = [good[:n] for n in (0, 1, 15, 16, 40, 70, pack_at, pack_at + 8, pack_at + 12, *range(200, len(good), 1024))]
    cuts += [good[:-1], good[:-20], good + b"x"]
    flips = [good[:n] + bytes([good[n] ^ 16]) + good[n + 1 :] for n in range(0, len(good), len(good) // 40)]
    target = bench.root / "damaged.bundle"
    async with bench.cache.quarantine(REPO) as q:
        for data in [*cuts, *flips]:
            target.write_bytes(data)
            try:
                admitted = await q.admit(target, base=base)
            except BundleRefused:
                continue
            assert admitted == tree and data in flips, "only a letter of the base's subject may differ"
    assert left_behind(bench) == []


@pytest.mark.acceptance("E10")
@pytest.mark.acceptance("E11")
async def test_what_is_no_bundle_of_version_2_is_refused(bench: Bench, base: str, box: Path) -> None:
    (box / "new").write_text("x")
    good = bench.snapshot(box, base).read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("refs/forgehand/work", b"x")
    v3 = good.replace(b"# v2 git bundle\n", b"# v3 git bundle\n@object-format=sha1\n@filter=blob:none\n", 1)
    cases = {
        archive.getvalue(): "did not come as a git bundle",
        v3: "version 3",
        b"": "empty",
        b"# v2 git bundle\n\nPACK": "malformed",
        good.replace(base.encode(), b"0" * 40, 1): "does not build on the commit",
        good.replace(f"-{base}".encode(), f"-{base}\n-{'1' * 40} x\n-{base}".encode(), 1): "does not have",
        good.replace(b"\n\nPACK", b"\n" + b"2" * 40 + b" refs/forgehand/work\n\nPACK", 1): "2 refs",
        good.replace(b"refs/forgehand/work", b"-x", 1): "not asked for",
        good.replace(b"refs/forgehand/work", b"HEAD", 1): "not asked for",
        good.replace(b"refs/forgehand/work", b"refs/heads/../x", 1): "not asked for",
        good.replace(b"\n\nPACK", b"\ngarbage\n\nPACK", 1): "malformed",
    }
    async with bench.cache.quarantine(REPO) as q:
        for data, words in cases.items():
            (bench.root / "bad.bundle").write_bytes(data)
            with pytest.raises(BundleRefused, match=words):
                await q.admit(bench.root / "bad.bundle", base=base)


@pytest.mark.acceptance("C13")
async def test_what_is_no_file_is_not_read(bench: Bench, base: str, box: Path, quarantine: Quarantine) -> None:
    good = bench.snapshot(box, base)
    (bench.root / "link").symlink_to(good)
    os.mkfifo(bench.root / "fifo")
    with (bench.root / "sparse").open("wb") as sparse:
        sparse.truncate(10 << 30)
    for name in ("link", "fifo", "sparse", "absent", "."):
        with pytest.raises(BundleRefused):
            await quarantine.admit(bench.root / name, base=base)


@pytest.mark.acceptance("E10")
@pytest.mark.parametrize("shape", ["orphan", "unrelated", "two", "rewritten", "tag"])
async def test_only_one_commit_on_the_base_is_taken(
    bench: Bench, base: str, box: Path, quarantine: Quarantine, shape: str
) -> None:
    tree = git(box, "rev-parse", "HEAD^{tree}")
    root = _commit(box, tree)
    commit = {
        "orphan": lambda: root,
        "unrelated": lambda: _commit(box, tree, base, root),
        "two": lambda: _commit(box, tree, _commit(box, tree, base)),
        "rewritten": lambda: _commit(box, tree, _commit(box, tree, root)),
        "tag": lambda: git(
            box, "mktag", stdin=f"object {base}\ntype commit\ntag x\ntagger a <a> 1 +0000\n\nm\n".encode()
        ),
    }[shape]()
    git(box, "update-ref", "refs/forgehand/work", commit)
    bundle = bench.root / "shape.bundle"
    git(box, "bundle", "create", "-q", str(bundle), "refs/forgehand/work", f"^{base}")
    header, _, pack = bundle.read_bytes().partition(b"\n\n")
    if f"-{base}".encode() not in header:
        header = header.replace(b"bundle\n", f"bundle\n-{base} x\n".encode(), 1)
    bundle.write_bytes(header + b"\n\n" + pack)
    with pytest.raises(BundleRefused):
        await quarantine.admit(bundle, base=base)


@pytest.mark.acceptance("E08")
@pytest.mark.parametrize("name", [b".git", b".GIT", b"git~1", b"..", b".git ", "\u200c.git".encode(), b"a/b"])
async def test_names_that_git_itself_refuses_do_not_come_in(
    bench: Bench, base: str, box: Path, quarantine: Quarantine, name: bytes
) -> None:
    blob = git(box, "hash-object", "-w", "--stdin", stdin=b"x")
    tree = _trees(box, b"100644 " + name + b"\0" + bytes.fromhex(blob))
    with pytest.raises(BundleRefused, match="git does not accept the work"):
        await quarantine.admit(bench.bundle(box, _commit(box, tree, base), base), base=base)


@pytest.mark.acceptance("E07")
@pytest.mark.parametrize("entry", [b"100664 a", b"100777 a", b"120000 .gitmodules"])
async def test_odd_modes_and_module_tricks_do_not_come_in(
    bench: Bench, base: str, box: Path, quarantine: Quarantine, entry: bytes
) -> None:
    blob = git(box, "hash-object", "-w", "--stdin", stdin=b"x")
    tree = _trees(box, entry + b"\0" + bytes.fromhex(blob))
    with pytest.raises(BundleRefused):
        await quarantine.admit(bench.bundle(box, _commit(box, tree, base), base), base=base)


@pytest.mark.acceptance("E08")
@pytest.mark.acceptance("E05")
async def test_hostile_names_and_links_are_held_by_name(
    bench: Bench, base: str, box: Path, quarantine: Quarantine
) -> None:
    blob = git(box, "hash-object", "-w", "--stdin", stdin=b"x")
    links = {"abs": "/etc/passwd", "up": "../x", "dot": ".git/config", "loop": "loop", "down": "docs/../../x"}
    rows = [b"120000 %s\t%s" % (_blob(box, t), p.encode()) for p, t in links.items()]
    odd = [b"n\nl", b"t\tb", b"b\\s", b"c:d", b"dot.", b"blank ", "e\u0301".encode(), "\u00e9".encode(), b"\xff\xfe"]
    odd += [b".github/workflows/x.yml", b"CALC.py"]
    rows += [b"100644 %s\t%s" % (blob.encode(), p) for p in odd]
    rows += [b"160000 %s\tsub" % base.encode(), b"100644 %s\tcalc.py" % blob.encode(), b"100644 %s\tok" % blob.encode()]
    index = {"GIT_INDEX_FILE": str(bench.root / "index")}
    git(
        box,
        "update-index",
        "-z",
        "--add",
        "--index-info",
        stdin=b"\0".join([*rows, b""]).replace(b" \t", b"\t"),
        env=index,
    )
    tree = git(box, "write-tree", "--missing-ok", env=index)

    admitted = await quarantine.admit(bench.bundle(box, _commit(box, tree, base), base), base=base)
    found = policy.check(await quarantine.changes(base, admitted), existing=await quarantine.paths(admitted))
    expected = {*links, *(p.decode("utf-8", "surrogateescape") for p in odd), "sub"}
    assert {held.path for held in found.held} == expected


def _blob(box: Path, text: str) -> bytes:
    return git(box, "hash-object", "-w", "--stdin", stdin=text.encode()).encode()


# ---- out: too much


def _entry(kind: int, size: int) -> bytes:
    byte, rest = (kind << 4) | (size & 15), size >> 4
    header = b""
    while rest:
        header += bytes([byte | 0x80])
        byte, rest = rest & 0x7F, rest >> 7
    return header + bytes([byte])


def _varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def _forged(base: str, entries: list[bytes], count: int | None = None) -> bytes:
    pack = b"PACK\0\0\0\2" + (len(entries) if count is None else count).to_bytes(4, "big") + b"".join(entries)
    header = f"# v2 git bundle\n-{base} x\n{'3' * 40} refs/forgehand/work\n\n".encode()
    return header + pack + hashlib.sha1(pack).digest()


@pytest.mark.acceptance("E06")
async def test_bombs_are_defused_before_git_reads_them(
    bench: Bench, base: str, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ImportLimits(max_object_bytes=1 << 20, max_unpacked_bytes=2 << 20, max_objects=100)
    zeros = _entry(3, 5 << 20) + zlib.compress(bytes(5 << 20))
    liar = _entry(3, 10) + zlib.compress(bytes(5 << 20))
    short = _entry(3, 1000) + zlib.compress(b"x")
    ok = _entry(3, 1 << 20) + zlib.compress(bytes(1 << 20))
    delta = _varint(4) + _varint(1 << 30) + b"\x80"
    deltas = _entry(7, len(delta)) + b"\1" * 20 + zlib.compress(delta)
    endless = b"\xff" * 200_000
    cases = {
        _forged(base, [zeros]): "too large",
        _forged(base, [ok, ok, ok]): "too large",
        _forged(base, [deltas]): "too large",
        _forged(base, [liar]): "damaged",
        _forged(base, [short]): "damaged",
        _forged(base, [endless]): "damaged|too large",
        _forged(base, [ok], count=101): "101 git objects",
        _forged(base, [ok], count=2): "damaged",
        _forged(base, [ok, ok], count=1): "damaged",
        _forged(base, [_entry(0, 1) + zlib.compress(b"x")]): "something other",
    }
    for data, words in cases.items():
        (bench.root / "bomb.bundle").write_bytes(data)
        with pytest.raises(BundleRefused, match=words):
            await quarantine.admit(bench.root / "bomb.bundle", base=base, limits=limits)
    assert not list(quarantine._dir.rglob("*.pack"))
    with pytest.raises(BundleRefused, match="larger than 0 MiB"):
        await quarantine.admit(bench.root / "bomb.bundle", base=base, limits=ImportLimits(max_bundle_bytes=100))


@pytest.mark.acceptance("E06")
async def test_a_tree_that_is_endless_when_written_out_is_refused(bench: Bench, base: str, box: Path) -> None:
    entry = f"100644 blob {_blob(box, 'x').decode()}"
    for _ in range(9):
        tree = git(box, "mktree", stdin="".join(f"{entry}\tn{n}\n" for n in range(10)).encode())
        entry = f"040000 tree {tree}"
    bundle = bench.bundle(box, _commit(box, tree, base), base)
    async with bench.cache.quarantine(REPO) as q:
        with pytest.raises(BundleRefused, match="more than 2000 files"):
            await q.admit(bundle, base=base, limits=ImportLimits(max_paths=2000))
    assert left_behind(bench) == []


@pytest.mark.acceptance("E06")
async def test_too_many_changed_files_are_refused(bench: Bench, base: str, box: Path, quarantine: Quarantine) -> None:
    for n in range(30):
        (box / f"f{n}").write_text(str(n))
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    with pytest.raises(BundleRefused, match="more than 20 files"):
        await quarantine.changes(base, tree, max_files=20)


# ---- nothing of theirs runs here


@pytest.mark.acceptance("E09")
async def test_nothing_that_was_set_up_inside_runs_on_the_host(
    bench: Bench, base: str, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = bench.root / "canary"
    script = bench.root / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {canary}\ncat\n")
    script.chmod(0o755)
    home = bench.root / "home"
    home.mkdir()
    config = "\n".join(
        [
            f"[core]\n\tfsmonitor = {script}\n\thooksPath = {bench.root}\n\tsshCommand = {script}\n\tpager = {script}",
            f'[filter "x"]\n\tclean = {script}\n\tsmudge = {script}\n\trequired = true',
            f'[diff "x"]\n\ttextconv = {script}\n\tcommand = {script}\n[diff]\n\texternal = {script}',
            f'[credential]\n\thelper = {script}\n[url "{bench.root}/elsewhere"]\n\tinsteadOf = http://',
            f"[gpg]\n\tprogram = {script}\n[commit]\n\tgpgSign = true\n[uploadpack]\n\tpackObjectsHook = {script}",
        ]
    )
    (home / ".gitconfig").write_text(config)
    for name in (
        "HOME",
        "GIT_CONFIG_GLOBAL",
        "GIT_EXTERNAL_DIFF",
        "GIT_ASKPASS",
        "GIT_SSH_COMMAND",
        "GIT_PROXY_COMMAND",
    ):
        monkeypatch.setenv(
            name, {"HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig")}.get(name, str(script))
        )
    (box / ".gitattributes").write_text("* filter=x diff=x\n")
    (box / ".gitconfig").write_text(config)
    for path in ("nested/HEAD", "nested/config", "nested/hooks/pre-push", "nested/objects/x", "nested/refs/x"):
        (box / path).parent.mkdir(parents=True, exist_ok=True)
        (box / path).write_text("ref: refs/heads/main\n" if path.endswith("HEAD") else config)
    (box / ".git" / "objects" / "info" / "alternates").write_text("/nonexistent/objects\n")
    (box / "calc.py").write_text("changed\n")
    bundle = bench.snapshot(box, base)
    git(box, "replace", base, _commit(box, git(box, "mktree"), base))
    with (box / ".git" / "config").open("a") as inside:
        inside.write(config)

    sha = await bench.cache.fetch(REPO, bench.access, "HEAD")
    await bench.cache.pack(REPO, sha, bench.root / "again.pack")
    async with bench.cache.quarantine(REPO) as q:
        tree = await q.admit(bundle, base=base)
        await q.patch(base, tree, 1 << 20)
        assert {c.path for c in await q.changes(base, tree)} >= {"calc.py", ".gitattributes", "nested/HEAD"}
        commit = await q.commit(tree, [base], "x", BOT, 1)
        await q.push(bench.access, commit, "forgehand/9-x", expect=None)
        await q.keep(commit, bench.root / "kept.bundle")
        assert git(q._dir, "for-each-ref", "refs/replace") == ""
    assert not canary.exists()


# ---- push


@pytest.fixture
async def work(bench: Bench, base: str, quarantine: Quarantine) -> str:
    tree = git(bench.dev, "rev-parse", f"{bench.commit({'w': '1'})}^{{tree}}")
    git(quarantine._dir, "fetch", "-q", str(bench.dev), "HEAD")
    return await quarantine.commit(tree, [base], "work", BOT, 1_700_000_001)


async def test_a_push_makes_one_branch_and_moves_nothing_else(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    result = await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)
    assert (result.sha, result.adopted) == (work, False)
    assert bench.remote_heads() == {"main": base, "forgehand/1-a": work}
    assert await quarantine.remote_sha(bench.access, "forgehand/1-a") == work
    assert await quarantine.remote_sha(bench.access, "forgehand/1") is None
    again = await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)
    assert again.adopted
    assert sum(r.is_push for r in bench.remote.requests) == 1


@pytest.mark.acceptance("E10")
async def test_a_rescue_ref_is_no_branch_and_no_other_ref_can_be_pushed(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    ref = "refs/forgehand/rescue/abcd1234-1"
    assert not (await quarantine.push(bench.access, work, ref, expect=None)).adopted
    assert (await quarantine.push(bench.access, work, ref, expect=None)).adopted
    assert await quarantine.remote_sha(bench.access, ref) == work
    assert bench.remote_heads() == {"main": base}
    assert git(bench.remote.path("calc"), "rev-parse", ref) == work
    for bad in ("refs/heads/main", "refs/tags/v1", "refs/notes/x", "refs/forgehand/../heads/main", "refs/forgehand/"):
        with pytest.raises(BadName):
            await quarantine.push(bench.access, work, bad, expect=None)


async def test_a_push_from_a_shallow_mirror_of_a_moved_base_arrives(bench: Bench) -> None:
    for n in range(5):
        bench.commit({"a": str(n), f"n{n}": os.urandom(3000).hex()})
    bench.publish()
    base = await bench.cache.fetch(REPO, bench.access, "main", depth=1)
    bench.commit({"moved": "on"})
    bench.publish()
    async with bench.cache.quarantine(REPO) as q:
        tree = git(q._dir, "rev-parse", f"{base}^{{tree}}")
        commit = await q.commit(tree, [base], "work", BOT, 1)
        await q.push(bench.access, commit, "forgehand/2-b", expect=None)
    assert git(bench.remote.path("calc"), "rev-list", "--count", "forgehand/2-b") == "6"
    assert max(len(r.body) for r in bench.remote.requests if r.is_push) < 1500, "what the remote has is not sent again"
    git(bench.remote.path("calc"), "fsck", "--strict")


@pytest.mark.acceptance("C02")
@pytest.mark.parametrize("exists", [False, True])
async def test_a_push_whose_answer_was_lost_is_adopted(
    bench: Bench, base: str, quarantine: Quarantine, work: str, exists: bool
) -> None:
    if exists:
        bench.publish(f"{base}:refs/heads/forgehand/1-a")
    bench.remote.lose = 1
    result = await quarantine.push(bench.access, work, "forgehand/1-a", expect=base if exists else None)
    assert (result.sha, result.adopted) == (work, True)
    assert bench.remote_heads()["forgehand/1-a"] == work


@pytest.mark.acceptance("C02")
async def test_a_push_that_did_not_arrive_may_be_repeated(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    bench.remote.break_off = 1
    with pytest.raises(GitHubUnavailable):
        await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)
    assert bench.remote_heads() == {"main": base}
    assert not (await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)).adopted


@pytest.mark.acceptance("E02")
async def test_a_branch_of_somebody_else_is_left_alone(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    bench.publish(f"{base}:refs/heads/forgehand/1-a")
    with pytest.raises(PushRaced) as raced:
        await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)
    assert raced.value.actual == base
    with pytest.raises(PushRaced):
        await quarantine.push(bench.access, work, "forgehand/none", expect=base)
    for taken in ("forgehand/1-a/x", "Forgehand/1-A", "forgehand"):
        with pytest.raises(PushRefused) as refused:
            await quarantine.push(bench.access, work, taken, expect=None)
        assert refused.value.kind is Refusal.NAME
    assert bench.remote_heads() == {"main": base, "forgehand/1-a": base}


@pytest.mark.acceptance("E04")
@pytest.mark.parametrize("expected", [False, True])
async def test_a_branch_that_moves_during_the_push_wins(
    bench: Bench, base: str, quarantine: Quarantine, work: str, expected: bool
) -> None:
    if expected:
        bench.publish(f"{base}:refs/heads/b")
    other = bench.commit({"z": "other"})
    bench.remote.hold = asyncio.Event()
    push = asyncio.create_task(quarantine.push(bench.access, work, "b", expect=base if expected else None))
    await asyncio.wait_for(bench.remote.arrived.wait(), 10)
    bench.publish(f"+{other}:refs/heads/b")
    bench.remote.hold.set()
    with pytest.raises(PushRaced) as raced:
        await push
    assert raced.value.actual == other == bench.remote_heads()["b"]


@pytest.mark.acceptance("E04")
async def test_nothing_is_ever_pushed_by_force(bench: Bench, base: str, quarantine: Quarantine, work: str) -> None:
    other = await quarantine.commit(git(bench.dev, "rev-parse", "HEAD^{tree}"), [base], "other", BOT, 5)
    await quarantine.push(bench.access, work, "b", expect=None)
    with pytest.raises(PushRefused) as refused:
        await quarantine.push(bench.access, other, "b", expect=work)
    assert refused.value.kind is Refusal.NON_FAST_FORWARD
    assert bench.remote_heads()["b"] == work
    for bad in ("-x", "a..b", "x/../y", "refs heads", "@", "x.lock", "a\nb", ""):
        with pytest.raises(BadName):
            await quarantine.push(bench.access, work, bad, expect=None)


REFUSALS = {
    Refusal.PROTECTED: "error: GH006: Protected branch update failed for refs/heads/b.",
    Refusal.RULES: "error: GH013: Repository rule violations found for refs/heads/b.\n\n- Changes must be reviewed.",
    Refusal.SECRET: "error: GH013: Repository rule violations found\n- Push cannot contain secrets",
    Refusal.WORKFLOW: "refusing to allow a GitHub App to create or update workflow `.github/workflows/x.yml`",
    Refusal.FILE_SIZE: "error: GH001: Large files detected.\nerror: this exceeds GitHub's file size limit of 100.00 MB",
    Refusal.LFS: "error: GH008: Your push referenced at least 1 unknown Git LFS object:",
    Refusal.OTHER: "we do not like you\x1b[31m\x07",
}


@pytest.mark.acceptance("E03")
@pytest.mark.acceptance("E05")
@pytest.mark.parametrize("kind", list(REFUSALS))
async def test_refusals_are_told_apart_and_their_words_are_kept(
    bench: Bench, base: str, quarantine: Quarantine, work: str, kind: Refusal
) -> None:
    (bench.root / "words").write_text(REFUSALS[kind])
    bench.remote.hook("calc", f"cat '{bench.root}/words' >&2; exit 1")
    with pytest.raises(PushRefused) as refused:
        await quarantine.push(bench.access, work, "b", expect=None)
    kind_of_hook = Refusal.RULES if kind is Refusal.OTHER else kind
    assert refused.value.kind in (kind, kind_of_hook)
    assert REFUSALS[kind].splitlines()[-1].split("\x1b")[0] in refused.value.words
    assert "remote:" not in refused.value.words and refused.value.words.isprintable() is (
        "\n" not in refused.value.words
    )
    assert sum(r.is_push for r in bench.remote.requests) == 1
    assert "b" not in bench.remote_heads()


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (500, GitHubUnavailable),
        (503, GitHubUnavailable),
        (429, GitHubUnavailable),
        (301, GitHubRefused),
        (403, GitHubRefused),
    ],
)
async def test_http_failures_are_told_apart(
    bench: Bench, base: str, quarantine: Quarantine, work: str, status: int, expected: type[BotError]
) -> None:
    bench.remote.status = status
    with pytest.raises(expected):
        await quarantine.push(bench.access, work, "b", expect=None)
    with pytest.raises(expected):
        await bench.cache.fetch(REPO, bench.access, "main")
    assert (bench.cache._root / f"{REPO}.git").is_dir(), "the remote's fault is not the mirror's"


# ---- tokens


def _command_lines() -> Iterator[bytes]:
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield found.read_bytes()
        except OSError:
            continue


@pytest.mark.acceptance("E14")
async def test_the_token_is_in_no_argument_text_or_environment_of_ours(
    bench: Bench, base: str, quarantine: Quarantine, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_TRACE", "GIT_CURL_VERBOSE", "GIT_TRACE_CURL", "GIT_TRACE_PACKET", "GIT_TRACE_SETUP"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("GIT_TRACE_REDACT", "0")
    header = bench.access.header().rpartition(" ")[2]
    bench.remote.hold = asyncio.Event()
    push = asyncio.create_task(quarantine.push(bench.access, work, "b", expect=None))
    await asyncio.wait_for(bench.remote.arrived.wait(), 10)
    running = list(_command_lines())
    assert any(b"push" in line and b"--porcelain" in line for line in running)
    assert not any(TOKEN.encode() in line or header.encode() in line for line in running)
    assert TOKEN not in str(os.environ)
    bench.remote.hold.set()
    await push

    bench.remote.hook("calc", f"echo 'you sent {TOKEN} as {header}' >&2; exit 1")
    with pytest.raises(PushRefused) as refused:
        await quarantine.push(bench.access, work, "c", expect=None)
    told = f"{refused.value!r} {refused.value} {refused.value.words} {bench.access!r}"
    assert TOKEN not in told and header not in told and "[redacted]" in told


@pytest.mark.acceptance("E14")
async def test_failures_of_git_carry_no_token(bench: Bench) -> None:
    with pytest.raises(GitFailed) as failed:
        await run_git(["ls-remote", f"{bench.remote.url('calc')}/{TOKEN}"], access=bench.access)
    assert TOKEN not in f"{failed.value!r}{failed.value.words}"
    with pytest.raises(ValueError, match="must not carry credentials") as refused:
        RemoteAccess(f"https://x-access-token:{TOKEN}@github.com/o/r", Secret(TOKEN))
    assert TOKEN not in str(refused.value)
    for url in ("http://github.com/o/r", "ssh://github.com/o/r", "ext::sh -c x", "--upload-pack=x", "https://a/ b"):
        with pytest.raises(ValueError, match=r"address of a remote|reached by"):
            RemoteAccess(url, Secret(TOKEN))


# ---- running git


async def test_a_command_over_its_time_is_gone_with_its_helpers(bench: Bench, base: str) -> None:
    bench.remote.hold = asyncio.Event()
    mirror = bench.cache._root / f"{REPO}.git"
    argv = ["push", bench.remote.url("calc"), f"{base}:refs/heads/late"]
    with pytest.raises(GitTimedOut):
        await run_git(argv, mirror, access=bench.access, timeout=1.5)
    assert not any(b"refs/heads/late" in line for line in _command_lines())
    bench.remote.hold.set()


async def test_a_cancelled_command_is_gone(bench: Bench, base: str) -> None:
    bench.remote.hold = asyncio.Event()
    mirror = bench.cache._root / f"{REPO}.git"
    argv = ["push", bench.remote.url("calc"), f"{base}:refs/heads/dropped"]
    task = asyncio.create_task(run_git(argv, mirror, access=bench.access))
    await asyncio.wait_for(bench.remote.arrived.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(b"refs/heads/dropped" in line for line in _command_lines())
    bench.remote.hold.set()


@pytest.mark.acceptance("E14")
async def test_output_is_bounded_and_the_environment_is_bare(
    bench: Bench, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'alias.x=!env'")
    monkeypatch.setenv("CANARY", "1")
    mirror = bench.cache._root / f"{REPO}.git"
    cut = await run_git(["cat-file", "blob", f"{base}:calc.py"], mirror, io=Io(cap=5))
    assert (cut.stdout, cut.truncated) == (b"def a", True)
    shown = (await run_git(["-c", "alias.e=!env", "e"], mirror)).text
    assert "CANARY" not in shown and "'alias.x" not in shown and TOKEN not in shown
    hooks = await run_git(["config", "core.hooksPath"], mirror)
    assert hooks.text == "/dev/null"
    missing = {**ENV, "PATH": "/nonexistent"}
    monkeypatch.setenv("PATH", missing["PATH"])
    with pytest.raises(GitFailed, match="could not be started"):
        await run_git(["version"])
