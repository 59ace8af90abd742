"""A registry is stored only with scopes that cover something: otherwise another registry answers for its packages."""

from __future__ import annotations

import pytest

from bot.errors import UserError
from bot.models import InstallationId
from bot.outside import registries
from bot.store.outside_services import OutsideService, Purpose

SCOPES = {
    "npm": ("@acme", "@acme, @Other.x", ["acme", "@acme/*", "@acme/pay", "@", "acme-*"]),
    "pypi": ("acme-*", "acme, acme_pay", ["@acme", "*", "acme/*", "acme-*-x", ".*"]),
    "go": ("git.acme.example/pay", "acme.example/*, acme.example/", ["@acme", "*", "https://acme.example", "a//b"]),
    "maven": ("com.acme", "com.acme.*, acme", ["com/acme", "*", "@acme", "com..acme", "com.acme*"]),
}


@pytest.mark.parametrize("kind", SCOPES)
def test_a_scope_has_the_form_of_its_kind(kind: str) -> None:
    def check(scope: str) -> None:
        service = OutsideService(
            InstallationId(7), Purpose.REGISTRY, "own", kind, "https://packages.example/x/", scope=scope
        )
        registries.check(service)

    *right, wrong = SCOPES[kind]
    for scope in right:
        check(str(scope))
    for scope in wrong:
        with pytest.raises(UserError, match="Each scope must be"):
            check(scope)
