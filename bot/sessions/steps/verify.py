"""Step 5: run the declared checks on the very commit that we would publish, where no agent was."""

from __future__ import annotations

import asyncio
import logging

from bot import repo_config
from bot.git.quarantine import Quarantine
from bot.kinds.resolve import Merge
from bot.kinds.shape import OnFork
from bot.models import Step
from bot.proposal import verification
from bot.proposal.verification import CheckedCommand, CheckPlace
from bot.repo_config import RepoConfig
from bot.sessions import declared_checks, environments, kinds, setbacks
from bot.sessions.declared_checks import Checking, NoCleanRoom
from bot.sessions.moves import Move, To
from bot.sessions.publish import rescue, turn_commit
from bot.sessions.services import Services
from bot.store.sessions import Turn
from sandbox.errors import EnvironmentGone, KeyRefused, SandboxError

log = logging.getLogger(__name__)

MOST_LOST = 2
"""After so many fresh environments that vanished, the checks run in the agent's own."""


async def run(services: Services, turn: Turn) -> Move:
    if turn.traits.is_free:
        return await kinds.of(turn).verify(services, turn)
    is_left_out = turn.part(OnFork).fork is not None or turn.traits.reads
    if turn.outcome is not None or is_left_out or not repo_config.load(turn.config).has_checks:
        return To(Step.PUBLISH)
    config = await _for_the_commit(services, turn, repo_config.load(turn.config))
    if not config.checks:
        return To(Step.PUBLISH)
    checks = await _checked(services, turn, config)
    if (again := await setbacks.after_failed_checks(services, turn, checks)) is not None:
        return again
    return To(Step.PUBLISH, {"verified": verification.dump(checks)})


async def _for_the_commit(services: Services, turn: Turn, config: RepoConfig) -> RepoConfig:
    """Add what the config demands for the files that the commit changes."""
    if not config.paths:
        return config
    from bot.sessions import folders  # only repositories with such settings enter it

    async with services.cache.quarantine(turn.repo_id) as quarantine:
        tree = await turn_commit.tree_of(services, turn, quarantine)
        changes = await quarantine.changes(await _commit_before(services, turn, quarantine), tree)
    files = [change.path for change in changes]
    return config.with_paths(await asyncio.to_thread(folders.patterns_for, config, files))


async def _checked(services: Services, turn: Turn, config: RepoConfig) -> list[CheckedCommand]:
    why = verification.LOST
    for _ in range(MOST_LOST):
        try:
            return await _where_no_agent_was(services, turn, config)
        except EnvironmentGone as error:
            log.warning("an environment vanished", extra={"turn": turn.key.workflow_id, "error": str(error)})
        except NoCleanRoom as error:
            log.warning("no fresh environment", extra={"turn": turn.key.workflow_id, "error": str(error)})
            why = error.why
            break
    if turn.work_started_at is None:  # git alone has merged: no agent had an environment
        return verification.not_run(config.checks, why)
    try:  # here the agent may have left anything, so the check's place is named and nothing is compared
        environment = await environments.attach(services, turn)
        async with declared_checks.checking(services, turn, CheckPlace.AGENT, "") as checking:
            await checking.run(environment, config.checks)
        return checking.done
    except EnvironmentGone as error:  # the work is at home, and no worse for that
        log.warning("no environment is left for checks", extra={"turn": turn.key.workflow_id, "error": str(error)})
        return verification.not_run(config.checks, verification.NO_PLACE)


async def _where_no_agent_was(services: Services, turn: Turn, config: RepoConfig) -> list[CheckedCommand]:
    async with services.cache.quarantine(turn.repo_id) as quarantine:
        tree = await turn_commit.tree_of(services, turn, quarantine)
        commit = await turn_commit.commit_of_turn(services, turn, quarantine, tree)
        async with declared_checks.checking(services, turn, CheckPlace.FRESH, commit) as checking:
            async with declared_checks.clean_room(services, turn, quarantine, commit) as environment:
                if await checking.set_up(environment, config.setup):
                    await checking.run(environment, config.checks)
            if checking.may_compare:
                await _compared(checking, quarantine, config.setup)
    return checking.done


async def _compared(checking: Checking, quarantine: Quarantine, setup: tuple[str, ...]) -> None:
    """Compare with the commit before, in a separate environment: the work could have spoilt the first one."""
    services, turn = checking.services, checking.turn
    before = await _commit_before(services, turn, quarantine)
    try:
        async with declared_checks.clean_room(services, turn, quarantine, before) as environment:
            await checking.compare(environment, setup)
    except KeyRefused:
        raise
    except (NoCleanRoom, SandboxError) as error:  # the report then leaves the base out
        log.warning("the base cannot be tried", extra={"turn": turn.key.workflow_id, "error": str(error)})


async def _commit_before(services: Services, turn: Turn, quarantine: Quarantine) -> str:
    before = turn.tip_sha if turn.part(Merge).sha else turn.base_sha  # a merge begins at marks of conflicts
    assert before is not None
    if await rescue.begun_with(services.store, turn) is not None:  # saved work is part of the work
        before = await rescue.commit_below(services.store, turn.key.session, quarantine, before) or before
    return before
