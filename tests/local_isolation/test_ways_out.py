"""The two sockets that are a local environment's only ways out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.egress import EgressProxy
from sandbox.local.environment import LocalEnvironment
from sandbox.local.provider import LocalProvider
from tests.local_isolation.inside import SPEC, is_root, python
from tests.world import tls_hellos
from tests.world.environments import shell, until


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


HELLO = tls_hellos.hello("packages.example")
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
        await reader.readexactly(len(HELLO))
        writer.write(b"answer to ")
        writer.write(await reader.readexactly(5))
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
        provider.sockets / "egress.sock",
        lambda host: host.endswith("packages.example"),
        admits=provider.admits,
        resolve=resolve,
        connect=dial,
    )
    await proxy.start()
    script = (
        "import os,socket,sys,urllib.parse as p\n"
        "to = p.urlsplit(os.environ['HTTPS_PROXY'])\n"
        "for target in sys.argv[2:]:\n"
        "    s = socket.create_connection((to.hostname, to.port), 10)\n"
        "    s.sendall(f'CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n'.encode())\n"
        "    head = s.recv(4000).split(b'\\r\\n')[0].decode()\n"
        "    if ' 200 ' in head:\n"
        "        s.sendall(bytes.fromhex(sys.argv[1]) + b'hello'); s.shutdown(1); head += ' ' + s.makefile().read()\n"
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
        result = await python(env, script, HELLO.hex(), "Packages.Example:443", *refused, network=True)
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


ASK = (
    "import socket, sys\n"
    "s = socket.socket(socket.AF_UNIX); s.settimeout(5)\n"
    "try:\n"
    "    s.connect(sys.argv[1]); s.sendall(b'CONNECT packages.example:443 HTTP/1.1\\r\\n\\r\\n')\n"
    "    print(s.recv(100).split()[1].decode())\n"
    "except OSError as e: print(type(e).__name__)\n"
)


async def asked_as(uid: int, path: Path) -> str:
    """By another user of the machine, outside of any box."""
    argv = [
        "setpriv",
        "--reuid",
        str(uid),
        "--regid",
        str(uid),
        "--clear-groups",
        "/usr/bin/python3",
        "-c",
        ASK,
        str(path),
    ]
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode().strip()


@is_root
@pytest.mark.review("suspected-6")
async def test_a_way_out_is_its_own_sandboxes_and_of_no_other_user(provider: LocalProvider) -> None:
    """`502`, of a name that does not resolve: who hears that was let in."""
    spec = replace(SPEC, egress=("packages.example",))
    first, second = [await provider.create(key, spec) for key in ("one", "two")]
    assert isinstance(first, LocalEnvironment) and isinstance(second, LocalEnvironment)

    async def resolve(name: str) -> list[str]:
        raise OSError

    folder = provider.ways / "one"
    everyones, own = (
        EgressProxy(path, lambda host: True, admits=provider.admits, resolve=resolve)
        for path in (provider.sockets / "egress.sock", folder / "egress.sock")
    )
    await everyones.start()
    await own.start()
    try:
        for path in (folder / "egress.sock", provider.sockets / "egress.sock"):
            assert await asked_as(first.uid, path) == "502"
        assert await asked_as(second.uid, folder / "egress.sock") == "PermissionError"
        for stranger in (65534, 61000, 65001):
            assert await asked_as(stranger, folder / "egress.sock") == "PermissionError"
            assert await asked_as(stranger, provider.sockets / "egress.sock") == "403"
        inside = await python(first, ASK, "/run/forgehand/own/egress.sock", network=True)
        assert inside.stdout.split() == [b"502"], inside
        beside = await python(second, ASK, str(folder / "egress.sock"), network=True)
        assert beside.stdout.split() == [b"FileNotFoundError"], beside
    finally:
        await everyones.close()
        await own.close()
