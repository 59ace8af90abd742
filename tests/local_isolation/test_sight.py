"""What somebody inside a local environment sees of the host and of other sessions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.local.environment import LocalEnvironment
from sandbox.local.provider import LocalProvider
from tests.local_isolation.inside import CANARY, REPOSITORY, created, is_root, python, running
from tests.world.environments import shell, until, until_size


@pytest.mark.acceptance("C14")
async def test_no_secret_of_the_host_process_is_seen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    sweep = (
        "import os\n"
        "found = [os.environ]\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    for name in ('environ', 'cmdline', 'stack', 'maps', 'mountinfo'):\n"
        "        try: found.append(open(f'/proc/{pid}/{name}', 'rb').read())\n"
        "        except OSError: pass\n"
        "print(found)\n"
        "print(sorted(filter(str.isdigit, os.listdir('/proc')), key=int))\n"
    )
    async with running(root) as provider:
        env = await created(provider)
        for network in (False, True):
            result = await python(env, sweep, network=network)
            assert result.exit_code == 0
            assert CANARY.encode() not in result.stdout
        await env.write(f"{env.layout.work}/sweep.py", sweep.encode())
        await env.launch("sweep", [env.layout.python, f"{env.layout.work}/sweep.py"])
        await until_size(env, f"{env.layout.out}/launch-sweep.log", 100)
        seen = await env.read(f"{env.layout.out}/launch-sweep.log")
        while seen.count(b"\n") < 2:
            await until_size(env, f"{env.layout.out}/launch-sweep.log", len(seen) + 1)
            seen = await env.read(f"{env.layout.out}/launch-sweep.log")
        assert CANARY.encode() not in seen
        assert str(os.getpid()).encode() not in seen.splitlines()[-1]


@pytest.mark.acceptance("F16")
async def test_no_folder_of_the_host_is_seen(env: LocalEnvironment, root: Path) -> None:
    paths = [str(root), str(REPOSITORY), "/root", "/var/lib", "/var/run/docker.sock", "/sys", "/srv", "/mnt", "/boot"]
    result = await python(env, "import os,sys; print([p for p in sys.argv[1:] if os.path.lexists(p)])", *paths)
    assert result.stdout.decode().strip() == "[]"
    listing = (await env.exec(["ls", "-A", "/", "/etc", "/home", "/run/forgehand"])).stdout.decode()
    assert "shadow" not in listing
    assert "sockets" not in listing  # only a box with a way out has them


@pytest.mark.acceptance("C16")
async def test_one_session_sees_nothing_of_another(provider: LocalProvider) -> None:
    one, two = await created(provider, "one"), await created(provider, "two")
    await one.launch("secret", shell(f"echo {CANARY} > /tmp/note; cp /tmp/note ~/note; cp /tmp/note .; exec sleep 60"))

    async def there() -> bool:
        return await one.stat(f"{one.layout.work}/note") is not None

    await until(there)
    found = await two.exec(
        shell(f"grep -rs canary- /home {two.layout.work} /tmp /run /dev/shm /var/tmp; ls /proc; ps -ef")
    )
    assert CANARY.encode() not in found.stdout
    assert b"sleep" not in found.stdout


@pytest.mark.acceptance("C16")
@is_root
async def test_sessions_have_users_of_their_own(provider: LocalProvider) -> None:
    one, two = await created(provider, "one"), await created(provider, "two")
    assert one.uid != two.uid
    assert one.uid != 0
    again = await created(provider, "one")
    assert again.uid == one.uid
    await one.exec(shell("touch made"))
    assert (provider.sockets.parent / "boxes/one/work/made").stat().st_uid == one.uid
    assert (provider.sockets.parent / "boxes/one").stat().st_mode & 0o777 == 0o700
