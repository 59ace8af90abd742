"""Chooses the kind of environment: E2B if it is set; else local boxes if they isolate; else plain processes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from sandbox.agents import claude_binary
from sandbox.agents.claude_binary import Newest
from sandbox.e2b.settings import E2BSettings
from sandbox.egress import is_own_user
from sandbox.errors import IsolationMissing
from sandbox.local.provider import LocalProvider
from sandbox.plain import PlainProvider, PlainSettings
from sandbox.primitives import EnvironmentProvider, Marks, PlanPlaces, Snapshots, Witness


@dataclass(frozen=True)
class CloudRecords:
    """What has to be stored about environments in a cloud; None: it is kept in memory, or not at all."""

    witness: Witness | None = None
    marks: Marks | None = None
    places: PlanPlaces | None = None


@dataclass(frozen=True)
class EnvironmentChoice:
    provider: EnvironmentProvider
    sockets: Path  # where environments look for gateway.sock and egress.sock
    isolated: bool
    words: str  # for the operator
    ways: Path | None = None  # where environments that may reach more hosts look for KEY/egress.sock
    admits: Callable[[int], bool] = is_own_user  # decides whether a peer on those sockets may be an environment
    snapshots: Snapshots | None = None
    why: str = ""  # what is missing for isolation
    not_newest: str = ""  # why the agent's program could not be updated


async def choose(
    root: Path,
    *,
    isolate: bool = True,
    e2b: E2BSettings | None = None,
    records: CloudRecords | None = None,
    newest_in: Path | None = None,
) -> EnvironmentChoice:
    """Choose environments, after a probe box has proved isolation. Without `isolate`, choose plain processes.

    `newest_in`: the folder of the newest agent program, which is updated first; None: the tested one is used."""
    if e2b is not None:
        return _cloud(root, e2b, records or CloudRecords())
    tested = claude_binary.find()
    agent = await claude_binary.newest(newest_in, tested) if newest_in is not None else Newest(tested)
    choice = await _here(root, agent.program, isolate=isolate)
    return replace(choice, not_newest=agent.failure)


async def _here(root: Path, agent: Path, *, isolate: bool) -> EnvironmentChoice:
    if not isolate:
        return _plain(root, agent, "you asked for it")
    local = LocalProvider(root, agent)
    try:
        await local.start()
    except IsolationMissing as missing:
        await local.close()
        return _plain(root, agent, str(missing))
    return EnvironmentChoice(
        local, local.sockets, isolated=True, words="local boxes (bubblewrap)", ways=local.ways, admits=local.admits
    )


def _cloud(root: Path, settings: E2BSettings, records: CloudRecords) -> EnvironmentChoice:
    from sandbox.e2b.provider import E2BProvider

    if find_spec("e2b") is None:
        raise IsolationMissing("E2B's SDK is not installed: pip install 'forgehand[e2b]' brings it.")
    provider = E2BProvider(settings, witness=records.witness, marks=records.marks, room=records.places)
    words = f"sandboxes in E2B's cloud (template {settings.template})"
    return EnvironmentChoice(provider, root / "sockets", isolated=True, words=words, snapshots=provider)


def instance_of(root: Path) -> str:
    """Return the name that the data directory proposes, to tell our sandboxes from others' in the account."""
    path = root / "instance"
    if not path.exists():
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = path.with_name(f".instance-{secrets.token_hex(4)}")
        partial.write_text(secrets.token_hex(8), encoding="ascii")
        partial.replace(path)
    return path.read_text(encoding="ascii").strip()


def _plain(root: Path, agent: Path, why: str) -> EnvironmentChoice:
    sockets = root / "sockets"
    sockets.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings = PlainSettings(root=root / "plain", sockets=sockets, agent_binary=agent)
    words = f"PLAIN PROCESSES WITHOUT ISOLATION, private repositories only: {why}"
    return EnvironmentChoice(PlainProvider(settings), sockets, isolated=False, words=words, ways=settings.ways, why=why)
