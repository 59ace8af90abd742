"""Commands in a local environment are found again, and never confused with others."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from sandbox.errors import EnvironmentBusy
from sandbox.local.environment import LocalEnvironment
from sandbox.local.provider import LocalProvider
from sandbox.primitives import Liveness
from sandbox.runner.family import stat_fields
from tests.local_isolation.inside import REPOSITORY
from tests.world.environments import until_size

STARTER = """
import asyncio, os, signal, sys
from pathlib import Path
from sandbox.local.provider import LocalProvider
from sandbox.primitives import EnvironmentSpec
async def main():
    provider = LocalProvider(Path(sys.argv[1]) / "env", Path(sys.argv[1]) / "agent")
    env = await provider.create("one", EnvironmentSpec({"session": "one"}, True))
    await env.launch("run", ["/bin/sh", "-c", "while :; do echo . >> /run/forgehand/out/ticks; sleep 0.02; done"])
    os.killpg(0, signal.SIGKILL)
asyncio.run(main())
"""


async def test_a_launched_command_outlives_the_death_of_its_host_process(root: Path, provider: LocalProvider) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STARTER, str(root), cwd=REPOSITORY, start_new_session=True
    )
    assert await process.wait() == -signal.SIGKILL
    (env,) = await provider.find({"session": "one"})
    await until_size(env, f"{env.layout.out}/ticks", 2)
    before = len(await env.read(f"{env.layout.out}/ticks"))
    await until_size(env, f"{env.layout.out}/ticks", before + 10)
    assert await env.liveness("run") is Liveness.RUNNING
    await env.terminate()
    assert not (provider.sockets.parent / "boxes/one").exists()


async def test_a_launch_that_died_before_it_began_is_begun_again(env: LocalEnvironment) -> None:
    (env._folders.launched / "run.status").touch()
    assert await env.liveness("run") is Liveness.ABSENT
    await env.launch("run", ["sleep", "60"])
    assert await env.liveness("run") is Liveness.RUNNING


async def test_without_the_kept_identity_the_namespace_tells(env: LocalEnvironment) -> None:
    await env.launch("run", ["sleep", "60"])
    (env._folders.launched / "run.json").unlink()
    assert await env.liveness("run") is Liveness.RUNNING
    await env.kill("run")
    assert await env.liveness("run") is Liveness.EXITED


@pytest.mark.parametrize("kept", [True, False])
async def test_a_number_that_is_another_process_now_is_left_alone(env: LocalEnvironment, kept: bool) -> None:
    bystander = await asyncio.create_subprocess_exec("sleep", "60")
    status = {"child-pid": bystander.pid, "pid-namespace": 1}
    (env._folders.launched / "run.status").write_text(json.dumps(status), encoding="utf-8")
    if kept:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        identity = {"pid": bystander.pid, "started": int(stat_fields(bystander.pid)[19]) - 1, "boot": boot}
        (env._folders.launched / "run.json").write_text(json.dumps(identity), encoding="utf-8")
    assert await env.liveness("run") is Liveness.EXITED
    await env.kill("run")
    assert bystander.returncode is None
    assert stat_fields(bystander.pid)[0] not in "ZX"
    bystander.kill()
    await bystander.wait()


async def test_a_box_that_cannot_be_made_says_why_and_may_be_tried_again(env: LocalEnvironment) -> None:
    runner = env._folders.runner
    runner.rename(runner.with_name("away"))
    with pytest.raises(EnvironmentBusy, match="runner"):
        await env.launch("run", ["sleep", "60"])
    with pytest.raises(EnvironmentBusy, match="runner"):
        await env.exec(["true"])
    runner.with_name("away").rename(runner)
    await env.launch("run", ["sleep", "60"])
    assert await env.liveness("run") is Liveness.RUNNING
