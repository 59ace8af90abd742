"""Work out: what an honest bundle brings, and the commit that becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.git.admission import parse_header
from bot.git.commits import Author
from bot.git.quarantine import Quarantine
from bot.git.run import GitResult, run_git
from bot.proposal import push_policy
from tests.host_git.bench import (
    BOT,
    REPO,
    Bench,
)
from tests.world.git_remote import git


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
    assert push_policy.check(list(found.values()), existing=await quarantine.paths(tree)).may_push

    read = {c.path: data async for c, data in quarantine.blobs(list(found.values()))}
    assert read["bin.dat"] == bytes(range(256)) and "docs/a.md" not in read
    assert await quarantine.blob(found["bin.dat"].sha, max_bytes=100) is None


async def test_a_patch_applies_and_is_bounded(bench: Bench, base: str, box: Path, quarantine: Quarantine) -> None:
    (box / "calc.py").write_text("# changed\n" * 50)
    (box / "b").write_bytes(b"\0\1\2")
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    patch = await quarantine.patch(base, tree, 1 << 20)
    git(bench.dev, "apply", "--index", stdin=patch.content)
    assert git(bench.dev, "write-tree") == tree
    cut = await quarantine.patch(base, tree, 200)
    assert patch.content.startswith(cut.content) and cut.content.endswith(b"\n") and len(cut.content) <= 200
    assert cut.cut and not patch.cut


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
    assert len(started) <= 4  # what differs is counted first
    assert found["link8"] == "aa" and found["link299"] == "a" * (1 + 299 % 7)
    assert found["too-long"] == "b/" * 2047


@pytest.mark.acceptance("E01")
async def test_a_turn_without_changes_lists_none(bench: Bench, base: str, box: Path, quarantine: Quarantine) -> None:
    tree = await quarantine.admit(bench.snapshot(box, base), base=base)
    assert await quarantine.changes(base, tree) == []
    assert (await quarantine.patch(base, tree, 100)).content == b""


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
    assert (result.sha, result.arrived_before) == (commit, False)
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
