"""What `sandbox.primitives` promises of commands inside, kept by every provider."""

from __future__ import annotations

import asyncio
import time

import pytest

from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentPrimitives, Liveness
from tests.world.environments import shell, until, until_size


async def test_exec_gives_output_and_exit_code(env: EnvironmentPrimitives) -> None:
    result = await env.exec(shell("cat; echo err >&2; exit 7"), stdin=b"in")
    assert (result.exit_code, result.stdout, result.stderr) == (7, b"in", b"err\n")
    assert not result.timed_out
    assert not result.truncated


async def test_exec_environment_and_folder(env: EnvironmentPrimitives) -> None:
    result = await env.exec(shell('echo "$X"; pwd; echo "$HOME"'), env={"X": "a b\n'\"$"}, cwd=env.layout.out)
    assert result.stdout.decode().splitlines() == ["a b", "'\"$", env.layout.out, env.layout.home]
    assert (await env.exec(["pwd"])).stdout.decode().strip() == env.layout.work


async def test_exec_does_not_inherit_the_hosts_environment(
    env: EnvironmentPrimitives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGEHAND_CANARY", "canary-value")
    assert b"canary-value" not in (await env.exec(["env"])).stdout


async def test_exec_caps_output_and_reads_on(env: EnvironmentPrimitives) -> None:
    result = await env.exec(shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit 3"))
    assert (result.exit_code, len(result.stdout), len(result.stderr)) == (3, 1 << 20, 1 << 20)
    assert result.truncated


async def test_exec_kills_the_whole_tree_at_its_timeout(env: EnvironmentPrimitives) -> None:
    ticks = f"{env.layout.out}/ticks"
    loop = f"while :; do echo . >> {ticks}; sleep 0.02; done"
    started = time.monotonic()
    result = await env.exec(shell(f"({loop}) & {loop}"), timeout=0.7)
    assert result.timed_out
    assert time.monotonic() - started < 5
    size = len(await env.read(ticks))
    assert size
    await env.exec(["sleep", "0.2"])
    assert len(await env.read(ticks)) == size


async def test_exec_with_a_closed_stdin_and_much_input(env: EnvironmentPrimitives) -> None:
    result = await env.exec(["true"], stdin=b"x" * (4 << 20))
    assert result.exit_code == 0


async def test_exec_of_what_is_not_there(env: EnvironmentPrimitives) -> None:
    for network in (False, True):
        result = await env.exec(["no-such-command"], network=network)
        assert result.exit_code == 127
        assert b"no-such-command" in result.stderr
    with pytest.raises(SandboxError):
        await env.exec(["true"], cwd=f"{env.layout.work}/none")
    with pytest.raises(SandboxError):
        await env.exec(["true"], env={"A": "b\0c"})


async def test_exec_with_network_names_gateway_and_proxy(env: EnvironmentPrimitives) -> None:
    result = await env.exec(["env"], network=True)
    values = dict(line.split("=", 1) for line in result.stdout.decode().splitlines() if "=" in line)
    assert values["FORGEHAND_GATEWAY"].startswith("http://127.0.0.1:")
    assert values["HTTPS_PROXY"] == values["https_proxy"] == values["HTTP_PROXY"] == values["http_proxy"]
    assert "127.0.0.1" in values["NO_PROXY"]


async def test_the_tools_of_the_layout_are_there(env: EnvironmentPrimitives) -> None:
    assert (await env.exec([env.layout.agent])).stdout == b"agent 1.0\n"
    assert b"git version" in (await env.exec([env.layout.git, "--version"])).stdout
    assert (await env.exec([env.layout.python, "-c", "print(1)"])).stdout == b"1\n"
    assert (await env.exec(["ls", f"{env.layout.runner}/forwarder.py"])).exit_code == 0


async def test_launch_runs_once_under_a_name(env: EnvironmentPrimitives) -> None:
    command = shell(f'echo "$A" >> {env.layout.out}/log; pwd >> {env.layout.out}/log; exec sleep 60')
    assert await env.liveness("run") is Liveness.ABSENT
    await asyncio.gather(*(env.launch("run", command, env={"A": "b"}, cwd=env.layout.home) for _ in range(3)))
    await env.launch("run", command)
    expected = f"b\n{env.layout.home}\n".encode()
    await until_size(env, f"{env.layout.out}/log", len(expected))
    assert await env.read(f"{env.layout.out}/log") == expected
    assert await env.liveness("run") is Liveness.RUNNING


async def test_an_ended_name_stays_ended(env: EnvironmentPrimitives) -> None:
    await env.launch("run", shell(f"echo once >> {env.layout.out}/log"))

    async def ended() -> bool:
        return await env.liveness("run") is Liveness.EXITED

    await until(ended)
    await env.launch("run", shell(f"echo twice >> {env.layout.out}/log"))
    assert await env.liveness("run") is Liveness.EXITED
    assert await env.read(f"{env.layout.out}/log") == b"once\n"
    await env.kill("run")


async def test_kill_takes_the_tree_and_only_that(env: EnvironmentPrimitives) -> None:
    def loop(name: str) -> list[str]:
        one = f"while :; do echo . >> {env.layout.out}/{name}; sleep 0.02; done"
        return shell(f"({one}) & trap '' TERM INT HUP; {one}")

    await env.launch("one", loop("one"))
    await env.launch("two", loop("two"))
    await until_size(env, f"{env.layout.out}/one", 6)
    await until_size(env, f"{env.layout.out}/two", 6)
    await env.kill("one")
    assert await env.liveness("one") is Liveness.EXITED
    before = await env.stat(f"{env.layout.out}/one")
    assert before is not None
    alive = len(await env.read(f"{env.layout.out}/two"))
    await until_size(env, f"{env.layout.out}/two", alive + 20)
    assert await env.stat(f"{env.layout.out}/one") == before
    assert await env.liveness("two") is Liveness.RUNNING
    await env.kill("one")
    await env.kill("never-launched")


async def test_kill_takes_what_is_becoming_another_program(env: EnvironmentPrimitives) -> None:
    ticks = f"{env.layout.out}/ticks"
    again = f"echo . >> {ticks}; exec /bin/sh {env.layout.work}/again"
    await env.write(f"{env.layout.work}/again", again.encode())
    await env.launch("run", shell(f"/bin/sh {env.layout.work}/again &" * 24 + "wait"))
    await until_size(env, ticks, 100)
    await env.kill("run")
    left = await env.stat(ticks)
    assert await env.liveness("run") is Liveness.EXITED
    await env.exec(["sleep", "0.05"])
    assert await env.stat(ticks) == left


async def test_names_are_checked(env: EnvironmentPrimitives) -> None:
    for name in ("", "../x", "A", "a/b", "a b", "-x", "a" * 200):
        with pytest.raises(SandboxError):
            await env.launch(name, ["true"])
