"""Finds out what a request's token opens: the registries that the turn's repository has named."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bot.models import InstallationId, TurnKey
from bot.outside import registries
from bot.registries.shape import RegistryDoor, RegistryRefusal, out_of_scope
from bot.registries.signing import LinkSigner
from bot.settings import Secret
from bot.store import gateway, outside_services
from bot.store.base import Store
from bot.store.outside_services import OutsideService, Purpose

KNOWN_SECONDS = 1.0
"""A client asks for a thousand packages in a row. So a revoked token works for one second more, and only reads."""
MOST_KNOWN = 500
UNKNOWN = "The token of this turn is not valid, or has ended."


@dataclass(frozen=True)
class OpenedRegistry:
    service: OutsideService
    door: RegistryDoor
    signer: LinkSigner


@dataclass(frozen=True)
class OpenedRegistries:
    sha256: str
    """The token's digest."""
    key: TurnKey
    installation: InstallationId
    by_name: Mapping[str, OpenedRegistry]

    def one(self, name: str) -> OpenedRegistry:
        found = self.by_name.get(name)
        if found is None:
            raise RegistryRefusal(404, "The repository's config opens no registry of this name.")
        return found

    def meant(self, name: str, path: str) -> tuple[OpenedRegistry, str]:
        """Return the registry that a client means by a path below one of them, and the path there."""
        own = self.one(name)
        door, path = own.door.dialect.led(path, own.door, [one.door for one in self.by_name.values()])
        return self.one(door.name), path

    def is_silent(self, registry: OpenedRegistry, subject: str | None) -> bool:
        """Tell whether another registry answers for this project."""
        return out_of_scope(subject, registry.door, [one.door for one in self.by_name.values()])


class Openings:
    """Looks tokens up, and remembers each for a moment."""

    def __init__(self, store: Store, key: Secret, clock: Callable[[], float]) -> None:
        self._store = store
        self._key = hmac.digest(key.reveal().encode(), b"addresses in indexes", "sha256")
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, OpenedRegistries]] = OrderedDict()

    async def of(self, token: str) -> OpenedRegistries:
        """Raise RegistryRefusal unless the token lives and is one for packages."""
        sha256 = gateway.digest(token)
        at, known = self._known.get(sha256, (0.0, None))
        if known is not None and time.monotonic() - at < KNOWN_SECONDS:
            return known
        granted = await gateway.grant(self._store, sha256)
        if granted is None or granted.registries is None or not granted.is_live(self._clock()):
            raise RegistryRefusal(401, UNKNOWN)
        found = await outside_services.usable(self._store, Purpose.REGISTRY, granted.installation, granted.registries)
        opened = {}
        for name, one in found.items():
            signer = LinkSigner(self._key, str(granted.installation), name, one.address)
            opened[name] = OpenedRegistry(one, registries.door(one), signer)
        result = OpenedRegistries(sha256, granted.key, granted.installation, opened)
        self._known[sha256] = time.monotonic(), result
        self._known.move_to_end(sha256)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return result


def shown_token(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the token that a package client shows: as a bearer, as the password of a user, or bare (Cargo)."""
    shown = [value.decode("latin-1").strip() for name, value in headers if name.lower() == b"authorization"]
    if not shown:
        raise RegistryRefusal(401, "Send the turn's token. Forgehand's own configuration of this client holds it.")
    if len(shown) > 1 or not (shown[0].isascii() and shown[0].isprintable()):
        raise RegistryRefusal(400, "Send one plain authorization header.")
    scheme, _, rest = shown[0].partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).decode("latin-1").partition(":")[2]
        except binascii.Error:
            raise RegistryRefusal(400, "The authorization header cannot be read.") from None
    return rest.strip() if scheme.lower() == "bearer" else shown[0]
