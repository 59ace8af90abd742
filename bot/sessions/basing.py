"""Which branch the work of a turn is to be merged into."""

from __future__ import annotations

from bot.errors import UserError
from bot.github.types import Pull
from bot.repo_config import RepoConfig
from bot.sessions import pinning
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Session, Turn
from bot.words import on_pulls


async def of_issue(services: Services, turn: Turn, session: Session, config: RepoConfig) -> str:
    """That of the pull request that it goes on with; of new work what was said, if only on an earlier turn."""
    pull = None if turn.new_branch else await pinning.open_pull(services, session)
    if pull is not None:
        require_that_of(pull, turn, beside=True)
        return pull.base_branch
    return await _said(services, turn) or config.base or session.default_branch


def require_that_of(pull: Pull, turn: Turn, *, beside: bool = False) -> None:
    """Who names another one would look for the work where it is not."""
    if turn.base is not None and turn.base != pull.base_branch:
        raise UserError(on_pulls.another_base(pull.number, turn.base, pull.base_branch, beside=beside))


async def _said(services: Services, turn: Turn) -> str | None:
    """It holds until another is named: what was planned, saved or answered on it goes on there."""
    if turn.base is not None:
        return turn.base
    earlier = [one for one in await sessions.turns_of(services.store, turn.key.session) if one.n < turn.n]
    return next((one.options.base for one in reversed(earlier) if one.options and one.options.base), None)
