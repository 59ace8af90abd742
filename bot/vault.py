"""Secrets at rest: stored encrypted, read at the moment of use, and refused as a whole under a wrong key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.errors import SettingsError, VaultError
from bot.keyring import KeyRing, SecretPlace, key_id
from bot.models import InstallationId
from bot.settings import Address, Secret
from bot.store import accounts
from bot.store.accounts import COLUMN, OPERATOR, TABLE, Sealed
from bot.store.base import Database, Store

API_KEY = "ANTHROPIC_API_KEY"
OAUTH_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 - the name of one
NAMES = (API_KEY, OAUTH_TOKEN)
"""The names of the model's credentials."""
TERMS = (
    "Anthropic intends a subscription's token for its subscriber's own, ordinary use of Anthropic's applications, and "
    "asks for an API key for work on behalf of others: https://code.claude.com/docs/en/legal-and-compliance"
)
"""People read this when they choose the token."""
APP = "FORGEHAND_APP"
"""The GitHub App, as `registration` packs it."""
OUTSIDE = ("registry:", "mcp:", "receiver:")
"""The beginnings of the names of outside services' secrets (`store/outside_services`)."""
CHECK = "_check"
"""A row whose value is known: it tells a wrong key before there is any secret."""
CHECK_VALUE = "forgehand"
BATCH = 20
LONGEST = 4096
LONGEST_APP = 16_384
"""Enough for the largest private key."""


@dataclass(frozen=True)
class SecretEntry:
    """A stored secret, without its value."""

    name: str
    installation: InstallationId
    updated_at: float
    fingerprint: str | None
    """None if it cannot be read."""
    key_id: str


class Vault:
    """Call `prepare` once; `verify` has looked at the file before."""

    def __init__(self, store: Store, ring: KeyRing, on_secret: Callable[[str], None] = lambda _: None) -> None:
        self._store = store
        self._ring = ring
        self._on_secret = on_secret

    @classmethod
    async def opened(cls, store: Store, ring: KeyRing, on_secret: Callable[[str], None]) -> Vault:
        vault = cls(store, ring, on_secret)
        await vault.prepare()
        return vault

    async def prepare(self) -> None:
        """Store the check value under our newest key, which shows from now on that the service has that key."""
        require(self._ring, await accounts.every_credential(self._store))
        if not await self.knows_newest():
            sealed = self._ring.seal(CHECK_VALUE, place(CHECK, OPERATOR))
            await accounts.put_credential(self._store, CHECK, OPERATOR, sealed)

    async def knows_newest(self) -> bool:
        check = await accounts.credential_of(self._store, CHECK, OPERATOR)
        return check is not None and key_id(check.ciphertext) == self._ring.newest

    async def put(self, name: str, installation: InstallationId, value: Secret) -> None:
        await accounts.put_credential(self._store, name, installation, await self.seal(name, installation, value))

    async def seal(self, name: str, installation: InstallationId, value: Secret) -> str:
        """Encrypt it with the key of the check value: a running service may not have a newer one yet."""
        checked = require_storable(name, value)
        self.hide(Secret(checked))
        check = await accounts.credential_of(self._store, CHECK, OPERATOR)
        known = key_id(check.ciphertext) if check else self._ring.newest
        return self._ring.seal(checked, place(name, installation), under=known)

    def hide(self, *values: Secret) -> None:
        """Hide from now on in log lines what came from a person or GitHub and is not stored as it is."""
        for value in values:
            self._on_secret(value.reveal())

    async def get(self, name: str, installation: InstallationId) -> Secret | None:
        """Raise VaultError if it is there and cannot be read."""
        row = await accounts.credential_of(self._store, name, installation)
        return self.read(row) if row else None

    async def around(self, installation: InstallationId) -> dict[tuple[str, InstallationId], Sealed]:
        """Return what is stored for the installation and for the operator, unread."""
        rows = await accounts.credentials_around(self._store, installation)
        return {(row.name, row.installation): row for row in rows}

    def read(self, row: Sealed) -> Secret:
        value = self._ring.open(row.ciphertext, place(row.name, row.installation))
        self._on_secret(value.reveal())
        return value

    async def entries(self) -> list[SecretEntry]:
        found = []
        for row in await accounts.every_credential(self._store):
            if row.name != CHECK:
                try:
                    shown: str | None = fingerprint(self.read(row))
                except VaultError:
                    shown = None
                found.append(SecretEntry(row.name, row.installation, row.updated_at, shown, key_id(row.ciphertext)))
        return found

    async def rotate(self) -> int:
        """Encrypt all secrets with the newest key; return how many had another. Stopped anywhere, all can be read with
        the ring as it is; called again, it goes on."""
        total = 0
        while count := await self._store.write(self._rotate_some):
            total += count
        return total

    def _rotate_some(self, db: Database) -> int:
        old = [row for row in accounts.credentials_of(db) if key_id(row.ciphertext) != self._ring.newest]
        for row in old[:BATCH]:
            where = place(row.name, row.installation)
            value = self._ring.open(row.ciphertext, where).reveal()
            accounts.replace_credential(db, row, self._ring.seal(value, where))
        return len(old[:BATCH])


def verify(where: Address, ring: KeyRing) -> None:
    """Raise SettingsError if the keys are not those of the database, before the store opens and perhaps changes it.
    Blocking."""
    require(ring, accounts.peek_credential(where))


def require(ring: KeyRing, rows: Sequence[Sealed]) -> None:
    missing = sorted({key_id(row.ciphertext) for row in rows} - ring.ids)
    if missing:
        named = " and ".join(one or "unknown" for one in missing)
        raise SettingsError(
            f"FORGEHAND_SECRET_KEY is not the key that this data directory was encrypted with (it needs key {named}; "
            f"set is {' and '.join(sorted(ring.ids))}). Put the old key back: FORGEHAND_SECRET_KEY=new,old while "
            "you rotate. If it is lost, `forgehand keys remove --all` forgets what was encrypted with it."
        )
    try:
        for row in rows:
            if row.name == CHECK and row.installation == OPERATOR:
                ring.open(row.ciphertext, place(CHECK, OPERATOR))
    except VaultError:
        raise SettingsError(
            "FORGEHAND_SECRET_KEY is the right key, but it cannot read the check value of the stored secrets: the data "
            "directory is damaged. Restore a backup, or start over with `forgehand keys remove "
            "--all`."
        ) from None


def fingerprint(value: Secret) -> str:
    """Tell two values apart without showing them."""
    return hashlib.sha256(value.reveal().encode()).hexdigest()[:12]


def place(name: str, installation: InstallationId) -> SecretPlace:
    return SecretPlace(TABLE, COLUMN, installation, name)


def require_storable(name: str, value: Secret) -> str:
    """Refuse what may not be stored; the error names the mistake, not the value."""
    text, is_outside = value.reveal().strip(), name.startswith(OUTSIDE)
    if not is_outside and name not in (*NAMES, APP):
        raise VaultError(f"There is no secret of that name; known are {' and '.join(NAMES)}.")
    if not text:
        raise VaultError(f"Nothing was given for {name}.")
    if is_outside:
        if len(text) > LONGEST or not all(" " <= letter <= "~" for letter in text):
            raise VaultError(f"The secret for {name} has a line break or odd characters in it, or is too long.")
        return text
    if len(text) > (LONGEST_APP if name == APP else LONGEST) or not all("!" <= letter <= "~" for letter in text):
        raise VaultError(
            f"What was given for {name} is not a key: it has spaces or odd characters in it, or is too long."
        )
    is_oauth = text.startswith("sk-ant-oat")
    if is_oauth != (name == OAUTH_TOKEN) and text.startswith("sk-ant-"):
        other = OAUTH_TOKEN if is_oauth else API_KEY
        raise VaultError(f"What was given for {name} looks like the value of {other}.")
    return text
