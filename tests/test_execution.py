from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.agents.base import AgentRun
from sandbox.agents.claude import Claude
from sandbox.errors import NotThere, SandboxError, TooLarge
from sandbox.execution import OUTPUT_CAP, ExecutionEnvironment, RunState
from sandbox.plain import PlainEnvironment, PlainProvider, PlainSettings
from sandbox.primitives import EnvironmentSpec, Liveness

SCRIPTED = Path(__file__).parent / "data" / "agents" / "scripted_agent.py"
SPEC = EnvironmentSpec(labels={"session": "abcd1234"}, public_repository=False)


def git(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    settings = ["-c", "user.name=Tester", "-c", "user.email=t@example.test", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, text=True, env=env
    )
    return done.stdout.strip()


class Origin:
    """A repository on the host, three commits deep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        git(folder, "init", "--quiet")
        for number in range(3):
            (folder / "code.py").write_text(f"answer = {number}\n")
            (folder / ".gitignore").write_text("*.log\nnode_modules/\n")
            (folder / "docs").mkdir(exist_ok=True)
            (folder / "docs" / "page.md").write_text("words\n")
            git(folder, "add", ".")
            git(folder, "commit", "--quiet", "-m", f"commit {number}")
        self.sha = git(folder, "rev-parse", "HEAD")

    def pack(self, target: Path, *, depth: int = 2) -> tuple[Path, list[str]]:
        shallow = git(self.folder, "rev-parse", f"HEAD~{depth - 1}")
        clone = target.with_suffix(".clone")
        git(self.folder, "clone", "--quiet", "--bare", f"--depth={depth}", f"file://{self.folder}", str(clone))
        objects = git(clone, "rev-list", "--objects", "HEAD")
        with target.open("wb") as out:
            subprocess.run(
                ["git", "pack-objects", "--stdout", "-q"], cwd=clone, input=objects.encode(), stdout=out, check=True
            )
        return target, [shallow]

    def tree_of(self, bundle: Path) -> dict[str, str]:
        """Import the work as the host does; path -> content."""
        git(self.folder, "fetch", "--quiet", str(bundle), "+refs/forgehand/work:refs/brought")
        assert git(self.folder, "rev-parse", "refs/brought^") == self.sha
        paths = git(self.folder, "ls-tree", "-r", "--name-only", "refs/brought").splitlines()
        return {path: git(self.folder, "show", f"refs/brought:{path}") for path in paths}


class Bench:
    """An execution over plain processes with the scripted agent."""

    def __init__(self, root: Path, origin: Origin) -> None:
        self.settings = PlainSettings(root / "environments", root / "sockets", root / "agent", git="git")
        self.settings.sockets.mkdir()
        self.settings.agent_binary.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPTED} "$@"\n')
        self.settings.agent_binary.chmod(0o700)
        self.root, self.origin = root, origin

    async def open(self) -> None:
        created = await PlainProvider(self.settings).create("box", SPEC)
        assert isinstance(created, PlainEnvironment)
        self.primitives = created
        self.execution = self.again()
        self.work = Path(created.layout.work)
        self.out = Path(created.layout.out)

    def again(self) -> ExecutionEnvironment:
        """As another process of ours would find it."""
        return ExecutionEnvironment(PlainEnvironment(self.settings, "box"), Claude())

    async def prepare(self, turn: int = 1) -> None:
        target = self.root / f"{turn}.pack"
        pack, shallow = self.origin.pack(target) if not target.exists() else (target, [])
        await self.execution.prepare(pack, self.origin.sha, shallow, "forgehand/1-abcd1234", turn=turn)

    def run(self, *steps: list[Any], turn: int = 1, timeout: float = 60.0) -> AgentRun:
        return AgentRun(
            turn=turn,
            prompt=json.dumps(steps),
            model="claude-test",
            token="fht_secret",
            agent_session_id="s-1",
            resume=False,
            max_turns=None,
            budget_usd=1.0,
            timeout_seconds=timeout,
            instructions="Be brief.",
        )

    async def texts(self, turn: int = 1, offset: int = 0) -> list[str]:
        lines = [line async for chunk in self.execution.follow(turn, offset) for line in chunk.lines]
        return said(lines)

    def printed(self, words: str, turn: int = 1) -> bool:
        stream = self.out / f"turn-{turn}" / "stream.jsonl"
        return stream.exists() and words.encode() in stream.read_bytes()

    def starts(self) -> int:
        return (Path(self.primitives.layout.home) / "starts").read_text().count("started")


def said(lines: list[str]) -> list[str]:
    documents = [json.loads(line) for line in lines if line]
    return [one["message"]["content"][0]["text"] for one in documents if one["type"] == "assistant"]


async def until(condition: Callable[[], bool] | Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    return Origin(tmp_path_factory.mktemp("origin") / "calc")


@pytest.fixture
async def bench(tmp_path: Path, origin: Origin) -> AsyncIterator[Bench]:
    found = Bench(tmp_path, origin)
    await found.open()
    yield found
    await found.execution.close()
    assert not found.primitives.folder.exists()


@pytest.fixture
def ended() -> Iterator[list[int]]:
    """Process ids that must be gone at the end."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_run_from_start_to_end(bench: Bench) -> None:
    await bench.prepare()
    assert (await bench.execution.status(1)).state is RunState.NOT_STARTED
    await bench.execution.start(bench.run(["say", "hello"], ["error", "a warning"]))
    assert await bench.texts() == ["hello"]
    status = await bench.execution.status(1)
    assert (status.state, status.exit_code, status.timed_out, status.stopped) == (RunState.EXITED, 0, False, False)
    assert 0 < status.duration_seconds < 30
    assert (bench.out / "turn-1" / "stderr.log").read_text() == "a warning"
    assert (bench.out / "turn-1" / "instructions.md").read_text() == "Be brief."


async def test_the_token_is_in_the_agents_environment_and_nowhere_else(bench: Bench) -> None:
    await bench.execution.start(
        bench.run(["environment", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "HTTPS_PROXY"], ["hear"])
    )
    folder = bench.out / "turn-1"
    await until(lambda: bench.printed("fht_secret"))
    listing = subprocess.run(["ps", "axww", "-o", "args"], check=True, capture_output=True, text=True).stdout
    assert "scripted_agent.py" in listing
    assert "fht_secret" not in listing
    assert not (folder / "spec.json").exists()
    await bench.execution.steer(1, "m", "go on")
    seen = json.loads((await bench.texts())[0])
    assert seen["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert seen["ANTHROPIC_BASE_URL"].endswith("/gateway/anthropic")
    assert seen["HTTPS_PROXY"].startswith("http://127.0.0.1:")


async def test_starting_twice_starts_once(bench: Bench) -> None:
    run = bench.run(["say", "hello"])
    await asyncio.gather(bench.execution.start(run), bench.again().start(run))
    await bench.again().start(run)
    assert await bench.texts() == ["hello"]
    await bench.again().start(run)
    assert bench.starts() == 1
    assert await bench.primitives.liveness("turn-1") is Liveness.EXITED


async def test_the_lock_holds_even_under_another_name(bench: Bench) -> None:
    """A launch that is repeated where the environment forgot the name."""
    await bench.execution.start(bench.run(["hear"]))
    await until((bench.out / "turn-1" / "lock").exists)
    spec = str(bench.out / "turn-1" / "spec.json")
    again = [bench.primitives.layout.python, "-m", "runner.agent_run", spec]
    await bench.primitives.launch("turn-1-again", again, cwd=str(bench.primitives.folder))
    assert await bench.execution.steer(1, "m", "x")
    assert await bench.texts() == ["heard x"]
    assert bench.starts() == 1


@pytest.mark.acceptance("C12")
async def test_stop_asks_first(bench: Bench) -> None:
    await bench.execution.start(bench.run(["say", "working"], ["hang"]))
    await until(lambda: bench.printed("working"))
    await bench.execution.stop(1, grace=10)
    status = await bench.execution.status(1)
    assert (status.state, status.exit_code, status.stopped) == (RunState.EXITED, 143, True)
    assert await bench.texts() == ["working"]


@pytest.mark.acceptance("C12")
async def test_stop_does_not_take_no_for_an_answer(bench: Bench, ended: list[int]) -> None:
    await bench.execution.start(
        bench.run(["ignore_term"], ["orphan"], ["shell", "pgrep -f 'sleep 1000' > pids"], ["say", "x"], ["hang"])
    )
    await until(lambda: bench.printed('"x"'))
    mine = [int(pid) for pid in (bench.work / "pids").read_text().split() if _is_below(int(pid), bench.work)]
    assert mine
    ended += mine
    await bench.execution.stop(1, grace=0.2)
    status = await bench.execution.status(1)
    assert (status.state, status.exit_code, status.stopped) == (RunState.EXITED, 137, True)


def _is_below(pid: int, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").resolve() == folder
    except OSError:
        return False


async def test_a_stop_before_the_start_holds(bench: Bench) -> None:
    await bench.execution.stop(1, grace=1)
    assert (await bench.execution.status(1)).state is RunState.NOT_STARTED
    await bench.execution.start(bench.run(["say", "hello"]))
    assert await bench.texts() == []
    assert (await bench.execution.status(1)).stopped
    assert not (Path(bench.primitives.layout.home) / "starts").exists()


@pytest.mark.acceptance("C12")
async def test_the_deadline_ends_the_run(bench: Bench) -> None:
    await bench.execution.start(bench.run(["say", "working"], ["hang"], timeout=0.5))
    assert await bench.texts() == ["working"]
    status = await bench.execution.status(1)
    assert (status.state, status.exit_code, status.timed_out, status.stopped) == (RunState.EXITED, 143, True, False)


@pytest.mark.acceptance("C12")
async def test_exit_code_124_is_a_time_out(bench: Bench) -> None:
    await bench.execution.start(bench.run(["exit", 124]))
    assert await bench.texts() == []
    assert (await bench.execution.status(1)).timed_out


async def test_an_agent_that_cannot_start_says_so(bench: Bench) -> None:
    bench.settings.agent_binary.unlink()
    await bench.execution.start(bench.run())
    assert await bench.texts() == []
    status = await bench.execution.status(1)
    assert (status.state, status.exit_code) == (RunState.EXITED, 127)
    assert "could not be run" in status.error


@pytest.mark.acceptance("C12")
async def test_a_runner_that_is_killed_leaves_a_lost_run(bench: Bench) -> None:
    await bench.execution.start(bench.run(["say", "working"], ["hang"]))
    await until(lambda: bench.printed("working"))
    await bench.primitives.kill("turn-1")
    assert (await bench.execution.status(1)).state is RunState.LOST
    assert await bench.texts() == ["working"]
    assert await bench.execution.steer(1, "m", "too late") is False


async def test_steering_reaches_the_running_agent_once(bench: Bench) -> None:
    await bench.execution.start(bench.run(["hear"], ["hear"], ["hear"]))
    assert await bench.execution.steer(1, "m1", "first")
    assert await bench.again().steer(1, "m1", "first")
    assert await bench.execution.steer(1, "comment 17/é", "second")
    assert await bench.execution.steer(1, "m3", "third")
    assert await bench.texts() == ["heard first", "heard second", "heard third"]
    assert await bench.execution.steer(1, "m4", "late") is False
    assert await bench.execution.steer(1, "m1", "first") is True


async def test_steering_is_truthful_while_the_agent_finishes(bench: Bench) -> None:
    """Whatever the moment: True exactly when the agent was given the message."""
    await bench.execution.start(bench.run(["say", "go"]))
    answers: dict[str, bool] = {}
    for number in range(200):
        answers[f"m{number}"] = await bench.execution.steer(1, f"m{number}", f"m{number}")
        if not answers[f"m{number}"]:
            break
        if number > 3:
            await until(
                lambda: (bench.out / "turn-1" / "closed").exists() or (bench.out / "turn-1" / "closing").exists(),
                0.2 + 5,
            )
    heard = [text.removeprefix("heard ") for text in await bench.texts() if text.startswith("heard")]
    assert heard == [name for name, given in answers.items() if given]
    assert list(answers.values())[-1] is False


async def test_a_message_before_the_start_is_not_lost(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sandbox.mailbox.WAIT_SECONDS", 0.0)
        assert await bench.execution.steer(1, "m1", "early") is False


async def test_following_goes_on_where_it_was(bench: Bench) -> None:
    await bench.execution.start(bench.run(["count", 2000]))
    seen: list[str] = []
    offset = 0
    while True:
        chunks = bench.again().follow(1, offset)
        taken = 0
        async for chunk in chunks:
            seen += chunk.lines
            offset, taken = chunk.next_offset, taken + 1
            if taken == 2:
                break
        await chunks.aclose()  # type: ignore[attr-defined]
        if taken < 2:
            break
    assert said(seen) == [f"line {number}" for number in range(2000)]
    assert offset == (bench.out / "turn-1" / "stream.jsonl").stat().st_size


FOLLOWING = """
import asyncio, json, os, sys
from pathlib import Path
from sandbox.agents.claude import Claude
from sandbox.execution import ExecutionEnvironment
from sandbox.plain import PlainEnvironment, PlainSettings

async def main(root, store, offset):
    settings = PlainSettings(Path(root, "environments"), Path(root, "sockets"), Path(root, "agent"))
    execution = ExecutionEnvironment(PlainEnvironment(settings, "box"), Claude())
    with open(store, "a") as out:
        async for chunk in execution.follow(1, offset):
            out.write(json.dumps([chunk.next_offset, chunk.lines]) + "\\n")
            out.flush()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.mark.acceptance("F01")
async def test_a_killed_host_loses_no_line_and_doubles_none(bench: Bench) -> None:
    steps = [step for number in range(6) for step in (["count", 50], ["wait_for", f"go-{number}"])]
    await bench.execution.start(bench.run(*steps, ["count", 50]))
    store = bench.root / "stored.jsonl"
    for number in range(6):
        store.touch()
        before = store.stat().st_size
        host = subprocess.Popen(
            [sys.executable, "-c", FOLLOWING, str(bench.root), str(store), str(_offset(store))], env=_path()
        )
        await until(lambda then=before: store.stat().st_size > then)
        host.send_signal(signal.SIGKILL)
        host.wait(10)
        (bench.work / f"go-{number}").touch()
        _drop_torn_line(store)
    assert host.returncode == -signal.SIGKILL
    last = [line async for chunk in bench.again().follow(1, _offset(store)) for line in chunk.lines]
    rows = [json.loads(row) for row in store.read_text().splitlines()]
    assert said([line for row in rows for line in row[1]] + last) == [f"line {one}" for one in range(50)] * 7
    assert bench.starts() == 1


def _path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


def _drop_torn_line(store: Path) -> None:
    """What a store's transaction does: the row is there as a whole or not at all."""
    data = store.read_bytes()
    store.write_bytes(data[: data.rfind(b"\n") + 1])


def _offset(store: Path) -> int:
    rows = store.read_text().splitlines()
    return int(json.loads(rows[-1])[0]) if rows else 0


@pytest.mark.acceptance("D01")
async def test_unreadable_lines_are_counted_and_the_last_needs_no_newline(bench: Bench) -> None:
    await bench.execution.start(
        bench.run(["raw", 'npm warn\n{"type":"x"}\n\xff\n'], ["raw", '{"type":"y"'], ["shell", "kill -9 $PPID"])
    )
    chunks = [chunk async for chunk in bench.execution.follow(1, 0)]
    lines = [line for chunk in chunks for line in chunk.lines]
    assert lines[1:] == ["", '{"type":"x"}', "", ""]
    assert sum(chunk.skipped for chunk in chunks) == 3
    assert chunks[-1].next_offset == (bench.out / "turn-1" / "stream.jsonl").stat().st_size
    assert (await bench.execution.status(1)).exit_code == 137


async def test_stderr_is_drained_and_capped(bench: Bench) -> None:
    await bench.execution.start(
        bench.run(*[["error", "x" * 50_000]] * 40, ["error", "the last words"], ["say", "done"])
    )
    assert await bench.texts() == ["done"]
    log = (bench.out / "turn-1" / "stderr.log").read_bytes()
    assert len(log) < 700_000
    assert b"bytes left out" in log
    assert log.endswith(b"the last words")


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


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "nonsense",
        '{"exit_code": 1e999, "timed_out": 0, "stopped": 0, "duration_seconds": 0, "error": 0}',
        "[" * 50_000,
    ],
)
async def test_a_forged_ending_is_only_data(bench: Bench, content: str) -> None:
    await bench.primitives.write(str(bench.out / "turn-1" / "exit.json"), content.encode())
    assert [chunk async for chunk in bench.execution.follow(1, 0)] == []
    status = await bench.execution.status(1)
    assert (status.state, status.exit_code) == (RunState.EXITED, None)


@pytest.mark.acceptance("C11")
async def test_an_agent_cannot_say_that_it_has_ended(bench: Bench) -> None:
    ending = json.dumps({"exit_code": 0, "timed_out": False, "stopped": False, "duration_seconds": 1, "error": ""})
    await bench.execution.start(
        bench.run(["write", str(bench.out / "turn-1" / "exit.json"), ending], ["say", "gone?"], ["hear"])
    )
    await until(lambda: bench.printed("gone?"))
    assert (await bench.execution.status(1)).state is RunState.RUNNING
    assert await bench.execution.steer(1, "m", "still here")
    assert await bench.texts() == ["gone?", "heard still here"]


@pytest.mark.acceptance("D02")
async def test_a_line_of_ten_megabytes_and_one_past_every_cap(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.lines.LINE_CAP", 11_000_000)
    await bench.execution.start(bench.run(["big", 10_000_000], ["big", 12_000_000], ["say", "after"]))
    chunks = [chunk async for chunk in bench.execution.follow(1, 0)]
    lines = [line for chunk in chunks for line in chunk.lines]
    assert [len(line) <= 16 << 10 for line in lines] == [True] * 5
    assert json.loads(lines[1])["message"]["content"][0]["content"].startswith("updated x")
    assert lines[2] == ""
    assert said(lines) == ["after"]
    assert chunks[-1].next_offset == (bench.out / "turn-1" / "stream.jsonl").stat().st_size


async def test_a_message_larger_than_a_pipe(bench: Bench) -> None:
    await bench.execution.start(bench.run(["hear"], ["say", "x" * 200_000]))
    assert await bench.execution.steer(1, "m", "y" * 500_000)
    assert [text[:8] for text in await bench.texts()] == ["heard yy", "xxxxxxxx"]


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
