"""Outside services of an account: stored with their secret in one piece, read by place, forgotten as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bot.errors import UserError, VaultError
from bot.keyring import KeyRing
from bot.models import InstallationId
from bot.outbound import Redactor
from bot.outside import services
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.store import accounts, audit, outside_services
from bot.store.accounts import OPERATOR
from bot.store.base import Address, Store
from bot.store.outside_services import CredentialKind, OutsideService, Purpose
from bot.vault import Vault
from tests.world import SECRET_KEY

ACCOUNT, OTHER = InstallationId(7), InstallationId(8)
SECRET = Secret("canary registry secret")
NPM = OutsideService(ACCOUNT, Purpose.REGISTRY, "internal", "npm", "https://packages.example/npm/", "alice")
BEARER = replace(NPM, credential=CredentialKind.BEARER)


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Store]:
    opened = await Store.open(address)
    yield opened
    await opened.close()


async def test_a_service_and_its_secret_are_one(store: Store) -> None:
    redactor = Redactor()
    vault = Vault(store, KeyRing([Secret(SECRET_KEY)]), redactor.register)
    await vault.prepare()

    async def keep(service: OutsideService, secret: Secret | None = SECRET) -> None:
        await services.keep(store, vault, service, secret, account="octo", inside=InsideHosts())

    await keep(BEARER)
    assert await services.credential(vault, BEARER) == ("authorization", Secret(f"Bearer {SECRET.reveal()}"))
    assert "canary" not in redactor.redact(f"x {SECRET.reveal()} y")
    found = await outside_services.usable(store, Purpose.REGISTRY, ACCOUNT, ["internal", "other"])
    assert found == {"internal": replace(BEARER, stored_at=found["internal"].stored_at)}
    assert not await outside_services.usable(store, Purpose.REGISTRY, OTHER, ["internal"])

    await keep(
        replace(BEARER, installation=OPERATOR, scope="@all", credential=CredentialKind.BASIC, credential_name="u")
    )
    name, value = await services.credential(
        vault, (await outside_services.usable(store, Purpose.REGISTRY, OTHER, ["internal"]))["internal"]
    ) or ("", Secret(""))
    assert (name, value.reveal()) == ("authorization", "Basic dTpjYW5hcnkgcmVnaXN0cnkgc2VjcmV0")
    own = await outside_services.usable(store, Purpose.REGISTRY, ACCOUNT, ["internal"])
    assert own["internal"].scope == "", "an account's own comes before the operator's"

    await keep(NPM, None)
    with pytest.raises(UserError, match="not stored any more"):
        await services.credential(vault, BEARER)
    await keep(BEARER)
    assert await outside_services.remove(store, BEARER, by="bob", account="octo")
    assert not await outside_services.remove(store, BEARER, by="bob", account="octo")
    assert await accounts.credential_of(store, BEARER.secret_name, ACCOUNT) is None
    said = [(one.actor, one.action) for one in await audit.about(store, "octo", 10)]
    assert said.count(("alice", "registry stored")) == 4 and ("bob", "registry removed") in said
    assert "canary" not in repr(await audit.about(store, "octo", 10))


@pytest.mark.parametrize(
    ("service", "secret", "words"),
    [
        (replace(NPM, name="Internal"), None, "name"),
        (replace(NPM, name="a|b"), None, "name"),
        (replace(NPM, address="http://packages.example/"), None, "plain http"),
        (NPM, SECRET, "kind of credential"),
        (BEARER, None, "needs its secret"),
        (BEARER, Secret("  "), "needs its secret"),
        (replace(NPM, credential=CredentialKind.BASIC), SECRET, "user name"),
        (replace(NPM, credential=CredentialKind.BASIC, credential_name="a:b"), SECRET, "user name"),
        (replace(NPM, credential=CredentialKind.HEADER, credential_name="Host"), SECRET, "header"),
        (replace(NPM, credential=CredentialKind.HEADER, credential_name="X-Key: a"), SECRET, "header"),
    ],
)
def test_what_makes_no_sense_is_refused(service: OutsideService, secret: Secret | None, words: str) -> None:
    with pytest.raises(UserError, match=words):
        services.check(service, secret, InsideHosts())


async def test_a_secret_of_several_lines_is_refused(store: Store) -> None:
    vault = Vault(store, KeyRing([Secret(SECRET_KEY)]))
    with pytest.raises(VaultError, match="line break") as refused:
        await services.keep(store, vault, BEARER, Secret("canary\r\nx-more: 1"), account="octo", inside=InsideHosts())
    assert "canary" not in str(refused.value)
