"""The gateway's route for packages, over the wire: what passes, with whose credential, and what nobody reaches."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from bot.outside import services
from bot.settings import Secret
from bot.simulation.registries import NEIGHBOUR, archives
from bot.store import gateway
from bot.store.accounts import OPERATOR
from bot.web.packages import MOST_AT_ONCE
from bot.web.packages.fetching import MOST_OF_AN_ACCOUNT
from tests.world.package_gateway import ACCOUNT, KEY, LOOPBACK, SECRET, PackageRig, rigged

TURN_TOKEN = {"model": "claude-sonnet-5-5", "budget_usd": 1.0}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[PackageRig]:
    async with rigged(tmp_path) as found:
        yield found


async def raw(rig: PackageRig, target: str, *, method: str = "GET", head: str = "", token: str | None = None) -> str:
    """Send a request whose path nobody tidies up; return all of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    shown = f"Authorization: Bearer {rig.token if token is None else token}\r\n"
    host = "" if "host:" in head.lower() else f"Host: 127.0.0.1:{rig.port}\r\n"
    writer.write(f"{method} {target} HTTP/1.1\r\n{host}{shown}{head}Connection: close\r\n\r\n".encode("latin-1"))
    answer = await reader.read()
    writer.close()
    return answer.decode("latin-1")


@pytest.mark.quick("bot.web.packages", "bot.registries")
async def test_a_client_reads_packages_and_the_credential_stays_outside(rig: PackageRig) -> None:
    shelf = rig.registries.shelf("pypi")
    one = shelf.put(archives.wheel("acme-pay", "1.2.3"))
    await rig.stored("pypi")
    token = await rig.opened("pypi")
    base = f"http://127.0.0.1:{rig.port}/gateway/packages/pypi/"
    async with httpx.AsyncClient() as client:
        auth = httpx.BasicAuth("forgehand", token)
        page = await client.get(f"{base}simple/acme-pay/", auth=auth)
        [link] = re.findall(r'href="([^"#]+)', page.text)
        assert link.startswith(base), "the file is on another host, and its address leads to us"
        first, second = [await client.get(link, auth=auth) for _ in range(2)]
        assert first.content == second.content == one.data
        assert (await client.get(f"{base}simple/other/", auth=auth)).status_code == 404
        unsigned = link.replace("/-/at/", "/-/at/x")
        assert (await client.get(unsigned, auth=auth)).status_code == 403
        assert (await client.get(f"{base}simple/acme-pay/")).status_code == 401
    assert SECRET not in page.text + str(page.headers) + first.text + str(first.headers)
    assert not rig.registries.leaks, "the credential went to the host of the files"
    assert len(rig.registries.asked(one.file)) == 1, "the cache answers the second time"
    assert rig.registries.asked("simple/acme-pay")[0].headers["authorization"] == f"Bearer {SECRET}"
    assert token not in repr(rig.registries.requests)

    [found] = await rig.noted(downloads=2)
    assert (found.registry, found.name, found.version) == ("pypi", "acme-pay", "1.2.3")
    assert (found.downloads, found.from_cache, found.bytes) == (2, 1, 2 * len(one.data))
    assert rig.gateway.outcomes["cached"] == 1 and rig.gateway.outcomes["refused"] == 3
    assert rig.gateway.bytes["cache"] == len(one.data)


ESCAPES = r"""
    ../neighbour  ..%2fneighbour  %2e%2e/neighbour  %2e%2e%2fneighbour  %252e%252e/neighbour  %252e%252e%252fneighbour
    ..\neighbour  ..%5cneighbour  x/../../neighbour  x/%2e%2e/%2e%2e/neighbour  /neighbour  //neighbour  %2fneighbour
    .%2e/neighbour  ..;/neighbour  x%00/neighbour  x%0d%0aHost:%20other/neighbour  @127.0.0.1/neighbour?x#y
    http://127.0.0.1/neighbour  -/at/AAAA/http/127.0.0.1/neighbour  %c0%ae%c0%ae/neighbour  ./../neighbour
    -/at/../../../neighbour  %u002e%u002e/neighbour
"""


async def test_nothing_but_the_prefix_is_reached(rig: PackageRig) -> None:
    await rig.stored("generic")
    shelf = rig.registries.shelf("generic")
    shelf.plain["x"] = b"inside the prefix"
    await rig.opened("generic")
    at = "/gateway/packages/generic/"
    assert "inside the prefix" in await raw(rig, f"{at}x")
    answers = {path: await raw(rig, at + path) for path in ESCAPES.split()}
    answers |= {
        target: await raw(rig, target)
        for target in (
            f"http://127.0.0.1:{rig.port}/neighbour",
            f"{rig.registries.url}/neighbour",
            "/gateway/packages/generic",
            "/gateway/packages/generic/../neighbour",
            "/gateway/packages/../packages/generic/x",
            "/gateway/packages//generic/x",
            "/gateway/packages/other/x",
            "/gateway/packages/GENERIC/x",
            "/neighbour",
        )
    }
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "POST", "PROPFIND", "get"):
        answers[method] = await raw(rig, f"{at}x", method=method, head="Content-Length: 0\r\n")
    for head in (
        "Host: registry.example\r\n",
        f"Host: {rig.registries.url[7:]}\r\nX-Forgehand-Inside: evil.example:1\r\n",
        "Authorization: Bearer other\r\n",
    ):
        answers[head] = await raw(rig, f"{at}x", head=head)
    assert not {name for name, answer in answers.items() if NEIGHBOUR in answer or SECRET in answer}
    served = {name for name, answer in answers.items() if answer.startswith("HTTP/1.1 200")}
    assert not served, "each of these is refused"
    assert all(one.path.startswith("/private/generic/") for one in rig.registries.requests)
    assert {one.headers["host"] for one in rig.registries.requests} == {rig.registries.url[7:]}


async def test_a_token_opens_what_it_names_and_nothing_else(rig: PackageRig) -> None:
    await rig.stored("generic")
    rig.registries.shelf("generic").plain["x"] = b"the file"
    at = "/gateway/packages/generic/x"
    expires_at = rig.store.now() + 600
    model = await gateway.mint(rig.store, KEY, ACCOUNT, expires_at=expires_at, **TURN_TOKEN)  # type: ignore[arg-type]
    assert "401" in (await raw(rig, at, token=model.reveal()))[:20], "a model's token opens no registry"
    assert "404" in (await raw(rig, at, token=await rig.opened("pypi")))[:20]
    stranger = await rig.opened("generic", installation=type(ACCOUNT)(8))
    assert "404" in (await raw(rig, at, token=stranger))[:20], "another account has stored none of that name"
    late = await gateway.mint_for_packages(rig.store, KEY, ACCOUNT, ["generic"], rig.store.now() - 1)
    assert "401" in (await raw(rig, at, token=late.reveal()))[:20]
    revoked = await gateway.mint_for_packages(rig.store, KEY, ACCOUNT, ["generic"], expires_at)
    await gateway.revoke_one(rig.store, revoked)
    assert "401" in (await raw(rig, at, token=revoked.reveal()))[:20]
    assert rig.registries.requests == []
    pair = base64.b64encode(f"any:{await rig.opened('generic')}".encode()).decode()
    basic = (await raw(rig, at, token="")).replace("x", "")
    assert "401" in basic[:20] and "the file" in await _with(rig, at, f"Basic {pair}")
    assert "the file" in await _with(rig, at, rig.token), "Cargo shows the bare token"


async def _with(rig: PackageRig, at: str, authorization: str) -> str:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"http://127.0.0.1:{rig.port}{at}", headers={"authorization": authorization})).text


async def test_redirects_and_trouble_end_in_words(rig: PackageRig) -> None:
    service = await rig.stored("generic", options={})
    shelf = rig.registries.shelf("generic")
    shelf.plain |= {"x": b"the file", "y": b"another"}
    at, own = "/gateway/packages/generic/", "/private/generic/"
    rig.registries.redirects |= {
        f"{own}within": f"{own}y",
        f"{own}neighbour": "/neighbour",
        f"{own}dots": f"{own}%2e%2e/%2e%2e/neighbour",
        f"{own}elsewhere": f"{rig.registries.files_url}/private/generic/y",
        f"{own}metadata": "https://169.254.169.254/latest/meta-data/",
        f"{own}file": "file:///etc/passwd",
    }
    await rig.opened("generic")
    assert "another" in await raw(rig, f"{at}within")
    for name in ("neighbour", "dots", "elsewhere", "metadata", "file"):
        answer = await raw(rig, at + name)
        assert answer.startswith("HTTP/1.1 502"), name
        assert "which is not named with it" in answer or "must begin with https://" in answer, name
    assert not [one for one in rig.registries.requests if one.files_host or "neighbour" in one.path.rpartition("/")[0]]

    named = replace(service, options={"hosts": "127.0.0.1"})
    await services.keep(rig.store, rig.vault, named, Secret("outdated"), account="octo", inside=LOOPBACK)
    await rig.opened("generic")
    answer = await raw(rig, f"{at}x")
    assert answer.startswith("HTTP/1.1 403") and "credential stored for it is missing, wrong" in answer
    assert "outdated" not in answer
    await services.keep(rig.store, rig.vault, named, Secret(SECRET), account="octo", inside=LOOPBACK)
    await rig.opened("generic")
    assert "404" in (await raw(rig, f"{at}elsewhere"))[:20]
    assert [one.headers.get("authorization") for one in rig.registries.requests if one.files_host] == [None]
    assert not rig.registries.leaks


async def test_a_poisoned_index_leads_nowhere_inside(rig: PackageRig) -> None:
    """The owner has named no further host, so an index may name only hosts that the whole internet reaches."""
    await rig.stored("npm", options={})
    names = (
        "http://169.254.169.254/a.tgz",
        "https://169.254.169.254/a.tgz",
        "https://localhost/a.tgz",
        f"{rig.registries.files_url}/private/npm/a.tgz",
        f"{rig.registries.url}/neighbour/a.tgz",
        "file:///etc/passwd",
        "//127.0.0.1/a.tgz",
        "https://[::ffff:10.0.0.1]/a.tgz",
        "https://0x7f.1/a.tgz",
    )
    versions = ",".join(f'"1.0.{n}":{{"dist":{{"tarball":"{name}"}}}}' for n, name in enumerate(names))
    document = f'{{"name":"bad","versions":{{{versions}}}}}'.encode()
    rig.registries.documents["/private/npm/bad"] = ("application/json", document)
    await rig.opened("npm")
    at = "/gateway/packages/npm/"
    page = await raw(rig, f"{at}bad")
    links = re.findall(r'"tarball": ?"([^"]+)"', page)
    assert len(links) == len(names)
    for link in links:
        path = link.removeprefix(f"http://127.0.0.1:{rig.port}") if link.startswith("http") else at + link
        assert not (await raw(rig, path)).startswith("HTTP/1.1 200"), link
    assert [one.path for one in rig.registries.requests] == ["/private/npm/bad"]


async def test_a_large_package_streams_and_a_broken_one_is_seen(rig: PackageRig) -> None:
    size = 100 << 20
    await rig.stored("generic")
    rig.registries.shelf("generic").plain["large"] = size
    await rig.opened("generic")
    url, token = f"http://127.0.0.1:{rig.port}/gateway/packages/generic/large", {"authorization": f"Bearer {rig.token}"}
    before = _peak()
    async with httpx.AsyncClient() as client, client.stream("GET", url, headers=token) as answer:
        assert sum([len(chunk) async for chunk in answer.aiter_raw()]) == size
    assert _peak() - before < 30 << 20, "stand-in, gateway and client together hold a few blocks"
    assert [one.bytes for one in await rig.noted()] == [size]


async def test_one_session_takes_neither_all_connections_nor_all_memory(rig: PackageRig) -> None:
    """A registry of one account that never answers, and one whose indexes are huge, hold up nobody else."""
    service = await rig.stored("generic")
    await services.keep(
        rig.store, rig.vault, replace(service, installation=OPERATOR), Secret(SECRET), account="all", inside=LOOPBACK
    )
    await rig.stored("npm")
    rig.registries.shelf("generic").plain |= {"slow": b"slow", "x": b"the file"}
    released = rig.registries.held["/private/generic/slow"] = asyncio.Event()
    at = "/gateway/packages/generic/"
    tokens = [await rig.opened("generic", "npm") for _ in range(2)]
    slow = [asyncio.create_task(raw(rig, f"{at}slow", token=token)) for token in tokens for _ in range(MOST_AT_ONCE)]
    async with asyncio.timeout(20):
        while len(rig.registries.asked("slow")) < MOST_OF_AN_ACCOUNT:
            await asyncio.sleep(0)
        other = await rig.opened("generic", installation=type(ACCOUNT)(8))
        assert "the file" in await raw(rig, f"{at}x", token=other)
        assert len(rig.registries.asked("slow")) == MOST_OF_AN_ACCOUNT
        released.set()
        assert all("slow" in one for one in await asyncio.gather(*slow)), "the others have waited"

    rig.registries.documents |= {
        f"/private/npm/huge{n}": ("application/json", b'{"a":"' + bytes([97]) * (24 << 20) + b'"}') for n in range(6)
    }
    found = await asyncio.gather(*(raw(rig, f"/gateway/packages/npm/huge{n}", token=tokens[0]) for n in range(6)))
    statuses = [one[9:12] for one in found]
    assert {"200", "429"} >= set(statuses) and "429" in statuses, "a token holds so much at a time, and no more"


def _peak() -> int:
    """Return the most memory that this process has had, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) << 10
