"""Where a local environment lives on its host, and what of the host it is shown."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.errors import IsolationMissing
from sandbox.local.folders import EnvironmentsFolder
from sandbox.local.provider import LocalProvider
from sandbox.local.tools import check_prefix
from tests.local_isolation.inside import REPOSITORY, created, is_root, running
from tests.world.environments import shell, small_agent, until_size

BUNDLED = (
    REPOSITORY / ".venv/lib" / f"python3.{sys.version_info.minor}" / "site-packages/claude_agent_sdk/_bundled/claude"
)


@is_root
async def test_a_closed_data_directory_is_left_for_a_folder_that_is_reached(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    provider = LocalProvider(closed / "env", small_agent(tmp_path))
    base = provider.sockets.parent
    try:
        assert base.parent == Path("/var/tmp")
        assert base.name.startswith("forgehand-")
        assert LocalProvider(closed / "env", small_agent(tmp_path)).sockets == provider.sockets
        env = await created(provider)
        assert (await env.exec(["true"])).exit_code == 0
        await env.terminate()
    finally:
        await asyncio.to_thread(subprocess.run, ["rm", "-rf", str(base)], check=True)


def test_a_foreseeable_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    provider = LocalProvider(deep, small_agent(tmp_path))
    base = provider.sockets.parent
    try:
        base.chmod(0o777)
        with pytest.raises(IsolationMissing, match="somebody else"):
            LocalProvider(deep, small_agent(tmp_path))
    finally:
        subprocess.run(["rm", "-rf", str(base)], check=True)


@pytest.mark.acceptance("F16")
def test_tool_folders_that_hold_secrets_are_refused(root: Path) -> None:
    base = EnvironmentsFolder(root / "env")
    (root / "home/.ssh").mkdir(parents=True)
    (root / "home/tools").mkdir()
    assert check_prefix(root / "home/tools", base) == root / "home/tools"
    for path in (root / "home", root / "home/.ssh", Path("/"), Path("/etc"), root, root / "env/boxes", root / "none"):
        with pytest.raises(IsolationMissing):
            check_prefix(path, base)


async def test_tool_folders_are_on_the_path(root: Path) -> None:
    tools = root / "toolchain/bin"
    tools.mkdir(parents=True)
    (tools / "mytool").write_text("#!/bin/sh\necho from toolchain\n", encoding="utf-8")
    for path in (tools.parent, tools, tools / "mytool"):
        path.chmod(0o755)
    provider = LocalProvider(root / "env", small_agent(root), tool_folders=[root / "toolchain"])
    env = await created(provider)
    assert (await env.exec(["mytool"])).stdout == b"from toolchain\n"
    assert (await env.exec(shell(f"touch {tools}/x"))).exit_code != 0
    await env.terminate()


async def test_an_agent_that_was_updated_is_taken_anew(root: Path) -> None:
    async with running(root) as provider:
        assert (await (await created(provider)).exec(["/opt/forgehand/bin/claude"])).stdout == b"agent 1.0\n"
    (root / "agent").write_text("#!/bin/sh\necho agent 2.0\n", encoding="utf-8")
    async with running(root, agent=root / "agent") as provider:
        assert (await (await created(provider)).exec(["/opt/forgehand/bin/claude"])).stdout == b"agent 2.0\n"


@pytest.mark.skipif(not BUNDLED.exists(), reason="the wheel with the agent's binary is not installed")
async def test_the_real_agent_runs_inside(root: Path) -> None:
    async with running(root, agent=BUNDLED) as provider:
        env = await created(provider)
        assert b"Claude Code" in (await env.exec([env.layout.agent, "--version"])).stdout
        await env.launch("version", shell(f"{env.layout.agent} --version > {env.layout.out}/version"))
        await until_size(env, f"{env.layout.out}/version", 10)
        assert b"Claude Code" in await env.read(f"{env.layout.out}/version")


ORDINARY = """
import asyncio, sys
from pathlib import Path
from sandbox.local.folders import members
from sandbox.local.provider import LocalProvider
from sandbox.primitives import EnvironmentSpec
async def main():
    provider = LocalProvider(Path(sys.argv[1]) / "env", Path(sys.argv[2]))
    env = await provider.create("one", EnvironmentSpec({}, True))
    probe = await env.exec(["sh", "-c", "id -u; cat /proc/1/environ; echo x 2>&1 > /proc/sys/kernel/core_pattern"])
    assert probe.stdout.startswith(b"1000") and probe.exit_code, probe
    await env.launch("run", ["sh", "-c", "setsid sleep 60 & echo > /run/forgehand/out/up; exec sleep 60"])
    async for size in env.watch("/run/forgehand/out/up", 0):
        if size: break
    await env.pause()
    await env.resume()
    print(await env.liveness("run"), len(members(env._folders.home)) >= 4)
    await env.kill("run")
    print(await env.liveness("run"), members(env._folders.home))
    await env.launch("again", ["sleep", "60"])
    await env.exec(["sh", "-c", "mkdir -p a/b; chmod 000 a"])
    await env.terminate()
    print(await env.is_running(), list((Path(sys.argv[1]) / "env/boxes").iterdir()))
asyncio.run(main())
"""


@is_root
async def test_it_works_for_an_ordinary_user(root: Path) -> None:
    for part in (REPOSITORY, *REPOSITORY.parents):
        if not part.stat().st_mode & 0o001:
            pytest.skip("the repository cannot be read by another user")
    home = root / "theirs"
    home.mkdir()
    os.chown(home, 65534, 65534)
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-B", "-c"]
    process = await asyncio.create_subprocess_exec(
        *command,
        ORDINARY,
        str(home),
        str(small_agent(root)),
        cwd=REPOSITORY,
        stdout=-1,
        stderr=-1,
        env={"PATH": "/usr/bin"},
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert out.decode().splitlines() == ["running True", "exited []", "False []"], err.decode()


async def test_a_host_without_bubblewrap_says_what_to_do(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.local import launcher

    monkeypatch.setitem(launcher.CLEAN, "PATH", str(root))
    with pytest.raises(IsolationMissing, match="install bubblewrap"):
        await LocalProvider(root / "env", small_agent(root)).start()


def test_sockets_paths_fit(root: Path) -> None:
    base = EnvironmentsFolder(root / ("y" * 120))
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(base.sockets / "gateway.sock"))
    finally:
        subprocess.run(["rm", "-rf", str(base.path)], check=True)
