"""Finds the store: an SQLite file in the data directory, or a database on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from bot.errors import SettingsError
from bot.settings.reader import Secret, SettingsReader

Address = Path | Secret
"""A file, or the URL of a server, which may hold a password."""
NAME = "FORGEHAND_DATABASE_URL"
ENGINE_SCHEMA = "dbos"
"""The engine's, beside the store's."""
PASSWORD = "FORGEHAND_DATABASE_PASSWORD"  # noqa: S105 - the name of a setting
_FORM = f"{NAME} must be like postgresql://user@host:5432/forgehand"


def is_set(values: Mapping[str, str]) -> bool:
    """Tell whether a server is named."""
    return any(values.get(name, "").strip() for name in (NAME, f"{NAME}_FILE"))


def in_folder(data_dir: Path) -> Path:
    """Return the path of the file; nothing else decides it."""
    return data_dir / "state.db"


def read(reader: SettingsReader, data_dir: Path) -> Address:
    """Read the address. The password may be in the URL, or better in a separate file."""
    url, password = reader.secret(NAME), reader.secret(PASSWORD)
    if url is None:
        if password is not None:
            raise SettingsError(f"{PASSWORD} is set without {NAME}. Set both, or neither to use SQLite.")
        return in_folder(data_dir)
    try:
        parts = urlsplit(url.reveal())
        well_formed = bool(parts.hostname or "host=" in parts.query) and len(parts.path) > 1 and parts.port != 0
    except ValueError:
        well_formed = False
    if not well_formed or parts.scheme not in ("postgresql", "postgres"):
        raise SettingsError(f"{_FORM}. Leave it empty to use SQLite.")
    if password is None:
        return url
    if parts.password is not None or _parameters(parts, "password"):
        raise SettingsError(f"{NAME} holds a password, and {PASSWORD} is set too. Remove one of them.")
    if parts.username is None:
        raise SettingsError(f"{_FORM}: {PASSWORD} needs the user's name in the URL.")
    user, _, host = parts.netloc.rpartition("@")
    return Secret(parts._replace(netloc=f"{user}:{quote(password.reveal(), safe='')}@{host}").geturl())


def passwords_of(where: Address) -> tuple[Secret, ...]:
    """Return the passwords in a URL, before the host or among the parameters: no text that leaves us may hold them."""
    if isinstance(where, Path):
        return ()
    parts = urlsplit(where.reveal())
    found = [parts.password, *_parameters(parts, "password"), *_parameters(parts, "sslpassword")]
    return tuple(Secret(unquote(one)) for one in found if one)


def _parameters(parts: SplitResult, name: str) -> list[str]:
    pairs = (one.partition("=") for one in parts.query.split("&"))
    return [value for key, _, value in pairs if unquote(key) == name]
