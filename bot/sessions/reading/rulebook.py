"""Reads what the repository says to agents, from the base branch and never from what is worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.agent import material
from bot.agent.material import Rulebook
from bot.kinds.parts import AgentReading
from bot.models import RepoId
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn

MAX_FILE_BYTES = 1 << 20
_UNUSED = "which Forgehand does not use"


async def read(services: Services, repo: RepoId, branch: str, sha: str | None) -> Rulebook:
    if sha is None:
        return Rulebook(branch)
    paths = await services.cache.paths(repo, sha)
    claude = await _text(services, repo, sha, material.CLAUDE)
    agents = await _text(services, repo, sha, material.AGENTS) if material.wanted(claude) else None
    found = ((material.CLAUDE, claude), (material.AGENTS, agents))
    return Rulebook(
        branch,
        files=tuple((name, text) for name, text in found if text is not None),
        nested=await asyncio.to_thread(material.nested, paths),
        unused=await asyncio.to_thread(material.unused, paths),
    )


async def untold(services: Services, turn: Turn, unused: Sequence[str]) -> list[str]:
    """A sentence on what of the repository is not used, for the first turn of a thread that meets it."""
    if not unused:
        return []
    earlier = await sessions.turns_of(services.store, turn.key.session)
    said = [note for one in earlier if one.n < turn.key.n for note in one.part(AgentReading).notes]
    note = f"{' and '.join(unused)} of the repository, {_UNUSED}"
    return [] if any(one.endswith(_UNUSED) for one in said) else [note]


async def _text(services: Services, repo: RepoId, sha: str, path: str) -> str | None:
    data = await services.cache.file(repo, sha, path, max_bytes=MAX_FILE_BYTES)
    return None if data is None else data.decode("utf-8", "replace")
