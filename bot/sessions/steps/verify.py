"""Step 5: run the declared checks on the very commit that would be published, where no agent was."""

from __future__ import annotations

import logging

from bot import repo_config, verification
from bot.git.quarantine import Quarantine
from bot.kinds.parts import OnFork
from bot.kinds.resolve import Merge
from bot.models import Step
from bot.sessions import environments
from bot.sessions.checks import clean_room, mending
from bot.sessions.checks.checking import Checking
from bot.sessions.checks.clean_room import NotToBeHad
from bot.sessions.moves import Move, To
from bot.sessions.publishing import committing, joining, saving
from bot.sessions.services import Services
from bot.store.sessions import Turn
from bot.verification import Check, Where
from sandbox.errors import EnvironmentGone, KeyRefused, SandboxError

log = logging.getLogger(__name__)

MOST_LOST = 2
"""Fresh environments that may vanish in the middle, before the agent's own has to do."""


async def run(services: Services, turn: Turn) -> Move:
    nobodys = turn.part(OnFork).fork is not None or turn.traits.reads
    if turn.outcome is not None or nobodys or not repo_config.load(turn.config).checks:
        return To(Step.PUBLISH)
    checks = await _checked(services, turn)
    if (again := await mending.back(services, turn, checks)) is not None:
        return again
    return To(Step.PUBLISH, {"verified": verification.dump(checks)})


async def _checked(services: Services, turn: Turn) -> list[Check]:
    why, declared = verification.LOST, repo_config.load(turn.config).checks
    for _ in range(MOST_LOST):
        try:
            return await _where_no_agent_was(services, turn)
        except EnvironmentGone as error:
            log.warning("an environment vanished", extra={"turn": turn.key.workflow_id, "error": str(error)})
        except NotToBeHad as error:
            log.warning("no fresh environment", extra={"turn": turn.key.workflow_id, "error": str(error)})
            why = error.why
            break
    if turn.work_started_at is None:  # git alone has merged: there was no agent in whose environment they could run
        return verification.not_run(declared, why)
    try:
        return await _where_the_agent_was(services, turn)
    except EnvironmentGone as error:  # the work is at home, and is no worse for that
        log.warning("no environment is left for checks", extra={"turn": turn.key.workflow_id, "error": str(error)})
        return verification.not_run(declared, verification.NO_PLACE)


async def _where_no_agent_was(services: Services, turn: Turn) -> list[Check]:
    config = repo_config.load(turn.config)
    async with services.cache.quarantine(turn.repo_id) as quarantine:
        tree = await joining.tree(services, turn, quarantine)
        commit = await committing.commit(services, turn, quarantine, tree)
        checking = Checking(services, turn, Where.FRESH, commit)
        async with clean_room.opened(services, turn, quarantine, commit) as environment:
            if await checking.set_up(environment, config.setup):
                await checking.run(environment, config.checks)
        if checking.may_compare:
            await _compared(checking, quarantine, config.setup)
    return checking.done


async def _compared(checking: Checking, quarantine: Quarantine, setup: tuple[str, ...]) -> None:
    """With what came before, in an environment of its own: the work could have spoilt whatever runs beside it."""
    services, turn = checking.services, checking.turn
    before = turn.tip_sha if turn.part(Merge).sha else turn.base_sha  # a merge begins at marks of conflicts
    assert before is not None
    if await saving.begun_with(services.store, turn) is not None:  # that is part of the work
        before = await saving.below(services.store, turn.key.session, quarantine, before) or before
    try:
        async with clean_room.opened(services, turn, quarantine, before) as environment:
            await checking.compare(environment, setup)
    except KeyRefused:
        raise
    except (NotToBeHad, SandboxError) as error:  # then nothing is said of the base
        log.warning("the base cannot be tried", extra={"turn": turn.key.workflow_id, "error": str(error)})


async def _where_the_agent_was(services: Services, turn: Turn) -> list[Check]:
    """And the work still lies, with whatever else the agent has left: so it is called, and nothing is compared."""
    environment = await environments.attach(services, turn)
    checking = Checking(services, turn, Where.AGENT, "")
    await checking.run(environment, repo_config.load(turn.config).checks)
    return checking.done
