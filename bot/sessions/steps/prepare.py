"""Step 1: read the repository's config from its default branch, pin the SHA, compose what the agent will read."""

from __future__ import annotations

import msgspec

from bot import repo_config
from bot.errors import UserError
from bot.github.types import Pull
from bot.kinds.parts import OnFork, Places
from bot.models import Outcome, Step, Thread
from bot.repo_config import RepoConfig
from bot.sessions import kinds, reading, starting_point
from bot.sessions.kinds import Preparation
from bot.sessions.money import spending_limits
from bot.sessions.moves import End, Move, To
from bot.sessions.reading import briefing
from bot.sessions.services import Services
from bot.sessions.starting_point import Start
from bot.store import sessions
from bot.store.sessions import Session, Turn
from bot.words import endings

FRESH_SECONDS = 60.0
"""For so long it holds what was found out about a person when they spoke."""


async def run(services: Services, turn: Turn) -> Move:
    kind = kinds.of(turn)
    if kind.traits.is_free:
        return await kind.prepare(services, turn)
    session = await sessions.session(services.store, turn.key.session)
    await starting_point.require_open(services, turn, session)
    if not await _may_begin(services, turn, session):
        return End(Outcome.REFUSED, endings.may_not_begin(turn.requester))
    config = await starting_point.read_config(services, session)
    repo_config.keep_from(config, services.settings.own_hosts())
    await sessions.update_session(services.store, turn.key.session, budget_usd=config.budget)
    if spent := await spending_limits.before_the_start(services, turn):
        return End(Outcome.OVER_BUDGET, spent.sentence, {"agent_error": spent.error})
    base, start = await kind.pin(services, turn) or await _start(services, turn, session, config)
    preparation = await kind.begin(services, turn, Preparation(config, base, start))
    return await _ready(services, turn, preparation) if isinstance(preparation, Preparation) else preparation


async def _ready(services: Services, turn: Turn, preparation: Preparation) -> To:
    """All that the agent needs to begin, with what it is to read."""
    config, start = preparation.config, preparation.start
    turn = turn.having(
        msgspec.structs.replace(turn.part(OnFork), fork=start.fork),
        base_sha=start.sha,
        kind=_kind(turn, config),
        prompt=preparation.request or turn.prompt,
    )
    found = await reading.gather(services, turn, config, (preparation.base, start), preparation.beside)
    await briefing.shelve(services, turn, found.files)
    notes = (*found.reading.notes, *await starting_point.notes(services, turn, config))
    parts = (
        *preparation.parts,
        turn.part(OnFork),
        msgspec.structs.replace(found.reading, notes=notes),
        msgspec.structs.replace(turn.part(Places), discussions=found.discussions),
    )
    nobodys = turn.traits.judges or start.fork is not None  # not merged by anybody
    columns = {"kind": turn.kind, "untrusted": int(found.untrusted or nobodys)}
    return To(Step.FURNISH, {**columns, **preparation.pinned, **_limits(turn, config)}, parts=parts)


async def _may_begin(services: Services, turn: Turn, session: Session) -> bool:
    """Its author was asked about when it was said; where it has waited since, they may have lost access."""
    if services.clock() - (turn.asked_at or turn.created_at) < FRESH_SECONDS:
        return True
    reads = services.github.installation(session.installation_id)
    return await reading.may_write(reads, session.thread.repo, turn.requester, turn.requester_id)


async def _start(services: Services, turn: Turn, session: Session, config: RepoConfig) -> tuple[str, Start]:
    """What the work is to be merged into, and the commits that it starts from."""
    if starting_point.is_on_pull(turn, session):
        reads = services.github.installation(session.installation_id)
        pull = await reads.pull(session.thread.repo, turn.number)
        starting_point.require_base_of(pull, turn)
        if pull.head_repo_id != session.repo_id:
            return await starting_point.pin_fork(services, turn)
        base = await _on_pull(services, turn, session.thread, pull)
    else:
        base = await starting_point.base_branch_of_issue(services, turn, session, config)
    return base, await starting_point.pin(services, turn, base)


def _kind(turn: Turn, config: RepoConfig) -> str:
    """Where the repository wants plans only, work begins with one unless its plan was approved."""
    return "plan" if turn.traits.changes and config.permission == "plan" and turn.approval is None else turn.kind


def _limits(turn: Turn, config: RepoConfig) -> dict[str, object]:
    """The repository may only narrow what the operator allows; which model works is its choice, unless a person's."""
    found: dict[str, object] = {}
    if config.timeout is not None:
        found["timeout_seconds"] = min(turn.timeout_seconds, config.timeout)
    if config.model is not None and (turn.options is None or turn.options.model is None):
        found["model"] = config.model
    return found


async def _on_pull(services: Services, turn: Turn, home: Thread, pull: Pull) -> str:
    """On a pull request the work goes to its own branch: learn which, and what it is to be merged into."""
    session = await sessions.session(services.store, turn.key.session)
    reads = services.github.installation(home.installation)
    if pull.state != "open":
        raise UserError(endings.pull_closed(pull.number))
    if pull.head_branch == home.repo.default_branch and not turn.new_branch:
        raise UserError(endings.default_branch_is_head(pull.head_branch))
    if not turn.new_branch and await reads.is_protected(home.repo, pull.head_branch):
        raise UserError(endings.head_is_protected(pull.head_branch))
    if session.pull_number is None:
        await sessions.update_session(
            services.store,
            turn.key.session,
            branch=pull.head_branch,
            pull_number=pull.number,
            pull_url=pull.url,
        )
    return pull.base_branch
