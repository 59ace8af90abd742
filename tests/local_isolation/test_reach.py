"""What somebody inside a local environment reaches, judged by what arrived and not by what was attempted."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from sandbox.agents import claude_binary
from sandbox.errors import IsolationMissing
from sandbox.local.environment import LocalEnvironment
from sandbox.plain import PlainProvider, PlainSettings
from tests.local_isolation.inside import SPEC, tried
from tests.world.environments import shell, small_agent


@pytest.mark.acceptance("C15")
async def test_no_byte_leaves(env: LocalEnvironment) -> None:
    arrived: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await reader.read(10))
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    abstract = await asyncio.start_unix_server(take, f"\0forgehand-{os.getpid()}")
    port = server.sockets[0].getsockname()[1]
    tcp, udp = "socket.AF_INET, socket.SOCK_STREAM", "socket.AF_INET, socket.SOCK_DGRAM"
    found = await tried(
        env,
        loopback=f"dial({tcp}, ('127.0.0.1', {port}))",
        metadata=f"dial({tcp}, ('169.254.169.254', 80))",
        internet=f"dial({tcp}, ('192.0.2.1', 443))",
        private=f"dial({tcp}, ('10.0.0.1', 80))",
        dns=f"dial({udp}, ('192.0.2.1', 53))",
        quic=f"dial({udp}, ('192.0.2.1', 443))",
        ipv6="dial(socket.AF_INET6, socket.SOCK_STREAM, ('2606:4700:4700::1111', 443))",
        mapped="dial(socket.AF_INET6, socket.SOCK_STREAM, ('::ffff:192.0.2.1', 443))",
        abstract=f"dial(socket.AF_UNIX, socket.SOCK_STREAM, '\\0forgehand-{os.getpid()}')",
        name="socket.getaddrinfo('github.com', 443)",
    )
    server.close()
    abstract.close()
    assert arrived == []
    assert [name for name, what in found.items() if "Error" not in what and "gaierror" not in what] == []
    assert "unreachable" in found["metadata"]


@pytest.mark.acceptance("F16")
async def test_the_kernel_is_closed(env: LocalEnvironment) -> None:
    found = await tried(
        env,
        core_pattern="open('/proc/sys/kernel/core_pattern', 'w')",
        sysrq="open('/proc/sysrq-trigger', 'w')",
        swappiness="open('/proc/sys/vm/swappiness', 'w').write('60')",
        vsock="socket.socket(40, socket.SOCK_STREAM)",
        packet="socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        alg="socket.socket(38, socket.SOCK_SEQPACKET)",
        raw="socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        setuid="os.setuid(0)",
        unshare="libc.unshare(0x10000000) and 1/0",
        mount="libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) and 1/0",
        chroot="os.chroot('/tmp')",
        io_uring="call(425, 1, 0)",
        type_ahead="fcntl.ioctl(0, 0x5412, b'x')",
        usr="open('/usr/bin/git', 'a')",
        etc="open('/etc/passwd', 'a')",
        agent="open('/opt/forgehand/bin/claude', 'a')",
        runner="open('/opt/forgehand/runner/forwarder.py', 'a')",
        unlink_runner="os.unlink('/opt/forgehand/runner/forwarder.py')",
        root_file="open('/new', 'w')",
        device="os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0))",
        dev_file="open('/dev/new', 'w')",
    )
    assert [name for name, what in found.items() if "Error" not in what] == []
    assert "not supported" in found["vsock"]


@pytest.mark.acceptance("F16")
async def test_nobody_outside_can_be_signalled_and_the_hosts_ports_stay_the_hosts(
    env: LocalEnvironment, root: Path
) -> None:
    """Whatever numbers it tries: it sees no process but its own, and its ports are those of another network."""
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    bystander = subprocess.Popen(["sleep", "60"])
    found = await tried(
        env,
        host=f"os.kill({os.getpid()}, 9)" if os.getpid() > 50 else "1/0",
        bystander=f"os.kill({bystander.pid}, 9)" if bystander.pid > 50 else "1/0",
        environ=f"open('/proc/{os.getpid()}/environ').read()" if os.getpid() > 50 else "1/0",
        root=f"os.listdir('/proc/{os.getpid()}/root')" if os.getpid() > 50 else "1/0",
        state=f"open({str(root / 'env')!r})",
        above="open('../../../../../../etc/shadow').read()",
        link=f"os.symlink({str(root)!r}, '/tmp/up') or os.listdir('/tmp/up')",
        ssh="os.listdir('/root/.ssh')",
        docker="socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
        port=f"socket.socket().bind(('127.0.0.1', {port})) or 'bound in a network of its own'",
    )
    assert found.pop("port").startswith("bound in a network of its own")
    assert [name for name, what in found.items() if "Error" not in what] == []
    assert (await env.exec(shell("kill -9 -1; true"))).exit_code != 127
    assert bystander.poll() is None, "not even with everybody meant"
    bystander.kill()
    bystander.wait()
    server.close()


@pytest.mark.acceptance("F16")
async def test_plain_processes_do_not_serve_public_repositories(root: Path) -> None:
    plain = PlainProvider(PlainSettings(root / "plain", root / "sockets", small_agent(root)))
    with pytest.raises(IsolationMissing):
        await plain.create("one", SPEC)
    assert await plain.find({}) == []


@pytest.mark.acceptance("F17")
def test_an_agent_below_the_floor_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_binary, "FLOOR", (999, 0, 0))
    with pytest.raises(IsolationMissing, match=r"too old: .* brings 999\.0\.0 or newer"):
        claude_binary.find()
