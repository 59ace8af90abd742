"""What an operator decides about E2B: the account, the template, the plan's limits, where the bot is reached."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sandbox.agents.claude_binary import FLOOR
from sandbox.e2b.secret import Unmetered

AGENT = "/usr/local/bin/claude"
WEB_PORTS = (None, 80, 443)  # where E2B's firewall knows names; None: the scheme's own


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class E2BSettings:
    """The plan's numbers are the Hobby plan's, so that nobody is refused by surprise."""

    api_key: str = field(repr=False)
    gateway_url: str | None
    """Where sandboxes reach the bot: its public URL, without the gateway's own path. None: we connect to them."""
    instance: str  # whose sandboxes these are, where several bots share an account
    gateway_address: tuple[str, int] | None = None  # of this host: what is served through those connections
    unmetered: Unmetered | None = None
    """Set where agents reach the model itself, at `gateway_url`, with a key that E2B puts in."""
    template: str = "forgehand"
    egress: frozenset[str] = frozenset()  # hosts that every sandbox may reach
    api_url: str | None = None
    sandbox_url: str | None = None
    domain: str | None = None
    sandboxes: int = 20  # how many may run at a time; more are queued
    creations_per_second: float = 1.0
    lifetime_seconds: int = 600
    """After so long without a sign of us a sandbox pauses; what a dead bot leaks at most."""
    longest_seconds: int = 3600  # how long the plan lets a sandbox run without a pause
    snapshot_after: float = 20.0
    """Seconds that a repository takes to be brought in and set up, from which on a snapshot is kept of it; 0: never."""
    cpu_usd: float = 0.000014  # a second of one vCPU, and of one GiB, while a sandbox runs
    gib_usd: float = 0.0000045
    agent: str = AGENT
    floor: tuple[int, ...] | None = FLOOR
    """The oldest version of the agent that will do; None where it is no Claude Code."""

    @property
    def gateway_host(self) -> str | None:
        return urlsplit(self.gateway_url).hostname if self.gateway_url else None

    @property
    def filters_by_name(self) -> bool:
        """E2B knows names by what requests to the web's two ports say, and opens a name server of others beside them:
        any protocol and port of 8.8.8.8, for each sandbox that may reach anything by a name."""
        return self.gateway_host is not None and not is_address(self.gateway_host)

    def by_tunnel(self, more: Iterable[str] | None) -> bool:
        """Whether we connect to the sandbox instead. One that may reach nothing else is not given a name either."""
        if self.unmetered is not None:
            return False
        return self.gateway_url is None or (more is None and self.filters_by_name)

    def hosts(self, more: Iterable[str] | None = ()) -> list[str]:
        """All that a sandbox may reach. None: nothing beside the gateway."""
        own = {self.gateway_host} if self.gateway_host and not self.by_tunnel(more) else set()
        if more is None:
            return sorted(own)
        return sorted({*own, *self.egress, *(host.lower() for host in more)})

    @property
    def secret(self) -> str:
        return f"forgehand-{self.instance}"

    def network(self, more: Iterable[str] | None = ()) -> Mapping[str, object]:
        """E2B's own firewall: nothing but these hosts out, and nobody in without the sandbox's traffic token."""
        rules = {"rules": self.unmetered.rules(self.secret)} if self.unmetered else {}
        return {"deny_out": ["0.0.0.0/0"], "allow_out": self.hosts(more), "allow_public_traffic": False, **rules}
