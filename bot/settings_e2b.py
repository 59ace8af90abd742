"""What is set about E2B: the account, the template, the limits of the plan."""

from __future__ import annotations

from typing import Protocol

from bot.errors import SettingsError
from sandbox.e2b.settings import AGENT, E2BSettings


class _Secret(Protocol):
    def reveal(self) -> str: ...


class Reader(Protocol):
    """As `bot.settings` reads single values."""

    def text(self, name: str, default: str | None = None) -> str: ...
    def secret(self, name: str) -> _Secret | None: ...
    def url(self, name: str, default: str) -> str: ...
    def whole(self, name: str, default: int) -> int: ...
    def number(self, name: str, default: float, *, least: float = 0.0) -> float: ...
    def hosts(self, name: str) -> frozenset[str]: ...


def read(reader: Reader) -> E2BSettings:
    """A SettingsError says what is missing for sessions in E2B's cloud."""
    key = reader.secret("E2B_API_KEY")
    if key is None:
        raise SettingsError(
            "FORGEHAND_SANDBOX=e2b needs E2B_API_KEY (or E2B_API_KEY_FILE): make a key at "
            "https://e2b.dev/dashboard?tab=keys."
        )
    public = _optional_url(reader, "FORGEHAND_PUBLIC_URL")
    if public is None:
        raise SettingsError(
            "FORGEHAND_SANDBOX=e2b needs FORGEHAND_PUBLIC_URL: agents in E2B's cloud reach their model through this "
            "service, at that address."
        )
    return E2BSettings(
        api_key=key.reveal(),
        gateway_url=public,
        instance="",
        template=reader.text("FORGEHAND_E2B_TEMPLATE", "forgehand"),
        agent=reader.text("FORGEHAND_E2B_AGENT", AGENT),
        egress=reader.hosts("FORGEHAND_EGRESS"),
        api_url=_optional_url(reader, "E2B_API_URL"),
        sandbox_url=_optional_url(reader, "E2B_SANDBOX_URL"),
        domain=reader.text("E2B_DOMAIN", "") or None,
        sandboxes=reader.whole("FORGEHAND_E2B_SANDBOXES", 20),
        creations_per_second=reader.number("FORGEHAND_E2B_CREATIONS", 1, least=0.01),
        cpu_usd=reader.number("FORGEHAND_E2B_CPU_PRICE", 0.000014),
        gib_usd=reader.number("FORGEHAND_E2B_MEMORY_PRICE", 0.0000045),
        longest_seconds=round(reader.number("FORGEHAND_E2B_HOURS", 1, least=0.1) * 3600),
    )


def _optional_url(reader: Reader, name: str) -> str | None:
    given = reader.text(name, "")
    return reader.url(name, given) if given else None
