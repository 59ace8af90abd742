"""What somebody inside a local environment can use up or leave behind."""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path

import pytest

from sandbox.local.environment import LocalEnvironment, connect
from sandbox.local.folders import members
from sandbox.local.launcher import BoxLimits
from sandbox.primitives import Liveness
from tests.local_isolation.inside import created, running
from tests.world.environments import shell, until, until_size


async def test_daemons_that_double_fork_die_with_their_box(env: LocalEnvironment) -> None:
    daemon = (
        "import os,time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        open('/run/forgehand/out/up','w').write('x')\n"
        "        time.sleep(60)\n"
        "    os._exit(0)\n"
        "time.sleep(60)\n"
    )
    await env.launch("daemon", [env.layout.python, "-c", daemon])
    await until_size(env, f"{env.layout.out}/up", 1)
    home = env._folders.home
    assert len(members(home)) >= 4
    await env.kill("daemon")
    assert members(home) == []


async def test_what_outlives_an_ended_command_is_ended_too(env: LocalEnvironment) -> None:
    await env.launch("left", shell("setsid sleep 60 & exit 5"))

    async def ended() -> bool:
        return await env.liveness("left") is Liveness.EXITED

    await until(ended)
    assert members(env._folders.home) == []
    await env.exec(shell("setsid sleep 60 >/dev/null 2>&1 & exit 0"))

    async def nobody() -> bool:
        return members(env._folders.home) == []

    await until(nobody)


@pytest.mark.acceptance("C11")
async def test_a_fork_bomb_is_bounded_and_ends(root: Path) -> None:
    """Processes are counted per user, and the user is made from the key: tests beside this one must not have it too."""
    limits = BoxLimits(processes=40 if os.geteuid() == 0 else 1)
    bomb = (
        "import os,time\n"
        "n = 0\n"
        "try:\n"
        "    while n < 4000:\n"
        "        if os.fork() == 0: time.sleep(60); os._exit(0)\n"
        "        n += 1\n"
        "except BlockingIOError: pass\n"
        "open('/run/forgehand/out/count','w').write('%05d' % n)\n"
        "time.sleep(60)\n"
    )
    async with running(root, limits=limits) as provider:
        env = await created(provider, f"bomb-{secrets.token_hex(4)}")
        result = await env.exec([env.layout.python, "-c", bomb], timeout=4)
        assert result.timed_out
        assert int(await env.read(f"{env.layout.out}/count")) < 41
        assert members(env._folders.home) == []
        assert (await env.exec(["true"])).exit_code == 0


@pytest.mark.acceptance("C11")
async def test_a_file_has_a_largest_size(root: Path) -> None:
    async with running(root, limits=BoxLimits(file_bytes=1 << 20)) as provider:
        env = await created(provider)
        result = await env.exec(shell("head -c 2000000 /dev/zero > big; ls -s --block-size=1 big"))
        assert b"File size limit" in result.stderr or result.stdout.startswith(b"1048576")


@pytest.mark.acceptance("F16")
async def test_a_socket_swapped_for_a_link_is_not_followed(env: LocalEnvironment, root: Path) -> None:
    arrived = asyncio.Event()
    server = await asyncio.start_unix_server(lambda *_: arrived.set(), root / "host.sock")
    await env.exec(shell(f"ln -s {root}/host.sock {env.layout.out}/.expose-x.sock; touch {env.layout.out}/plain"))
    for name in (".expose-x.sock", "plain", "none"):
        with pytest.raises(OSError):
            connect(env._folders.out, name)
    server.close()
    assert not arrived.is_set()
