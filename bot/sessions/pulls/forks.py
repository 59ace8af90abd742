"""Pull requests from forks: where work on one starts, and what of it was approved."""

from __future__ import annotations

from bot.errors import UserError
from bot.kinds.parts import OnFork
from bot.repo_config import RepoConfig
from bot.sessions import pinning
from bot.sessions.pinning import Start
from bot.sessions.services import Services
from bot.store import approvals
from bot.store.approvals import Kind, Standing
from bot.store.sessions import Turn
from bot.words import on_forks


async def pin(services: Services, turn: Turn) -> tuple[str, Start]:
    """The head as the repository itself has it (`refs/pull`): the fork is not asked for anything."""
    if not turn.traits.on_forks:
        raise UserError(on_forks.no_conflicts_on_forks(services.settings.command))
    return await pinning.pin_pull(services, turn)


async def may_set_up(services: Services, turn: Turn) -> bool:
    """Setup commands run what is checked out: of a fork only a commit that somebody has approved by its name."""
    if turn.part(OnFork).fork is None:
        return True
    known = await approvals.of_session(services.store, turn.key.session)
    return any(one.kind is Kind.FORK and one.state is Standing.APPROVED and one.sha == turn.base_sha for one in known)


async def notes(services: Services, turn: Turn, config: RepoConfig) -> tuple[str, ...]:
    """What the reader is told that was left out for it."""
    left_out = turn.part(OnFork).fork is not None and not turn.traits.judges and bool(config.setup)
    return (on_forks.SETUP_LEFT_OUT,) if left_out and not await may_set_up(services, turn) else ()
