"""Following what an agent prints: no line lost, none doubled, and its endings only believed where they are ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.execution import RunState
from tests.execution.bench import Bench, said, until


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
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


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
    monkeypatch.setattr("sandbox.following.LINE_CAP", 11_000_000)
    await bench.execution.start(bench.run(["big", 10_000_000], ["big", 12_000_000], ["say", "after"]))
    chunks = [chunk async for chunk in bench.execution.follow(1, 0)]
    lines = [line for chunk in chunks for line in chunk.lines]
    assert [len(line) <= 16 << 10 for line in lines] == [True] * 5
    assert json.loads(lines[1])["message"]["content"][0]["content"].startswith("updated x")
    assert lines[2] == ""
    assert said(lines) == ["after"]
    assert chunks[-1].next_offset == (bench.out / "turn-1" / "stream.jsonl").stat().st_size
