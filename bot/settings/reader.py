"""Reads one setting by its name and checks it; a wrong value gives one sentence with the setting's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from bot.errors import SettingsError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST = 1_000_000_000
LONGEST_SHOWN = 40
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")
_WORD = re.compile(r"[a-z0-9_-]{1,80}")
_HOST = re.compile(r"(?=.{1,253}\Z)(?!-)[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


@dataclass(frozen=True)
class Secret:
    """A value that no repr, log line or traceback shows; call `reveal()` only where you use it."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        return self._value

    def __str__(self) -> str:
        return "[secret]"

    def __repr__(self) -> str:
        return "Secret([secret])"


class SettingsReader:
    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str | None = None) -> str:
        value = self._values.get(name, "").strip()
        if value:
            return value
        if default is None:
            raise SettingsError(f"{name} is not set. docs/operator.md lists what is needed, under Settings.")
        return default

    def secret(self, name: str, *, required: bool = False) -> Secret | None:
        value = self._values.get(name, "").strip()
        file = self._values.get(f"{name}_FILE", "").strip()
        if file and not value:
            value = _content(f"{name}_FILE", Path(file).expanduser())
        if value:
            return Secret(value)
        if required:
            raise SettingsError(f"{name} is not set. Set it, or {name}_FILE to the path of a file that holds it.")
        return None

    def header(self, name: str) -> Secret | None:
        found = self.secret(name)
        if found is not None and not all("!" <= letter <= "~" for letter in found.reveal()):
            raise SettingsError(f"{name} is not a key: it has spaces or odd characters in it. Copy it again.")
        return found

    def number(self, name: str, default: float | None, *, least: float = 0.0) -> float:
        raw = self.text(name, None if default is None else str(default))
        given = repr(raw if len(raw) <= LONGEST_SHOWN else f"{raw[:LONGEST_SHOWN]}…")
        if not _NUMBER.fullmatch(raw):
            raise SettingsError(f"{name} must be a number such as 20 or 7.5, not {given}.")
        value = float(raw)
        if value < least:
            raise SettingsError(f"{name} must be at least {least:g}, not {given}.")
        if value > LARGEST:
            raise SettingsError(f"{name} must be at most {LARGEST:,}, not {given}.")
        return value

    def whole(self, name: str, default: int | None, *, least: int = 1) -> int:
        value = self.number(name, default, least=least)
        if value != int(value):
            raise SettingsError(f"{name} must be a whole number, not {value:g}.")
        return int(value)

    def names(self, name: str) -> tuple[str, ...]:
        """Split a list joined by commas, in lower case."""
        return tuple(one.strip().lower() for one in self.text(name, "").split(",") if one.strip())

    def words(self, name: str) -> frozenset[str]:
        return self._all_like(_WORD, "names such as some_field", name)

    def port(self, name: str, default: int) -> int:
        """Read a port; 0 means any free one."""
        value = self.whole(name, default, least=0)
        if value > 65535:
            raise SettingsError(f"{name} must be at most 65535, not {value}.")
        return value

    def hosts(self, name: str) -> frozenset[str]:
        """Read bare host names: one with a scheme, a port or a wildcard would match nothing."""
        return self._all_like(_HOST, "host names such as packages.example", name)

    def _all_like(self, pattern: re.Pattern[str], like: str, name: str) -> frozenset[str]:
        found = self.names(name)
        for one in found:
            if not pattern.fullmatch(one):
                raise SettingsError(f"{name} takes {like}, joined by commas, not {one!r}.")
        return frozenset(found)

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name, default)
        if value not in allowed:
            one_of = "one of " if len(allowed) > 1 else ""
            raise SettingsError(f"{name} must be {one_of}{', '.join(allowed)}, not {value!r}.")
        return value

    def url(self, name: str, default: str) -> str:
        return address(name, self.text(name, default))

    def optional_url(self, name: str) -> str | None:
        given = self.text(name, "")
        return self.url(name, given) if given else None


def address(name: str, value: str) -> str:
    """Check an address that we send requests to."""
    value = value.rstrip("/")
    parts = _split(value)
    if "@" in value and (parts is None or not parts.netloc or "@" in parts.netloc):  # first: it is not repeated
        raise SettingsError(f"{name} must not contain a user name or password.")
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"{name} must be an https:// address, not {value!r}.")
    if "?" in value or "#" in value:
        raise SettingsError(f"{name} must be an address without `?` or `#`.")
    if not parts.path.isascii() or any(letter <= " " or letter == "\x7f" for letter in value):
        raise SettingsError(f"{name} must be an address without spaces; write special characters of its path as %xx.")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise SettingsError(f"{name} uses plain http, which works only for this machine; use https://.")
    if value.isascii():
        return value
    # the host's name as DNS has it: hosts are compared, and headers and certificates know no other form
    host = parts.hostname.encode("idna").decode()
    return parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}").geturl()


def _content(name: str, path: Path) -> str:
    try:
        content = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError(f"{name} names a file that cannot be read: {reason}.") from None
    if not content:
        raise SettingsError(f"{name} names a file that is empty.")
    return content


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018 - reading it raises if it is no port
        (parts.hostname or "").encode("idna")  # raises if it cannot be a name
    except ValueError:
        return None
    return parts
