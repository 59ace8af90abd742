"""Work out: what a hostile bundle does not bring in, use up or run."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from pathlib import Path

import pytest

from bot.git.admission import ImportLimits
from bot.git.errors import (
    BundleRefused,
)
from bot.git.quarantine import Quarantine
from bot.proposal import push_policy
from tests.host_git.bench import (
    BOT,
    REPO,
    Bench,
    left_behind,
    write_blob,
    write_commit,
    write_tree,
)
from tests.world.git_remote import git, git_bytes


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
    assert push_policy.check(list(found.values())).may_push
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
    root = write_commit(box, tree)
    commit = {
        "orphan": lambda: root,
        "unrelated": lambda: write_commit(box, tree, base, root),
        "two": lambda: write_commit(box, tree, write_commit(box, tree, base)),
        "rewritten": lambda: write_commit(box, tree, write_commit(box, tree, root)),
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
    tree = write_tree(box, b"100644 " + name + b"\0" + bytes.fromhex(blob))
    with pytest.raises(BundleRefused, match="git does not accept the work"):
        await quarantine.admit(bench.bundle(box, write_commit(box, tree, base), base), base=base)


@pytest.mark.acceptance("E07")
@pytest.mark.parametrize("entry", [b"100664 a", b"100777 a", b"120000 .gitmodules"])
async def test_odd_modes_and_module_tricks_do_not_come_in(
    bench: Bench, base: str, box: Path, quarantine: Quarantine, entry: bytes
) -> None:
    blob = git(box, "hash-object", "-w", "--stdin", stdin=b"x")
    tree = write_tree(box, entry + b"\0" + bytes.fromhex(blob))
    with pytest.raises(BundleRefused):
        await quarantine.admit(bench.bundle(box, write_commit(box, tree, base), base), base=base)


@pytest.mark.acceptance("E08")
@pytest.mark.acceptance("E05")
async def test_hostile_names_and_links_are_held_by_name(
    bench: Bench, base: str, box: Path, quarantine: Quarantine
) -> None:
    blob = git(box, "hash-object", "-w", "--stdin", stdin=b"x")
    links = {"abs": "/etc/passwd", "up": "../x", "dot": ".git/config", "loop": "loop", "down": "docs/../../x"}
    rows = [b"120000 %s\t%s" % (write_blob(box, t), p.encode()) for p, t in links.items()]
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

    admitted = await quarantine.admit(bench.bundle(box, write_commit(box, tree, base), base), base=base)
    found = push_policy.check(await quarantine.changes(base, admitted), existing=await quarantine.paths(admitted))
    expected = {*links, *(p.decode("utf-8", "surrogateescape") for p in odd), "sub"}
    assert {held.path for held in found.held} == expected


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
    large = _entry(3, 3 << 19) + zlib.compress(bytes(3 << 19))
    boast = _entry(3, 1 << 40) + zlib.compress(b"x")
    liar = _entry(3, 10) + zlib.compress(bytes(5 << 20))
    short = _entry(3, 1000) + zlib.compress(b"x")
    ok = _entry(3, 1 << 20) + zlib.compress(bytes(1 << 20))
    delta = _varint(4) + _varint(1 << 30) + b"\x80"
    deltas = _entry(7, len(delta)) + b"\1" * 20 + zlib.compress(delta)
    endless = b"\xff" * 200_000
    cases = {
        _forged(base, [zeros]): "too large",
        _forged(base, [large]): "too large",
        _forged(base, [boast]): "too large",
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
    entry = f"100644 blob {write_blob(box, 'x').decode()}"
    for _ in range(9):
        tree = git(box, "mktree", stdin="".join(f"{entry}\tn{n}\n" for n in range(10)).encode())
        entry = f"040000 tree {tree}"
    bundle = bench.bundle(box, write_commit(box, tree, base), base)
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
    git(box, "replace", base, write_commit(box, git(box, "mktree"), base))
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


@pytest.mark.review("security-6")
async def test_where_many_links_point_is_held_up_to_a_bound(
    bench: Bench, base: str, box: Path, quarantine: Quarantine
) -> None:
    """A small bundle may hold many long ones; what is not read counts as no path, and is held."""
    for number in range(9000):
        (box / f"link-{number}").symlink_to(f"{number:0>1000}")
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    found = {change.path: change.target or "" for change in await quarantine.changes(base, tree)}
    assert sum(map(len, found.values())) < (8 << 20) + 1024
    assert len(found) == 9000 and list(found.values()).count("\0") < 1000
