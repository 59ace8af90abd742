"""Which local environments this host can have: boxes where they isolate, else plain processes, and the words for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.agents import claude_binary
from sandbox.errors import IsolationMissing
from sandbox.local.provider import LocalProvider
from sandbox.plain import PlainProvider, PlainSettings
from sandbox.primitives import EnvironmentProvider


@dataclass(frozen=True)
class Choice:
    provider: EnvironmentProvider
    sockets: Path
    """Where environments look for gateway.sock and egress.sock."""
    isolated: bool
    words: str
    """For the operator."""
    why: str = ""
    """What is missing for isolation; empty where it is not."""


async def choose(root: Path, *, isolate: bool = True) -> Choice:
    """Proved by a real probe box, not assumed. Without `isolate`, plain processes also where boxes could be had."""
    agent = claude_binary.find()
    if not isolate:
        return _plain(root, agent, "it was asked for")
    local = LocalProvider(root, agent)
    try:
        await local.start()
    except IsolationMissing as missing:
        await local.close()
        return _plain(root, agent, str(missing))
    return Choice(local, local.sockets, isolated=True, words="local boxes (bubblewrap)")


def _plain(root: Path, agent: Path, why: str) -> Choice:
    sockets = root / "sockets"
    sockets.mkdir(parents=True, exist_ok=True, mode=0o700)
    provider = PlainProvider(PlainSettings(root=root / "plain", sockets=sockets, agent_binary=agent))
    words = f"PLAIN PROCESSES WITHOUT ISOLATION, private repositories only: {why}"
    return Choice(provider, sockets, isolated=False, words=words, why=why)
