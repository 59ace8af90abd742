"""Receivers: addresses that hear of turns. The whole address is a secret, because those of chats open their channel."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot.errors import UserError
from bot.models import InstallationId
from bot.outside import addresses, services
from bot.repo_config.notify import MOST_RECEIVERS, BulletinEvent, events
from bot.repo_config.wrong import Wrong
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.store import bulletins, outside_services
from bot.store.base import Store
from bot.store.outside_services import CredentialKind, OutsideService, Purpose
from bot.vault import Vault

KIND: Final = "webhook"
KEY_BYTES = 32
KEY_MARK: Final = "whsec_"
"""Libraries for Standard Webhooks take the key with it."""


@dataclass(frozen=True)
class ReceiverTarget:
    url: Secret
    key: Secret
    """As its owner was shown it once."""

    @property
    def key_bytes(self) -> bytes:
        return base64.b64decode(self.key.reveal().removeprefix(KEY_MARK))


@dataclass(frozen=True)
class ReceiverWish:
    """A receiver as a person gave it to us."""

    name: str
    url: Secret
    on: tuple[BulletinEvent, ...] = ()
    """The events that it hears of from all repositories; none: only what their configs say."""


@dataclass(frozen=True)
class ReceiverPlace:
    """For whom it is stored, and by whom."""

    installation: InstallationId
    account: str
    by: str


def read_events(given: Sequence[str]) -> tuple[BulletinEvent, ...]:
    try:
        return events(list(given)) if given else ()
    except Wrong as wrong:
        raise UserError(f"A receiver {wrong}.") from None


async def keep(
    store: Store, vault: Vault, wish: ReceiverWish, place: ReceiverPlace, inside: InsideHosts
) -> tuple[OutsideService, Secret]:
    """Store a receiver in place of one with its name; return it and its new key, which nobody can read again."""
    address = addresses.read(wish.url.reveal().strip(), inside)
    known = await outside_services.of_installation(store, Purpose.RECEIVER, place.installation)
    if len(known) >= MOST_RECEIVERS and wish.name not in {one.name for one in known}:
        raise UserError(f"There are {MOST_RECEIVERS} receivers already. Remove one first.")
    target = ReceiverTarget(
        Secret(address.url), Secret(KEY_MARK + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode())
    )
    service = OutsideService(
        place.installation,
        Purpose.RECEIVER,
        wish.name,
        KIND,
        f"{address.origin}/",
        place.by,
        options={bulletins.ON: ", ".join(wish.on)} if wish.on else {},
        credential=CredentialKind.SIGNATURE,
    )
    packed = Secret(f"{target.key.reveal()} {target.url.reveal()}")
    await services.keep(store, vault, service, packed, account=place.account, inside=inside)
    vault.hide(target.url, target.key)
    return service, target.key


async def target(vault: Vault, service: OutsideService) -> ReceiverTarget:
    packed = await vault.get(service.secret_name, service.installation)
    if packed is None:
        raise UserError(f"The address of {service.name} is not stored any more. Store it again.")
    key, _, url = packed.reveal().partition(" ")
    found = ReceiverTarget(Secret(url), Secret(key))
    vault.hide(found.url, found.key)
    return found
