"""What somebody inside a local environment tries, judged by what arrived and not by what was attempted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from sandbox.agents import claude_binary
from sandbox.egress import EgressProxy
from sandbox.errors import EnvironmentBusy, IsolationMissing
from sandbox.local.box import Limits
from sandbox.local.environment import LocalEnvironment
from sandbox.local.exposure import connect
from sandbox.local.folders import Base
from sandbox.local.members import members, stat_fields
from sandbox.local.provider import LocalProvider
from sandbox.local.tools import check_prefix
from sandbox.plain import PlainProvider, PlainSettings
from sandbox.primitives import EnvironmentSpec, ExecResult, Liveness
from tests.environment_world import shell, short_folder, small_agent, until, until_size

SPEC = EnvironmentSpec({"session": "one"}, public_repository=True)
CANARY = "canary-93b1f2"
REPOSITORY = Path(__file__).parents[1]
BUNDLED = (
    REPOSITORY / ".venv/lib" / f"python3.{sys.version_info.minor}" / "site-packages/claude_agent_sdk/_bundled/claude"
)

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: each environment has a user of its own then")


@pytest.fixture
def root() -> Iterator[Path]:
    with short_folder() as found:
        yield found


@asynccontextmanager
async def running(
    root: Path, *, limits: Limits | None = None, agent: Path | None = None
) -> AsyncIterator[LocalProvider]:
    provider = LocalProvider(root / "env", agent or small_agent(root), limits=limits)
    try:
        await provider.start()
    except IsolationMissing as error:
        pytest.skip(str(error))
    try:
        yield provider
    finally:
        for environment in await provider.find({}):
            await environment.terminate()
        await provider.close()


@pytest.fixture
async def provider(root: Path) -> AsyncIterator[LocalProvider]:
    async with running(root) as found:
        yield found


async def created(provider: LocalProvider, key: str = "one") -> LocalEnvironment:
    found = await provider.create(key, SPEC)
    assert isinstance(found, LocalEnvironment)
    return found


@pytest.fixture
async def env(provider: LocalProvider) -> LocalEnvironment:
    return await created(provider)


async def python(env: LocalEnvironment, script: str, *arguments: str, network: bool = False) -> ExecResult:
    return await env.exec([env.layout.python, "-c", script, *arguments], network=network, timeout=30)


async def tried(env: LocalEnvironment, **attempts: str) -> dict[str, str]:
    """Each attempt is an expression; the answer is its value or the error's name."""
    script = (
        "import ctypes, fcntl, json, os, socket, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(*a):\n"
        "    if libc.syscall(*a) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))\n"
        "    return 'done'\n"
        "def dial(family, kind, to, data=b'x'):\n"
        "    with socket.socket(family, kind) as s:\n"
        "        s.settimeout(3); s.connect(to); s.send(data); return 'sent'\n"
        "out = {}\n"
        "for name, text in json.loads(sys.argv[1]).items():\n"
        "    try: out[name] = str(eval(text))\n"
        "    except BaseException as e: out[name] = type(e).__name__ + ': ' + str(e)\n"
        "print(json.dumps(out))\n"
    )
    result = await python(env, script, json.dumps(attempts))
    found: dict[str, str] = json.loads(result.stdout)
    return found


# --- what it can see


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
    found = await two.exec(shell("grep -rs canary- /home /work /tmp /run /dev/shm /var/tmp; ls /proc; ps -ef"))
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


# --- what it can reach


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


# --- what it can use up or leave behind


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
    limits = Limits(processes=40 if os.geteuid() == 0 else 1)
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
        env = await created(provider)
        result = await env.exec([env.layout.python, "-c", bomb], timeout=1.5)
        assert result.timed_out
        assert int(await env.read(f"{env.layout.out}/count")) < 41
        assert members(env._folders.home) == []
        assert (await env.exec(["true"])).exit_code == 0


@pytest.mark.acceptance("C11")
async def test_a_file_has_a_largest_size(root: Path) -> None:
    async with running(root, limits=Limits(file_bytes=1 << 20)) as provider:
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


# --- found again, never confused


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


# --- the two sockets


@asynccontextmanager
async def listening(path: Path, answer: bytes) -> AsyncIterator[None]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + answer + head.split(b"\r\n")[0])
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    path.chmod(0o666)
    try:
        yield
    finally:
        server.close()
        with suppress(FileNotFoundError):
            path.unlink()


FETCH = "import os,urllib.request as u; print(u.urlopen(os.environ['FORGEHAND_GATEWAY']+'/x', timeout=20).read())"


async def test_the_gateway_is_reached_and_waited_for(provider: LocalProvider, env: LocalEnvironment) -> None:
    path = provider.sockets / "gateway.sock"
    async with listening(path, b"first "):
        assert b"first GET /x" in (await python(env, FETCH, network=True)).stdout
    await env.write(f"{env.layout.work}/fetch.py", FETCH.encode())
    script = f"touch {env.layout.out}/up; exec {env.layout.python} {env.layout.work}/fetch.py"
    waiting = asyncio.create_task(env.exec(shell(script), network=True, timeout=30))

    async def begun() -> bool:
        return await env.stat(f"{env.layout.out}/up") is not None

    await until(begun)
    async with listening(path, b"second "):
        assert b"second GET /x" in (await waiting).stdout


@pytest.mark.acceptance("F16")
async def test_the_sockets_folder_cannot_be_changed(provider: LocalProvider, env: LocalEnvironment) -> None:
    async with listening(provider.sockets / "gateway.sock", b""):
        result = await env.exec(
            shell(
                "cd /run/forgehand/sockets; rm -f gateway.sock; touch new; mv gateway.sock x; ln -s / y; chmod 777 ."
            ),
            network=True,
        )
        assert result.exit_code != 0
        assert sorted(one.name for one in provider.sockets.iterdir()) == ["gateway.sock"]


@pytest.mark.acceptance("C15")
async def test_egress_is_by_name_and_logged(provider: LocalProvider, env: LocalEnvironment) -> None:
    connected: list[str] = []

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"answer to " + await reader.read(100))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(far, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def dial(address: str, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        connected.append(f"{address}:{number}")
        return await asyncio.open_connection("127.0.0.1", port)

    async def resolve(name: str) -> list[str]:
        return {"packages.example": ["151.101.0.223"], "evil.packages.example": ["151.101.0.223", "10.0.0.1"]}[name]

    proxy = EgressProxy(
        provider.sockets / "egress.sock", lambda host: host.endswith("packages.example"), resolve=resolve, connect=dial
    )
    await proxy.start()
    script = (
        "import os,socket,sys,urllib.parse as p\n"
        "to = p.urlsplit(os.environ['HTTPS_PROXY'])\n"
        "for target in sys.argv[1:]:\n"
        "    s = socket.create_connection((to.hostname, to.port), 10)\n"
        "    s.sendall(f'CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n'.encode())\n"
        "    head = s.recv(4000).split(b'\\r\\n')[0].decode()\n"
        "    if ' 200 ' in head: s.sendall(b'hello'); s.shutdown(1); head += ' ' + s.recv(100).decode()\n"
        "    print(head)\n"
    )
    refused = ["github.com:443", "api.anthropic.com:443", "127.0.0.1:443", "169.254.169.254:443", "[::1]:443"]
    refused += [
        "packages.example:80",
        "packages.example:22",
        "packages.example.evil.example:443",
        "evil.packages.example:443",
        "0x7f000001:443",
    ]
    try:
        result = await python(env, script, "Packages.Example:443", *refused, network=True)
    finally:
        await proxy.close()
        server.close()
    lines = result.stdout.decode().splitlines()
    assert lines[0] == "HTTP/1.1 200 Connection established answer to hello"
    assert all(" 403 " in line for line in lines[1:])
    assert len(lines) == 1 + len(refused)
    assert connected == ["151.101.0.223:443"]
    assert [f"{one.host}:{one.port}" for one in proxy.denied] == refused
    assert {one.peer_uid for one in proxy.denied} == {env.uid}


# --- where it lives, what it shows


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
    base = Base(root / "env")
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
from sandbox.local.members import members
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
    base = Base(root / ("y" * 120))
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(base.sockets / "gateway.sock"))
    finally:
        subprocess.run(["rm", "-rf", str(base.path)], check=True)
