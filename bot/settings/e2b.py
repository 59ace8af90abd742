"""What is set about E2B: the account, the template, the limits of the plan."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import urlsplit

from bot.errors import SettingsError
from sandbox.agents.claude import Claude
from sandbox.e2b.secret import Unmetered
from sandbox.e2b.settings import AGENT, WEB_PORTS, E2BSettings, is_address

PROVIDER = "https://api.anthropic.com"
LEAVE_OUT = {
    "FORGEHAND_PUBLIC_URL": ", or leave FORGEHAND_PUBLIC_URL out: Forgehand then connects to its sandboxes instead."
}


class _Secret(Protocol):
    def reveal(self) -> str: ...


class E2BReader(Protocol):
    """As `bot.settings` reads single values."""

    def text(self, name: str, default: str | None = None) -> str: ...
    def secret(self, name: str) -> _Secret | None: ...
    def url(self, name: str, default: str) -> str: ...
    def whole(self, name: str, default: int) -> int: ...
    def number(self, name: str, default: float, *, least: float = 0.0) -> float: ...
    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str: ...
    def hosts(self, name: str) -> frozenset[str]: ...


def read(reader: E2BReader) -> E2BSettings:
    """A SettingsError says what is missing for sessions in E2B's cloud."""
    key = reader.secret("E2B_API_KEY")
    if key is None:
        raise SettingsError(
            "FORGEHAND_SANDBOX=e2b needs E2B_API_KEY (or E2B_API_KEY_FILE): make a key at "
            "https://e2b.dev/dashboard?tab=keys."
        )
    url = _optional_url(reader, "FORGEHAND_PUBLIC_URL")
    unmetered = _unmetered(reader)
    if unmetered is not None:
        url = reader.url("ANTHROPIC_BASE_URL", PROVIDER)
    _check_port("FORGEHAND_PUBLIC_URL" if unmetered is None else "ANTHROPIC_BASE_URL", url)
    return E2BSettings(
        api_key=key.reveal(),
        gateway_url=url,
        unmetered=unmetered,
        instance="",
        template=reader.text("FORGEHAND_E2B_TEMPLATE", "forgehand"),
        agent=reader.text("FORGEHAND_E2B_AGENT", AGENT),
        egress=reader.hosts("FORGEHAND_EGRESS"),
        api_url=_optional_url(reader, "E2B_API_URL"),
        sandbox_url=_optional_url(reader, "E2B_SANDBOX_URL"),
        domain=reader.text("E2B_DOMAIN", "") or None,
        sandboxes=reader.whole("FORGEHAND_E2B_SANDBOXES", 20),
        creations_per_second=reader.number("FORGEHAND_E2B_CREATIONS", 1, least=0.01),
        snapshot_after=reader.number("FORGEHAND_E2B_SNAPSHOT_AFTER", 20),
        cpu_usd=reader.number("FORGEHAND_E2B_CPU_PRICE", 0.000014),
        gib_usd=reader.number("FORGEHAND_E2B_MEMORY_PRICE", 0.0000045),
        longest_seconds=round(reader.number("FORGEHAND_E2B_HOURS", 1, least=0.1) * 3600),
    )


def _check_port(name: str, url: str | None) -> None:
    """Sandboxes get there by a name, unless it is an address."""
    parts = urlsplit(url or "")
    if parts.hostname and parts.port not in WEB_PORTS and not is_address(parts.hostname):
        raise SettingsError(
            f"{name} has the port {parts.port}, and E2B's firewall lets sandboxes reach a name at 443 and 80 alone: "
            "have your proxy serve it at 443" + LEAVE_OUT.get(name, ".")
        )


def _unmetered(reader: E2BReader) -> Unmetered | None:
    """Where the operator wants it: E2B is given the key, agents ask the provider, and no budget of ours holds."""
    if reader.choice("FORGEHAND_E2B_UNMETERED", "0", ("0", "1")) == "0":
        return None
    key = reader.secret("ANTHROPIC_API_KEY")
    provider = urlsplit(reader.url("ANTHROPIC_BASE_URL", PROVIDER))
    if key is None or provider.scheme != "https" or not provider.hostname:
        raise SettingsError(
            "FORGEHAND_E2B_UNMETERED=1 needs ANTHROPIC_API_KEY and a provider at an https:// address: E2B puts it "
            "into the requests of its sandboxes."
        )
    return Unmetered(key.reveal(), provider.hostname, path=Claude.gateway_path)


def _optional_url(reader: E2BReader, name: str) -> str | None:
    given = reader.text(name, "")
    return reader.url(name, given) if given else None
