"""What an agent is given to work in: the checkout, its setup, its checks and its transcript."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.errors import SandboxError
from sandbox.execution import OUTPUT_CAP
from tests.execution.bench import Bench, git


async def test_the_checkout_has_a_branch_an_identity_and_no_remote(bench: Bench) -> None:
    await bench.prepare()
    assert git(bench.work, "symbolic-ref", "HEAD") == "refs/heads/forgehand/1-abcd1234"
    assert git(bench.work, "rev-parse", "HEAD") == bench.origin.sha
    assert git(bench.work, "log", "--format=%s") == "commit 2\ncommit 1"
    assert git(bench.work, "status", "--porcelain") == ""
    assert git(bench.work, "remote") == ""
    assert "agent@forgehand.invalid" in (bench.work / ".git" / "config").read_text()
    assert (bench.work / "code.py").read_text() == "answer = 2\n"


async def test_preparing_again_leaves_the_work_alone_and_a_new_turn_does_not(bench: Bench) -> None:
    await bench.prepare()
    (bench.work / "code.py").write_text("answer = 42\n")
    (bench.work / "debug.log").write_text("ignored, worth keeping")
    (bench.work / ".git" / "hooks").mkdir(exist_ok=True)
    (bench.work / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\n")
    await bench.prepare()
    assert (bench.work / "code.py").read_text() == "answer = 42\n"
    await bench.prepare(turn=2)
    assert (bench.work / "code.py").read_text() == "answer = 2\n"
    assert (bench.work / "debug.log").exists()
    assert not (bench.work / ".git" / "hooks").exists()


async def test_a_pack_without_the_commit_is_refused(bench: Bench) -> None:
    pack, shallow = bench.origin.pack(bench.root / "p.pack")
    with pytest.raises(SandboxError, match="does not hold"):
        await bench.execution.prepare(pack, "1" * 40, shallow, "b")


async def test_setup_stops_at_the_first_failure_and_checks_do_not(bench: Bench) -> None:
    await bench.prepare()
    done = await bench.execution.setup(["echo $SECRET > made", "false", "touch never"], 30, env={"SECRET": "s"})
    assert [one.exit_code for one in done] == [0, 1]
    assert (bench.work / "made").read_text() == "s\n"
    assert not (bench.work / "never").exists()
    checks = await bench.execution.check(
        ["echo out; echo err >&2; exit 3", "cat made", "head -c 3000000 /dev/zero | tr '\\0' x; echo end"], 30
    )
    assert [(one.exit_code, one.tail[:8]) for one in checks[:2]] == [(3, "out\nerr\n"), (0, "s\n")]
    assert len(checks[2].tail) == 8192
    assert checks[2].tail.endswith("end\n")


async def test_all_that_a_check_printed_comes_home_under_a_cap(bench: Bench) -> None:
    await bench.prepare()
    file = bench.root / "printed"
    found = await bench.execution.verify("echo begun; cat code.py; exit 3", 30, file)
    assert (found.exit_code, file.read_text()) == (3, "begun\nanswer = 2\n")
    await bench.execution.verify("echo first; yes | head -c 9000000; echo last", 30, file)
    printed = file.read_text()
    assert printed.startswith("first\n") and printed.endswith("last\n") and "bytes left out" in printed
    assert len(printed) < OUTPUT_CAP


async def test_what_a_check_changes_of_the_checkout_is_told_and_what_it_makes_beside_it_is_not(bench: Bench) -> None:
    await bench.prepare()
    file, commit = bench.root / "printed", git(bench.work, "rev-parse", "HEAD").strip()
    for command, changed in (
        ("touch code.py; echo made > made.txt", ()),
        ("echo 'answer = 3' > code.py; git commit -qam mine", ("code.py",)),
        ("git checkout -q HEAD~1 -- code.py", ()),
        ("rm -rf .git", ()),
    ):
        assert (await bench.execution.verify(command, 30, file, commit)).changed == changed, command


async def test_a_check_that_does_not_end_is_killed(bench: Bench) -> None:
    (done,) = await bench.execution.check(["echo begun; sleep 600"], 0.3)
    assert (done.timed_out, done.exit_code, done.tail) == (True, 137, "begun\n")


async def test_transcripts_go_and_come(bench: Bench) -> None:
    assert await bench.execution.transcript("s-1") is None
    data = os.urandom(3 << 20)
    await bench.execution.restore_transcript("s-1", data)
    assert await bench.again().transcript("s-1") == data
    folder = Path(bench.primitives.layout.home) / ".claude" / "projects"
    assert [path.name for path in folder.rglob("*.jsonl")] == ["s-1.jsonl"]
