"""In E2B's images everything invites the agent to become root; in ours it never does, and what invites is closed."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.e2b.inside import commands, launching, places
from sandbox.e2b.provider import E2BProvider
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentPrimitives, EnvironmentSpec
from tests.e2b_stand_in import users
from tests.world.e2b import E2BWorld, e2b_world
from tests.world.environments import shell, small_agent

pytestmark = [
    pytest.mark.review("e2b-1"),
    pytest.mark.skipif(not users.are_two(), reason="a second user inside can only be had by root of this machine"),
]
SPEC = EnvironmentSpec(labels={"app": "forgehand", "session": "abcd1234"}, public_repository=True)
NAMES = ("id", "nice", "ionice", "socat", "python3", "stat", "e2b-seed-certs")
"""What root looks up and executes: envd, a login shell, the boot."""
SIGN = f"{places.TEMPORARY}/became"
PLANTED = f"#!/bin/sh\n/usr/bin/id -u >> {SIGN}; chmod 666 {SIGN}\nexit 1\n"
LOG_IN = """import json, socket, sys
at = socket.socket(socket.AF_UNIX)
at.settimeout(5)
try:
    at.connect("/run/sshd.sock")
    at.sendall(json.dumps({"user": sys.argv[1], "password": "", "command": "id -u"}).encode() + b"\\n")
    print(at.makefile().read().strip())
except OSError:
    print("nobody listens")
"""


async def plant(env: EnvironmentPrimitives) -> None:
    """Whatever the agent can lay where root looks."""
    await env.write(f"{env.layout.work}/planted", PLANTED.encode(), executable=True)
    for folder in ("/usr/local/sbin", "/usr/local/bin"):
        for name in NAMES:
            await env.exec(shell(f"cp {env.layout.work}/planted {folder}/{name} || ln -s {env.layout.work}/planted ."))
    line = f"/usr/bin/id -u >> {SIGN}"
    for path in ("/etc/profile", "/etc/profile.d/x.sh", "/root/.profile", "/etc/ld.so.preload", "/etc/sudoers"):
        await env.exec(shell(f"echo '{line}' >> {path}"))


async def became(env: EnvironmentPrimitives) -> bytes:
    return (await env.exec(shell(f"cat {SIGN} 2>/dev/null"))).stdout


async def test_what_the_agent_lays_where_root_looks_is_never_executed(provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    assert (await env.exec(["id", "-u"])).stdout == b"1000\n"
    await plant(env)
    assert await env.stat(env.layout.work) is not None  # root's next command
    again = await provider.create("one", SPEC)
    assert await became(again) == b""


async def test_nor_at_a_boot_from_its_disk(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    await plant(env)
    [sandbox] = world.e2b.live
    await world.e2b.registry.pause(sandbox.id, keep_memory=False)
    again = await provider.attach("one")
    assert await became(again) == b""
    for user in ("root", "user"):
        assert await logged_in(again, user) == b"nobody listens\n"


async def test_nobody_logs_in(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    for user in ("root", "user"):
        assert await logged_in(env, user) in (b"nobody listens\n", b"Permission denied\n")
    [sandbox] = world.e2b.live
    shadow = (sandbox.folder / "etc" / "shadow").read_text()
    assert all(line.split(":")[1][:1] in "!*" and line.split(":")[1] for line in shadow.splitlines())
    assert stat.S_IMODE((sandbox.folder / "etc" / "shadow").stat().st_mode) == 0o640
    for unit in ("ssh.service", "ssh.socket", "sshd.service"):
        assert (sandbox.folder / "etc" / "systemd" / "system" / unit).readlink() == Path("/dev/null")


async def logged_in(env: EnvironmentPrimitives, user: str) -> bytes:
    """What is said to somebody who asks the sshd for a command as that user, with the empty password."""
    return (await env.exec(["python3", "-c", LOG_IN, user])).stdout


async def test_an_open_place_of_any_kind_is_closed_before_an_agent_comes(world: E2BWorld, root: Path) -> None:
    """As a template of the operator's own may bring them."""
    provider = world.provider()
    first = await provider.create("one", SPEC)
    [sandbox] = world.e2b.live
    etc, local = sandbox.folder / "etc", sandbox.folder / "usr-local"
    (etc / "profile.d").mkdir(exist_ok=True)
    (etc / "profile.d").chmod(0o777)
    (etc / "ld.so.preload").write_text("")
    os.chown(etc / "ld.so.preload", users.outside(1000), 0)
    (local / "bin" / "climb").write_text("")
    (local / "bin" / "climb").chmod(0o4755)
    (sandbox.folder / "opt" / "tool").mkdir()
    (sandbox.folder / "opt" / "tool").chmod(0o777)
    (local / "bin" / "tool").symlink_to("/opt/tool/run")
    await provider.create("one", SPEC)
    said = await first.exec(
        shell(
            "touch /etc/profile.d/x /usr/local/bin/x /opt/tool/run; echo x > /etc/ld.so.preload; "
            "echo x > /usr/local/bin/climb; ls /etc/profile.d /usr/local/bin /opt/tool"
        )
    )
    assert b"\nx\n" not in said.stdout and b"run" not in said.stdout, said
    assert (etc / "ld.so.preload").read_text() == (local / "bin" / "climb").read_text() == ""
    assert not (local / "bin" / "climb").stat().st_mode & stat.S_ISUID
    await provider.close()


async def test_a_templates_own_variables_do_not_lead_root_to_the_agents_programs(
    world: E2BWorld, provider: E2BProvider
) -> None:
    env = await provider.create("one", SPEC)
    own = f"{env.layout.home}/.local/bin"
    for name in NAMES:
        await env.write(f"{own}/{name}", PLANTED.encode(), executable=True)
    await env.write(f"{env.layout.home}/env.sh", f"/usr/bin/id -u >> {SIGN}\n".encode())
    [sandbox] = world.e2b.live
    sandbox.env.update(PATH=f"{own}:/usr/local/bin:/usr/bin:/bin", BASH_ENV=f"{env.layout.home}/env.sh")
    assert await env.stat(env.layout.work) is not None
    again = await provider.create("one", SPEC)
    assert await became(again) == b""


async def test_what_an_access_list_lets_the_agent_write_is_closed(world: E2BWorld, provider: E2BProvider) -> None:
    first = await provider.create("one", SPEC)
    [sandbox] = world.e2b.live
    folder = sandbox.folder / "etc" / "listed"
    folder.mkdir()
    entries = [(0x01, 7, -1), (0x02, 7, users.outside(1000)), (0x04, 5, -1), (0x10, 7, -1), (0x20, 5, -1)]
    listed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(folder, "system.posix_acl_access", struct.pack("<I", 2) + listed)
    except OSError:
        pytest.skip("this disk has no access lists")
    assert (await first.exec(["touch", "/etc/listed/before"])).exit_code == 0
    await provider.create("one", SPEC)
    assert (await first.exec(["touch", "/etc/listed/after"])).exit_code == 1


async def test_the_engine_of_containers_takes_no_orders_of_the_agent(world: E2BWorld, provider: E2BProvider) -> None:
    first = await provider.create("one", SPEC)
    [sandbox] = world.e2b.live
    inside = "/var/lib/lxd/unix.socket"
    path = sandbox.folder / "var-lib" / "lxd" / "unix.socket"
    path.parent.mkdir()
    ask = ["python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).connect({inside!r})"]
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(path))
        engine.listen()
        path.chmod(0o666)
        assert (await first.exec(ask)).exit_code == 0
        await provider.create("one", SPEC)
        assert b"PermissionError" in (await first.exec(ask)).stderr


@pytest.mark.parametrize("kind", ["link", "links", "mount"])
async def test_a_machine_that_cannot_be_closed_is_refused(root: Path, kind: str) -> None:
    from tests.e2b_stand_in import E2BStandIn
    from tests.e2b_stand_in.machine import Bind

    async with e2b_world(root, small_agent(root)) as world:
        provider = world.provider()
        await provider.create("one", SPEC)
        [sandbox] = world.e2b.live
        tool = sandbox.folder / "home" / "tool"
        tool.symlink_to("/usr/bin/true")
        os.chown(tool, users.outside(1000), users.outside(1000), follow_symlinks=False)
        if kind == "links":
            (sandbox.folder / "usr-local" / "bin" / "tool").symlink_to("/home/user/tool")
        elif kind == "link":
            (sandbox.folder / "usr-local" / "bin" / "tool").symlink_to("/home/user/.tool/run")
        else:
            open_to_all = root / "open"
            open_to_all.write_text("")
            open_to_all.chmod(0o777)
            sandbox._binds = [*sandbox._binds, Bind(open_to_all, "/usr/local/bin/tool")]
            await sandbox.power_off()
            await sandbox.thaw()
        assert isinstance(world.e2b, E2BStandIn)
        with pytest.raises(SandboxError, match=r"through /usr/local/bin/tool\. Make root its only writer"):
            await provider.create("one", SPEC)
        await provider.close()


@pytest.mark.skipif("NoNewPrivs:\t1" in Path("/proc/self/status").read_text(), reason="it is so for all here already")
@pytest.mark.parametrize("before", [commands._bound, launching._ordinary], ids=["run", "launch"])
def test_no_program_makes_the_agent_another_user(before: Callable[[], None]) -> None:
    """Here and not in the stand-in, whose boxes hold it of all that is in them."""
    asked = ["grep", "NoNewPrivs", "/proc/self/status"]
    said = subprocess.run(asked, preexec_fn=before, capture_output=True, check=True)
    assert said.stdout.split() == [b"NoNewPrivs:", b"1"]


async def test_global_packages_go_to_the_agents_home(world: E2BWorld, provider: E2BProvider) -> None:
    env = await provider.create("one", SPEC)
    [sandbox] = world.e2b.live
    assert (sandbox.folder / "usr-local" / "etc" / "npmrc").read_text() == "prefix=/home/user/.local\n"
    npm = await env.exec(["npm", "prefix", "--global", "--globalconfig", "/usr/local/etc/npmrc"])
    if npm.exit_code == 0:
        assert npm.stdout == b"/home/user/.local\n"
    found = json.dumps((await env.exec(["sh", "-c", "echo $PATH"])).stdout.decode())
    assert "/home/user/.local/bin" in found
