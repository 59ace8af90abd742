"""The work that comes home from an environment, whatever was done to its repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sandbox.errors import NotThere, SandboxError, TooLarge
from tests.execution.bench import Bench, git


@pytest.mark.acceptance("E01")
async def test_no_change_is_no_bundle(bench: Bench) -> None:
    await bench.prepare()
    (bench.work / "debug.log").write_text("ignored")
    (bench.work / "node_modules").mkdir()
    (bench.work / "node_modules" / "x.js").write_text("ignored")
    collected = await bench.execution.collect(1, bench.origin.sha)
    assert (collected.changed, collected.bundle, collected.subjects) == (False, None, ())
    with pytest.raises(NotThere):
        await bench.execution.fetch_bundle(collected, bench.root / "b", 1 << 20)


async def test_changed_new_and_deleted_files_come_home(bench: Bench, tmp_path: Path) -> None:
    await bench.prepare()
    (bench.work / "code.py").write_text("answer = 42\n")
    (bench.work / "new file.txt").write_text("new\n")
    (bench.work / "docs" / "page.md").unlink()
    collected = await bench.execution.collect(1, bench.origin.sha)
    assert collected.changed
    await bench.execution.fetch_bundle(collected, tmp_path / "b", 1 << 20)
    assert (tmp_path / "b").stat().st_size == collected.size
    assert bench.origin.tree_of(tmp_path / "b") == {
        ".gitignore": "*.log\nnode_modules/",
        "code.py": "answer = 42",
        "new file.txt": "new",
    }
    heads = git(bench.origin.folder, "bundle", "list-heads", str(tmp_path / "b")).split()
    assert heads[1:] == ["refs/forgehand/work"]
    assert git(bench.origin.folder, "rev-parse", "refs/brought^{tree}") == collected.tree
    with pytest.raises(TooLarge):
        await bench.execution.fetch_bundle(collected, tmp_path / "c", 10)
    assert not (tmp_path / "c").exists()


async def test_the_agents_commits_are_worded_and_the_rest_comes_too(bench: Bench, tmp_path: Path) -> None:
    await bench.prepare()
    (bench.work / "code.py").write_text("answer = 42\n")
    git(bench.work, "commit", "--quiet", "-am", "Find the answer\n\nIt took long.")
    (bench.work / "kept.log").write_text("forced\n")
    git(bench.work, "add", "-f", "kept.log")
    git(bench.work, "commit", "--quiet", "-m", "Keep a log")
    (bench.work / "rest.txt").write_text("left over\n")
    collected = await bench.execution.collect(1, bench.origin.sha)
    assert collected.subjects == ("Keep a log", "Find the answer")
    await bench.execution.fetch_bundle(collected, tmp_path / "b", 1 << 20)
    tree = bench.origin.tree_of(tmp_path / "b")
    assert (tree["code.py"], tree["kept.log"], tree["rest.txt"]) == ("answer = 42", "forced", "left over")


@pytest.mark.acceptance("E01")
async def test_a_commit_that_is_taken_back_is_no_change(bench: Bench) -> None:
    await bench.prepare()
    (bench.work / "code.py").write_text("answer = 42\n")
    git(bench.work, "commit", "--quiet", "-am", "Try")
    git(bench.work, "revert", "--no-edit", "HEAD")
    assert (await bench.execution.collect(1, bench.origin.sha)).changed is False


@pytest.mark.parametrize(
    "damage",
    [
        ["checkout --quiet --orphan other", "commit --quiet -m Orphan"],
        ["checkout --quiet --detach HEAD~1", "stash list"],
        ["config core.worktree /", "config core.bare true"],
        ["config core.hooksPath /bin", "config core.fsmonitor /bin/false"],
    ],
)
async def test_the_work_tree_counts_whatever_the_history(bench: Bench, tmp_path: Path, damage: list[str]) -> None:
    await bench.prepare()
    for command in damage:
        git(bench.work, *command.split())
    (bench.work / "code.py").write_text("answer = 42\n")
    collected = await bench.execution.collect(1, bench.origin.sha)
    await bench.execution.fetch_bundle(collected, tmp_path / "b", 1 << 20)
    assert bench.origin.tree_of(tmp_path / "b")["code.py"] == "answer = 42"


@pytest.mark.parametrize(
    "ruin",
    ["rm -rf .git", "echo '[broken' > .git/config", "rm -rf .git && git init -q", "rm -rf .git && ln -s /nowhere .git"],
)
async def test_work_comes_home_without_its_git_folder(bench: Bench, tmp_path: Path, ruin: str) -> None:
    await bench.prepare()
    subprocess.run(ruin, shell=True, cwd=bench.work, check=True, capture_output=True)
    (bench.work / "code.py").write_text("answer = 42\n")
    collected = await bench.execution.collect(1, bench.origin.sha)
    await bench.execution.fetch_bundle(collected, tmp_path / "b", 1 << 20)
    assert bench.origin.tree_of(tmp_path / "b")["code.py"] == "answer = 42"
    assert not (bench.out / "turn-1" / "collecting").exists()


async def test_a_path_that_cannot_be_added_does_not_keep_the_others(bench: Bench, tmp_path: Path) -> None:
    await bench.prepare()
    git(bench.work, "init", "--quiet", "empty")
    (bench.work / "code.py").write_text("answer = 42\n")
    collected = await bench.execution.collect(1, bench.origin.sha)
    await bench.execution.fetch_bundle(collected, tmp_path / "b", 1 << 20)
    assert sorted(bench.origin.tree_of(tmp_path / "b")) == [".gitignore", "code.py", "docs/page.md"]


async def test_a_filter_that_hangs_is_left_out(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.execution.COLLECT_SECONDS", 4.0)
    await bench.prepare()
    git(bench.work, "config", "filter.slow.clean", "sleep 600")
    (bench.work / ".gitattributes").write_text("*.txt filter=slow\n")
    (bench.work / "a.txt").write_text("x")
    collected = await bench.execution.collect(1, bench.origin.sha)
    await bench.execution.fetch_bundle(collected, tmp_path / "b", 1 << 20)
    assert bench.origin.tree_of(tmp_path / "b")["a.txt"] == "x"


async def test_collecting_that_runs_out_of_time_says_so_and_can_be_repeated(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.prepare()
    (bench.work / "code.py").write_text("answer = 42\n")
    with monkeypatch.context() as patch:
        patch.setattr("sandbox.execution.COLLECT_SECONDS", 0.0)
        with pytest.raises(SandboxError, match="did not end in time"):
            await bench.execution.collect(1, bench.origin.sha)
    scratch = bench.out / "turn-1" / "collecting"
    scratch.mkdir()
    (scratch / ".git.index.lock").touch()  # what a collect leaves that was killed
    (bench.work / ".git" / "refs" / "forgehand").mkdir()
    (bench.work / ".git" / "refs" / "forgehand" / "work.lock").touch()
    assert (await bench.execution.collect(1, bench.origin.sha)).changed


async def test_a_pack_of_one_commit_is_enough(bench: Bench, tmp_path: Path) -> None:
    pack, shallow = bench.origin.pack(bench.root / "one.pack", depth=1)
    await bench.execution.prepare(pack, bench.origin.sha, shallow, "b")
    (bench.work / "code.py").chmod(0o755)
    (bench.work / "link").symlink_to("code.py")
    collected = await bench.execution.collect(1, bench.origin.sha)
    await bench.execution.fetch_bundle(collected, tmp_path / "b", 1 << 20)
    bench.origin.tree_of(tmp_path / "b")
    modes = git(bench.origin.folder, "ls-tree", "--format=%(objectmode) %(path)", "refs/brought").splitlines()
    assert "100755 code.py" in modes
    assert "120000 link" in modes
