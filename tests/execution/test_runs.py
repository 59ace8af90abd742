"""An agent's run: started once, ended by itself, by us or by a deadline, and truthful about it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from sandbox.execution import RunState
from sandbox.primitives import Liveness
from tests.execution.bench import Bench, until


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
