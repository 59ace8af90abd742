"""The same turn in every kind of environment: prepare, run, steer, follow, collect."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox.agents.base import AgentRun
from sandbox.agents.claude import Claude
from sandbox.errors import IsolationMissing
from sandbox.execution import ExecutionEnvironment, RunState
from sandbox.primitives import EnvironmentProvider, EnvironmentSpec
from tests.contract.makers import KINDS, MAKERS
from tests.world.e2b import e2b_maker

SCRIPTED = Path(__file__).parent.parent / "data" / "agents" / "scripted_agent.py"
SPEC = EnvironmentSpec(labels={"session": "abcd1234"}, public_repository=False)


@pytest.fixture(params=KINDS)
async def provider(request: pytest.FixtureRequest, root: Path) -> AsyncIterator[EnvironmentProvider]:
    agent = root / "agent"
    agent.write_text("#!/usr/bin/env python3\n" + SCRIPTED.read_text())
    agent.chmod(0o755)
    if request.param == "e2b":
        async with e2b_maker(root, agent) as make:
            yield make()
        return
    try:
        yield MAKERS[request.param](root / "env", agent)
    except IsolationMissing as error:
        pytest.skip(str(error))


def git(folder: Path, *arguments: str, stdin: bytes | None = None) -> bytes:
    settings = ["-c", "user.name=T", "-c", "user.email=t@example.test", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, input=stdin
    ).stdout


def packed(root: Path) -> tuple[Path, str, Path]:
    origin = root / "origin"
    origin.mkdir()
    git(origin, "init", "--quiet")
    (origin / "code.py").write_text("answer = 1\n")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "one")
    sha = git(origin, "rev-parse", "HEAD").decode().strip()
    pack = root / "base.pack"
    pack.write_bytes(git(origin, "pack-objects", "--stdout", "-q", stdin=git(origin, "rev-list", "--objects", "HEAD")))
    return pack, sha, origin


async def test_a_turn(provider: EnvironmentProvider, root: Path) -> None:
    try:
        primitives = await provider.create("one", SPEC)
    except IsolationMissing as error:
        pytest.skip(str(error))
    execution = ExecutionEnvironment(primitives, Claude())
    pack, sha, origin = packed(root)
    await execution.prepare(pack, sha, [], "forgehand/1-abcd1234")
    assert [one.exit_code for one in await execution.setup(["test -f code.py"], 30)] == [0]
    steps = [["write", "code.py", "answer = 42\n"], ["environment", "ANTHROPIC_BASE_URL"], ["hear"]]
    run = AgentRun(
        turn=1,
        prompt=json.dumps(steps),
        model="m",
        token="fht_x",
        agent_session_id="s",
        resume=False,
        max_turns=None,
        budget_usd=1,
        timeout_seconds=60,
        instructions="",
    )
    await execution.start(run)
    await execution.start(run)
    following = asyncio.create_task(gather(execution))
    assert await execution.steer(1, "m1", "go")
    texts = await following
    assert json.loads(texts[0])["ANTHROPIC_BASE_URL"].endswith("/gateway/anthropic")
    assert texts[1] == "heard go"
    status = await execution.status(1)
    assert (status.state, status.exit_code) == (RunState.EXITED, 0)
    collected = await execution.collect(1, sha)
    await execution.fetch_bundle(collected, root / "bundle", 1 << 20)
    git(origin, "fetch", "--quiet", str(root / "bundle"), "refs/forgehand/work:refs/brought")
    assert git(origin, "show", "refs/brought:code.py") == b"answer = 42\n"
    assert git(origin, "rev-parse", "refs/brought^").decode().strip() == sha

    await execution.start(AgentRun(**{**run.__dict__, "turn": 2, "prompt": json.dumps([["say", "x"], ["hang"]])}))
    await execution.stop(2, grace=5)
    assert (await execution.status(2)).stopped
    await execution.close()
    await provider.close()


async def gather(execution: ExecutionEnvironment) -> list[str]:
    lines = [json.loads(line) async for chunk in execution.follow(1, 0) for line in chunk.lines]
    return [line["message"]["content"][0]["text"] for line in lines if line["type"] == "assistant"]
