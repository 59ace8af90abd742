"""From inside a box with the clients that agents use: one host's tunnel does not lead to its neighbour."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509

from sandbox.egress import EgressProxy
from sandbox.local.environment import LocalEnvironment
from sandbox.local.provider import LocalProvider
from tests.local_isolation.inside import python
from tests.world.certificates import Authority
from tests.world.environments import shell

HOST = "packages.example"
pytestmark = pytest.mark.review("security-10")


class Cdn:
    """One address for all customers; each page says whose it is."""

    def __init__(self) -> None:
        self.served: list[str] = []
        self._names: dict[ssl.SSLObject, str] = {}

    def named(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        self._names[connection] = name or "nobody"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = self._names[writer.get_extra_info("ssl_object")]
        while head := await reader.readuntil(b"\r\n\r\n"):
            self.served.append(name)
            body = f"{'1' * 40}\trefs/heads/{name}\n".encode() * (b"HEAD" not in head.split()[1])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()


@pytest.fixture(params=["tls 1.3", "tls 1.2", "hello retry"])
async def cdn(request: pytest.FixtureRequest, provider: LocalProvider, tmp_path: Path) -> AsyncIterator[Cdn]:
    context = Authority(tmp_path).server(x509.DNSName("*.example"))
    if request.param == "tls 1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if request.param == "hello retry":
        context.set_ecdh_curve("secp384r1")
    found = Cdn()
    context.sni_callback = found.named
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]

    async def resolve(name: str) -> list[str]:
        return ["151.101.0.223"]

    async def dial(address: str, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", port)

    socket = provider.sockets / "egress.sock"
    proxy = EgressProxy(socket, lambda host: host == HOST, admits=provider.admits, resolve=resolve, connect=dial)
    await proxy.start()
    yield found
    await proxy.close()
    server.close()


async def test_curl_and_git_get_the_page_of_the_host_that_is_allowed(cdn: Cdn, env: LocalEnvironment) -> None:
    page = f"refs/heads/{HOST}"
    curl = await env.exec(shell(f"curl -sSk --max-time 20 https://{HOST}/x"), network=True)
    git = await env.exec(shell(f"git -c http.sslVerify=false ls-remote https://{HOST}/x"), network=True)
    assert page in curl.stdout.decode(), curl.stderr
    assert page in git.stdout.decode(), git.stderr
    assert set(cdn.served) == {HOST}


async def test_no_client_gets_a_neighbours_page(cdn: Cdn, env: LocalEnvironment) -> None:
    curl = f"curl -sSk --max-time 20 --connect-to evil.example:443:{HOST}:443 https://evil.example/x"
    git = f"git -c http.sslVerify=false -c http.curloptResolve=evil.example:443:{HOST} ls-remote https://evil.example/x"
    raw = (
        "import os, socket, ssl, urllib.parse as p\n"
        "to = p.urlsplit(os.environ['HTTPS_PROXY'])\n"
        "for name in ('evil.example', None):\n"
        "    s = socket.create_connection((to.hostname, to.port), 10)\n"
        f"    s.sendall(b'CONNECT {HOST}:443 HTTP/1.1\\r\\n\\r\\n')\n"
        "    assert b' 200 ' in s.recv(4000)\n"
        "    c = ssl._create_unverified_context()\n"
        "    try:\n"
        "        with c.wrap_socket(s, server_hostname=name) as t:\n"
        "            t.sendall(b'GET /x HTTP/1.1\\r\\n\\r\\n')\n"
        "            print(t.recv(4000))\n"
        "    except ssl.SSLError as wrong:\n"
        "        print(wrong.reason)\n"
    )
    found = await env.exec(shell(curl), network=True)
    assert found.exit_code != 0 and "refs/heads" not in found.stdout.decode()
    found = await env.exec(shell(git), network=True)
    assert found.exit_code != 0 and "refs/heads" not in found.stdout.decode()
    found = await python(env, raw, network=True)
    assert found.stdout.decode().split() == ["TLSV1_UNRECOGNIZED_NAME"] * 2, found
    assert cdn.served == []


@pytest.mark.parametrize("client", ["pip", "npm"])
async def test_package_clients_ask_the_host_that_is_allowed(cdn: Cdn, env: LocalEnvironment, client: str) -> None:
    """What they are answered is no package; that they get through to the host, and to no other, is what counts."""
    ask = {
        "pip": "python3 -m pip download -q --retries 0 --timeout 10 --no-cache-dir --trusted-host {host} "
        "--index-url https://{host}/simple/ thing",
        "npm": "npm view thing --registry=https://{host}/ --strict-ssl=false --fetch-retries=0 --fetch-timeout=10000",
    }[client]
    there = await env.exec(shell(f"command -v {client}"))
    if there.exit_code != 0:
        pytest.skip(f"{client} is not in the box")
    await env.exec(shell(ask.format(host=HOST)), network=True)
    assert set(cdn.served) == {HOST}
    asked = len(cdn.served)
    other = await env.exec(shell(ask.format(host="evil.example")), network=True)
    assert other.exit_code != 0 and len(cdn.served) == asked
