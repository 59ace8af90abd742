"""What a session fetched, or a registry said, must not decide what a later session gets."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from bot.outside import services
from bot.settings import Secret
from bot.simulation.registries import archives
from bot.store.outside_services import CredentialKind
from tests.world.package_gateway import LOOPBACK, SECRET, PackageRig, rigged


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[PackageRig]:
    async with rigged(tmp_path) as found:
        yield found


async def get(rig: PackageRig, path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        shown = {"authorization": f"Bearer {rig.token}", **headers}
        return await client.get(f"http://127.0.0.1:{rig.port}/gateway/packages/{path}", headers=shown)


async def test_no_answer_brings_the_credential_inside(rig: PackageRig) -> None:
    """Artifactory answers `<npm registry>/auth/<scope>` with a part of .npmrc: the user's password in base64."""
    await rig.stored("npm")
    await rig.stored("generic")
    password = base64.b64encode(SECRET.encode()).decode()
    said = f"//host/:_password={password}\n//host/:username=bot\n".encode()
    rig.registries.documents["/private/npm/auth/acme"] = ("text/plain", said)
    documents = {
        "plain": SECRET.encode(),
        "late": bytes(300_000) + f"Bearer {SECRET}".encode() + bytes(300_000),
        "within": base64.b64encode(f"x:{SECRET}".encode()),
        "hex": SECRET.encode().hex().encode(),
    }
    rig.registries.shelf("generic").plain.update(documents)
    await rig.opened("npm", "generic")
    assert (await get(rig, "npm/auth/acme")).status_code == 502
    for name in documents:
        for _ in range(2):
            try:
                body = (await get(rig, f"generic/{name}")).content
            except httpx.RemoteProtocolError:
                body = b""  # the length was announced before
            assert not any(told in body for told in (SECRET.encode(), documents["within"], documents["hex"])), name
    assert len(rig.registries.asked("generic/plain")) == 2, "it was not kept"


async def test_an_answer_counts_for_the_registry_that_was_asked(rig: PackageRig) -> None:
    """Two registries may have one address, as npm's public and an organisation's private packages do."""
    private = await rig.stored("npm")
    rig.registries.shelf("npm").put(archives.npm("@acme/pay", "1.0.0"))
    await rig.opened("npm")
    assert (await get(rig, "npm/@acme%2fpay")).status_code == 200
    public = replace(private, name="open", credential=CredentialKind.NONE)
    await services.keep(rig.store, rig.vault, public, None, account="octo", inside=LOOPBACK)
    await rig.opened("open")
    assert (await get(rig, "open/@acme%2fpay")).status_code == 403, "what another credential read stays with it"
    await services.keep(rig.store, rig.vault, private, Secret("outdated"), account="octo", inside=LOOPBACK)
    await rig.opened("npm")
    assert (await get(rig, "npm/@acme%2fpay")).status_code == 403, "what the old credential read is gone with it"


async def test_a_client_does_not_choose_what_the_next_one_gets(rig: PackageRig) -> None:
    one = rig.registries.shelf("pypi").put(archives.wheel("acme-pay", "1.2.3"))
    rig.registries.shelf("generic").plain["x"] = b"x"
    await rig.stored("pypi")
    await rig.stored("generic")
    await rig.opened("pypi", "generic")
    [link] = re.findall(r'href="[^"#]+gateway/packages/([^"#]+)', (await get(rig, "pypi/simple/acme-pay/")).text)
    assert (await get(rig, link, accept="text/html")).content == one.data
    assert rig.registries.asked(one.file)[0].headers["accept"] == "*/*", "a package has one form"
    for accept in ("application/json", "application/octet-stream"):
        await get(rig, "generic/x", accept=accept)
    asked = rig.registries.asked("generic/x")
    assert [one.headers["accept"] for one in asked] == ["application/json", "application/octet-stream"]
    assert not [one for one in asked if "if-none-match" in one.headers], "each form is known by itself"


async def test_an_index_reads_the_same_from_the_cache(rig: PackageRig) -> None:
    """Its addresses start where it was found, and that may be behind a redirect."""
    await rig.stored("pypi")
    await rig.opened("pypi")
    own = "/private/pypi/"
    page = ("text/html", b'<a href="../files/acme_pay-1.0-py3-none-any.whl">acme</a>')
    rig.registries.documents[f"{own}moved/here/acme-pay/"] = page
    rig.registries.redirects[f"{own}simple/acme-pay/"] = f"{own}moved/here/acme-pay/"
    first, second = [(await get(rig, "pypi/simple/acme-pay/")).text for _ in range(2)]
    assert "moved/here/files/" in first and first == second
    assert len(rig.registries.asked("simple/acme-pay")) == 1


async def test_a_registry_in_trouble_is_answered_for_and_a_page_for_people_is_no_package(rig: PackageRig) -> None:
    await rig.stored("generic")
    await rig.stored("npm")
    await rig.opened("generic", "npm")
    rig.registries.shelf("generic").plain["x"] = b"the file"
    assert (await get(rig, "generic/x")).text == "the file"
    rig.registries.statuses["/private/generic/x"] = 503
    assert (await get(rig, "generic/x")).text == "the file"
    assert (await get(rig, "generic/y")).status_code == 404
    tarball = "/private/npm/acme/-/acme-1.0.0.tgz"
    rig.registries.documents[tarball] = ("text/html", b"<h1>Please sign in</h1>")
    await get(rig, "npm/acme/-/acme-1.0.0.tgz")
    rig.registries.documents[tarball] = ("application/octet-stream", b"the package")
    assert (await get(rig, "npm/acme/-/acme-1.0.0.tgz")).text == "the package"
