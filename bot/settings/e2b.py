"""The settings for E2B: the account, the template, the limits of the plan."""

from __future__ import annotations

from urllib.parse import urlsplit

from bot.errors import SettingsError
from bot.settings.reader import SettingsReader
from sandbox.agents.claude import Claude
from sandbox.e2b.secret import Unmetered
from sandbox.e2b.settings import AGENT, WEB_PORTS, E2BSettings, is_address

PROVIDER = "https://api.anthropic.com"


def read(reader: SettingsReader) -> E2BSettings:
    key = reader.secret("E2B_API_KEY")
    if key is None:
        raise SettingsError(
            "FORGEHAND_SANDBOX=e2b needs E2B_API_KEY (or E2B_API_KEY_FILE): make a key at "
            "https://e2b.dev/dashboard?tab=keys."
        )
    url, unmetered = reader.optional_url("FORGEHAND_PUBLIC_URL"), _unmetered(reader)
    if unmetered is None:
        or_else = ", or leave FORGEHAND_PUBLIC_URL out: Forgehand then connects to its sandboxes instead"
        _check_port("FORGEHAND_PUBLIC_URL", url, or_else)
    else:
        url = reader.url("ANTHROPIC_BASE_URL", PROVIDER)
        _check_port("ANTHROPIC_BASE_URL", url)
    return E2BSettings(
        api_key=key.reveal(),
        gateway_url=url,
        unmetered=unmetered,
        instance="",
        template=reader.text("FORGEHAND_E2B_TEMPLATE", "forgehand"),
        agent=reader.text("FORGEHAND_E2B_AGENT", AGENT),
        egress=reader.hosts("FORGEHAND_EGRESS"),
        api_url=reader.optional_url("E2B_API_URL"),
        sandbox_url=reader.optional_url("E2B_SANDBOX_URL"),
        domain=reader.text("E2B_DOMAIN", "") or None,
        sandboxes=reader.whole("FORGEHAND_E2B_SANDBOXES", 20),
        creations_per_second=reader.number("FORGEHAND_E2B_CREATIONS", 1, least=0.01),
        snapshot_after=reader.number("FORGEHAND_E2B_SNAPSHOT_AFTER", 20),
        cpu_usd=reader.number("FORGEHAND_E2B_CPU_PRICE", 0.000014),
        gib_usd=reader.number("FORGEHAND_E2B_MEMORY_PRICE", 0.0000045),
        longest_seconds=round(reader.number("FORGEHAND_E2B_HOURS", 1, least=0.1) * 3600),
    )


def _check_port(name: str, url: str | None, or_else: str = "") -> None:
    parts = urlsplit(url or "")
    if parts.hostname and parts.port not in WEB_PORTS and not is_address(parts.hostname):
        raise SettingsError(
            f"{name} has the port {parts.port}, but E2B's firewall lets sandboxes reach a name only on 443 and 80: "
            f"let your proxy serve it on 443{or_else}."
        )


def _unmetered(reader: SettingsReader) -> Unmetered | None:
    """Read the mode in which E2B holds the key, agents ask the provider directly, and no budget of ours applies."""
    if reader.choice("FORGEHAND_E2B_UNMETERED", "0", ("0", "1")) == "0":
        return None
    if reader.text("FORGEHAND_PROVIDER", "anthropic") != "anthropic":
        raise SettingsError("FORGEHAND_E2B_UNMETERED=1 works only with an API that takes ANTHROPIC_API_KEY.")
    key = reader.secret("ANTHROPIC_API_KEY")
    provider = urlsplit(reader.url("ANTHROPIC_BASE_URL", PROVIDER))
    if key is None or provider.scheme != "https" or not provider.hostname:
        raise SettingsError(
            "FORGEHAND_E2B_UNMETERED=1 needs ANTHROPIC_API_KEY and a provider at an https:// address: E2B puts it "
            "into the requests of its sandboxes."
        )
    return Unmetered(key.reveal(), provider.hostname, path=Claude.gateway_path)
