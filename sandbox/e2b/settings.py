"""Defines an operator's choices about E2B: the account, the template, the plan's limits, the bot's address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sandbox.agents.claude_binary import FLOOR
from sandbox.e2b.secret import Unmetered

AGENT = "/usr/local/bin/claude"
WEB_PORTS = (None, 80, 443)  # ports on which E2B's firewall knows names; None: the scheme's default


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class E2BSettings:
    """Settings, by default with the Hobby plan's limits, so that no plan refuses them."""

    api_key: str = field(repr=False)
    gateway_url: str | None  # the bot's public URL, without the gateway's path; None: we connect to sandboxes
    instance: str  # tells our sandboxes from those of other bots in the account
    gateway_address: tuple[str, int] | None = None  # on this host, for connections that we make
    unmetered: Unmetered | None = None  # set if agents reach the model itself, at `gateway_url`, with E2B's help
    template: str = "forgehand"
    egress: frozenset[str] = frozenset()  # hosts that every sandbox may reach
    api_url: str | None = None
    sandbox_url: str | None = None
    domain: str | None = None
    sandboxes: int = 20  # how many may run at a time; more must wait
    creations_per_second: float = 1.0
    lifetime_seconds: int = 600  # without a sign of us it pauses after that, which limits the cost of a dead bot
    longest_seconds: int = 3600  # how long the plan lets a sandbox run without a pause
    snapshot_after: float = 20.0  # keep a snapshot of a repository whose setup takes so many seconds; 0: never
    cpu_usd: float = 0.000014  # price of a second of one vCPU, and below of one GiB, while a sandbox runs
    gib_usd: float = 0.0000045
    agent: str = AGENT
    floor: tuple[int, ...] | None = FLOOR  # the agent's oldest usable version; None: it is not Claude Code

    @property
    def gateway_host(self) -> str | None:
        return urlsplit(self.gateway_url).hostname if self.gateway_url else None

    @property
    def filters_by_name(self) -> bool:
        """Decide whether the gateway needs a rule by name. E2B reads names from requests to the web's two ports, and
        such a rule also opens every protocol and port of 8.8.8.8, a name server, to the sandbox."""
        return self.gateway_host is not None and not is_address(self.gateway_host)

    def by_tunnel(self, more: Iterable[str] | None) -> bool:
        """Decide whether we connect to the sandbox. One that may reach only the gateway gets no rule by name."""
        if self.unmetered is not None:
            return False
        return self.gateway_url is None or (more is None and self.filters_by_name)

    def hosts(self, more: Iterable[str] | None = ()) -> list[str]:
        """List all hosts that a sandbox may reach. None: only the gateway."""
        own = {self.gateway_host} if self.gateway_host and not self.by_tunnel(more) else set()
        if more is None:
            return sorted(own)
        return sorted({*own, *self.egress, *(host.lower() for host in more)})

    @property
    def secret(self) -> str:
        return f"forgehand-{self.instance}"

    def network(self, more: Iterable[str] | None = ()) -> Mapping[str, object]:
        """Build rules for E2B's firewall: out only to these hosts, in only with the sandbox's traffic token."""
        rules = {"rules": self.unmetered.rules(self.secret)} if self.unmetered else {}
        return {"deny_out": ["0.0.0.0/0"], "allow_out": self.hosts(more), "allow_public_traffic": False, **rules}
