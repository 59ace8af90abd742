"""What an operator decides about E2B: the account, the template, the plan's limits, where the bot is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sandbox.agents.claude_binary import FLOOR

AGENT = "/usr/local/bin/claude"
LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class E2BSettings:
    """The plan's numbers are the Hobby plan's, so that nobody is refused by surprise."""

    api_key: str = field(repr=False)
    gateway_url: str
    """Where sandboxes reach the bot: its public URL, without the gateway's own path."""
    instance: str
    """Whose sandboxes these are, where several bots share an account."""
    template: str = "forgehand"
    egress: frozenset[str] = frozenset()
    """Hosts that every sandbox may reach."""
    api_url: str | None = None
    sandbox_url: str | None = None
    domain: str | None = None
    sandboxes: int = 20
    """How many may run at a time; more are queued."""
    creations_per_second: float = 1.0
    lifetime_seconds: int = 600
    """After so long without a sign of us a sandbox pauses; what a dead bot leaks at most."""
    longest_seconds: int = 3600
    """How long the plan lets a sandbox run without a pause."""
    cpu_usd: float = 0.000014
    """A second of one vCPU, and of one GiB, while a sandbox runs."""
    gib_usd: float = 0.0000045
    agent: str = AGENT
    floor: tuple[int, ...] | None = FLOOR
    """The oldest version of the agent that will do; None where it is no Claude Code."""

    @property
    def gateway_host(self) -> str:
        return urlsplit(self.gateway_url).hostname or ""

    def hosts(self, more: frozenset[str] = frozenset()) -> list[str]:
        """All that a sandbox may reach."""
        return sorted({self.gateway_host, *self.egress, *more})

    def network(self, more: frozenset[str] = frozenset()) -> Mapping[str, object]:
        """E2B's own firewall: nothing but these hosts out, and nobody in without the sandbox's traffic token."""
        return {"deny_out": ["0.0.0.0/0"], "allow_out": self.hosts(more), "allow_public_traffic": False}
