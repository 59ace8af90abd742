"""Reads a stored package registry: which dialect it speaks, for what, and which further hosts its owner has named."""

from __future__ import annotations

import re
from typing import Final

from bot.errors import UserError
from bot.registries import DIALECTS
from bot.registries.shape import RegistryDialect, RegistryDoor
from bot.store.outside_services import OutsideService

PATH: Final = "/gateway/packages/"
"""Below this, a registry's name and a slash begin its route."""
HOSTS = "hosts"
"""The option that names further hosts, to which the registry may redirect."""
MOST_NAMED = 20
_HOST = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


def door(service: OutsideService, base: str = "", token: str = "") -> RegistryDoor:
    return RegistryDoor(service.name, base, token, dialect_of(service), words(service.scope))


def dialect_of(service: OutsideService) -> RegistryDialect:
    return DIALECTS[service.kind](service.address)


def words(text: str) -> tuple[str, ...]:
    return tuple(one for one in re.split(r"[\s,]+", text) if one)


def is_named(service: OutsideService, host: str) -> bool:
    """Tell whether the registry's owner has named a further host."""
    named = words(service.options.get(HOSTS, ""))
    return any(host == one or (one.startswith("*.") and host.endswith(one[1:])) for one in named)


def check(service: OutsideService) -> None:
    """Raise UserError for what makes no registry."""
    if service.kind not in DIALECTS:
        raise UserError(f"The kind of a registry is one of: {', '.join(DIALECTS)}.")
    dialect_of(service)  # or it says what is wrong with the address
    dialect, scopes, hosts = DIALECTS[service.kind], words(service.scope), words(service.options.get(HOSTS, ""))
    if scopes and not dialect.takes_scopes:
        raise UserError(f"A registry of the kind `{service.kind}` has no scopes.")
    if len(scopes) > MOST_NAMED or not all(len(one) <= 100 and dialect.scope_form.fullmatch(one) for one in scopes):
        raise UserError(f"Each scope must be {dialect.scope_words}. At most {MOST_NAMED}, separated by commas.")
    if len(hosts) > MOST_NAMED or not all(_HOST.fullmatch(one) for one in hosts):
        raise UserError(
            f"Further hosts must be names such as files.example or *.files.example. At most {MOST_NAMED}, separated "
            "by commas."
        )
    if "?" in service.address:
        raise UserError("The address of a registry must not contain `?`.")
