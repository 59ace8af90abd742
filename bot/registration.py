"""The GitHub App's id, key and secrets as they are stored, and how they stand in for settings."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

import msgspec

from bot.errors import SettingsError, VaultError
from bot.keyring import KeyRing
from bot.settings import GITHUB, Address, Secret
from bot.store import accounts
from bot.store.accounts import OPERATOR
from bot.vault import APP, Vault, place

_LABEL = re.compile(r"-----BEGIN ((?:RSA )?PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_PROOF = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SECRETS = ("private_key", "webhook_secret", "client_secret")
LINE = 64
POLL_SECONDS = "5"
"""The period if we read GitHub's log because it cannot call us."""


@dataclass(frozen=True)
class Registered:
    """An App that was made or named on the set-up page."""

    app_id: int
    slug: str
    private_key: Secret
    webhook_secret: Secret
    client_id: str
    client_secret: Secret
    github_url: str
    public_url: str = ""
    """Empty if GitHub's log is read instead."""
    page_url: str = ""
    """The App's page at GitHub."""

    def settings(self) -> dict[str, str]:
        named = {
            "FORGEHAND_APP_ID": str(self.app_id),
            "FORGEHAND_PRIVATE_KEY": self.private_key.reveal(),
            "FORGEHAND_WEBHOOK_SECRET": self.webhook_secret.reveal(),
            "FORGEHAND_CLIENT_ID": self.client_id,
            "FORGEHAND_CLIENT_SECRET": self.client_secret.reveal(),
            "FORGEHAND_GITHUB_URL": self.github_url,
            "FORGEHAND_PUBLIC_URL": self.public_url,
            "FORGEHAND_POLL_SECONDS": "" if self.public_url else POLL_SECONDS,
        }
        return {name: value for name, value in named.items() if value}


class _Stored(msgspec.Struct):
    app_id: int
    slug: str
    private_key: str
    webhook_secret: str
    client_id: str = ""
    client_secret: str = ""
    github_url: str = GITHUB
    public_url: str = ""
    page_url: str = ""


async def save(vault: Vault, app: Registered) -> None:
    """Store them as one secret: a key is of no use without its id."""
    values = {one.name: getattr(app, one.name) for one in fields(app)}
    stored = {name: value.reveal() if isinstance(value, Secret) else value for name, value in values.items()}
    await vault.put(APP, OPERATOR, Secret(base64.b64encode(msgspec.json.encode(stored)).decode()))


def peek(where: Address, ring: KeyRing) -> Registered | None:
    """Read a database before the store opens it: the settings are needed first. Blocking."""
    for row in accounts.peek_credential(where):
        if (row.name, row.installation) == (APP, OPERATOR):
            return _read(ring.open(row.ciphertext, place(APP, OPERATOR)))
    return None


async def load(vault: Vault) -> Registered | None:
    found = await vault.get(APP, OPERATOR)
    app = _read(found) if found else None
    if app is not None:
        vault.hide(app.private_key, app.webhook_secret, app.client_secret)
    return app


def _read(found: Secret) -> Registered:
    try:
        stored = msgspec.json.decode(base64.b64decode(found.reveal()), type=_Stored)
    except (ValueError, msgspec.MsgspecError):
        raise VaultError("The stored GitHub App cannot be read: run `forgehand setup` again.") from None
    secrets = {name: Secret(getattr(stored, name)) for name in _SECRETS}
    return Registered(**msgspec.structs.asdict(stored) | secrets)


def under(values: Mapping[str, str], app: Registered | None) -> dict[str, str]:
    """Complete the settings from the stored App, unless they name another App; what is set wins."""
    given = {name for name, value in values.items() if value.strip()}
    if app is None or values.get("FORGEHAND_APP_ID", "").strip() not in ("", str(app.app_id)):
        return dict(values)
    stored = {name: value for name, value in app.settings().items() if not given & {name, f"{name}_FILE"}}
    return {**values, **stored}


def pem(text: str) -> Secret:
    """Read a private key as people paste it: other line ends, one line, quotes, blanks around it."""
    found = _LABEL.search(text.replace("\\r", "").replace("\\n", "\n"))
    body = re.sub(r"\s+", "", found[2]) if found else ""
    if found is None or not _PROOF.fullmatch(body):
        raise SettingsError(
            "That is not a private key: paste the whole .pem file that GitHub gave you, from -----BEGIN to END-----."
        )
    lines = [body[at : at + LINE] for at in range(0, len(body), LINE)]
    return Secret("\n".join([f"-----BEGIN {found[1]}-----", *lines, f"-----END {found[1]}-----", ""]))
