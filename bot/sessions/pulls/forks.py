"""Pull requests from forks: where work on one starts, what of it was approved, and what an earlier turn has left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.errors import UserError
from bot.repo_config import RepoConfig
from bot.sessions import keeping, pinning
from bot.sessions.pinning import Start
from bot.sessions.rights import READ_ONLY
from bot.sessions.services import Services
from bot.store import approvals, sessions
from bot.store.approvals import Kind, Standing
from bot.store.sessions import Turn
from bot.words import on_forks


async def pin(services: Services, turn: Turn) -> tuple[str, Start]:
    """The head as the repository itself has it (`refs/pull`): the fork is not asked for anything."""
    if turn.kind == "resolve":
        raise UserError(on_forks.no_conflicts_on_forks(services.settings.command))
    return await pinning.pin_pull(services, turn)


async def may_set_up(services: Services, turn: Turn) -> bool:
    """Setup commands run what is checked out: of a fork only a commit that somebody has approved by its name."""
    if turn.fork is None:
        return True
    known = await approvals.of_session(services.store, turn.key.session)
    return any(one.kind is Kind.FORK and one.state is Standing.APPROVED and one.sha == turn.base_sha for one in known)


async def notes(services: Services, turn: Turn, config: RepoConfig) -> tuple[str, ...]:
    """What the reader is told that was left out for it."""
    left_out = turn.fork is not None and turn.kind != "review" and bool(config.setup)
    return (on_forks.SETUP_LEFT_OUT,) if left_out and not await may_set_up(services, turn) else ()


async def earlier_work(services: Services, turn: Turn) -> Path | None:
    """What the last turn on the same commit has left: it could not be pushed, so this one goes on from there."""
    if turn.fork is None or turn.kind in READ_ONLY:
        return None
    turns = await sessions.turns_of(services.store, turn.key.session)
    for one in reversed([one for one in turns if one.n < turn.n and one.fork is not None and one.kept]):
        kept = keeping.path(services, one)
        same = one.base_sha == turn.base_sha and one.number == turn.number
        return kept if same and await asyncio.to_thread(kept.is_file) else None
    return None
