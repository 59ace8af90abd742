"""Step 1: read the repository's config from its default branch, pin the SHA, compose the agent's reading."""

from __future__ import annotations

import msgspec

from bot import repo_config
from bot.errors import UserError
from bot.github.types import Pull
from bot.kinds.shape import OnFork, Places, WorkEstimate
from bot.models import Outcome, Step
from bot.repo_config import RepoConfig
from bot.sessions import kinds, reading, starting_point, tool_servers
from bot.sessions.kinds import Preparation
from bot.sessions.money import spending_limits
from bot.sessions.moves import End, Move, To
from bot.sessions.reading import briefing
from bot.sessions.services import APPROVAL_DAYS, Services
from bot.sessions.starting_point import Start
from bot.store import approvals, sessions, turn_figures
from bot.store.approvals import ApprovalKind, ApprovalRequest
from bot.store.sessions import Session, Turn
from bot.words import endings, on_estimates, on_forks

FRESH_SECONDS = 60.0
"""For so long we trust the permission that a person had when they spoke."""


async def run(services: Services, turn: Turn) -> Move:
    kind = kinds.of(turn)
    if kind.traits.is_free:
        return await kind.prepare(services, turn)
    session = await sessions.session(services.store, turn.key.session)
    await starting_point.require_open(services, turn, session)
    if services.clock() - (turn.asked_at or turn.created_at) >= FRESH_SECONDS:  # they may have lost access since
        reads = services.github.installation(session.installation_id)
        if not await reading.may_write(reads, session.thread.repo, turn.requester, turn.requester_id):
            return End(Outcome.REFUSED, endings.may_not_begin(turn.requester))
    config = await starting_point.read_config(services, session)
    repo_config.keep_from(config, services.settings.own_hosts())
    await sessions.update_session(services.store, turn.key.session, budget_usd=config.budget)
    if config.notify:  # also for a turn that ends before it has begun
        await sessions.update_turn(services.store, turn.key, config=repo_config.dump(config))
    if spent := await spending_limits.before_the_start(services, turn):
        return End(Outcome.OVER_BUDGET, spent.sentence, {"agent_error": spent.error})
    estimate = await _estimated(services, turn, session, _begins_as(turn, config))
    if question := await _asked(services, turn, estimate, config):
        return question
    base, start = await kind.pin(services, turn) or await _start(services, turn, session, config)
    preparation = await kind.begin(services, turn, Preparation(config, base, start))
    if not isinstance(preparation, Preparation):
        return preparation
    return await _ready(services, turn.having(estimate), preparation)


async def _estimated(services: Services, turn: Turn, session: Session, kind: str) -> WorkEstimate:
    """Return the estimate that the turn was queued with, or a new one if it begins as another kind."""
    given = turn.part(WorkEstimate)
    if kind == turn.kind:
        return given
    found = await turn_figures.estimate(services.store, session.repo, session.installation_id, kind)
    return msgspec.structs.replace(found or WorkEstimate(), agreed=given.agreed)


async def _asked(services: Services, turn: Turn, estimate: WorkEstimate, config: RepoConfig) -> End | None:
    """End the turn with a question; only a row waits, and a yes begins the work. None if nobody has to be asked."""
    above = config.ask_above
    if above is None or estimate.most_usd <= above or estimate.agreed:
        return None
    matter = {"most_usd": estimate.most_usd, "ask_above": above}
    question = ApprovalRequest(turn.key, ApprovalKind.PRICE, matter, services.approval_deadline())
    approval = await approvals.ask(services.store, question)
    words = on_estimates.asks(estimate, above, approval.id, APPROVAL_DAYS)
    return End(Outcome.NEEDS_INPUT, words, parts=(msgspec.structs.replace(estimate, asks=True),))


def _begins_as(turn: Turn, config: RepoConfig) -> str:
    plans_first = turn.traits.changes and config.permission == "plan" and turn.approval is None
    return "plan" if plans_first else turn.kind


async def _ready(services: Services, turn: Turn, preparation: Preparation) -> To | End:
    """Gather everything that the agent needs to begin."""
    config, start = preparation.config, preparation.start
    turn = turn.having(
        msgspec.structs.replace(turn.part(OnFork), fork=start.fork),
        base_sha=start.sha,
        kind=_begins_as(turn, config),
        prompt=preparation.request or turn.prompt,
    )
    found = await reading.gather(services, turn, config, (preparation.base, start), preparation.beside)
    await briefing.shelve(services, turn, found.files)
    config = config.with_paths(found.where.patterns)
    notes = (*found.reading.notes, *await starting_point.fork_notes(services, turn, config))
    if config.mcp:
        notes += await tool_servers.notes(services.store, turn.having(config=repo_config.dump(config)))
    if config.budget != preparation.config.budget:
        await sessions.update_session(services.store, turn.key.session, budget_usd=config.budget)
        if spent := await spending_limits.before_the_start(services, turn):
            return End(Outcome.OVER_BUDGET, spent.sentence, {"agent_error": spent.error}, parts=(found.where,))
    parts = (
        *preparation.parts,
        found.where,
        turn.part(OnFork),
        turn.part(WorkEstimate),
        msgspec.structs.replace(found.reading, notes=notes),
        msgspec.structs.replace(turn.part(Places), discussions=found.discussions),
    )
    unmerged = turn.traits.judges or start.fork is not None
    columns = {"kind": turn.kind, "untrusted": int(found.untrusted or unmerged)}
    return To(Step.FURNISH, {**columns, **preparation.pinned, **_limits(turn, config)}, parts=parts)


async def _start(services: Services, turn: Turn, session: Session, config: RepoConfig) -> tuple[str, Start]:
    """Find the branch to merge into, and the commits that the work starts from."""
    if starting_point.is_on_pull(turn, session):
        reads = services.github.installation(session.installation_id)
        pull = await reads.pull(session.thread.repo, turn.number)
        starting_point.require_base_of(pull, turn)
        if pull.head_repo_id != session.repo_id:
            if not turn.traits.on_forks:
                raise UserError(on_forks.no_conflicts_on_forks(services.settings.command))
            return await starting_point.pin_pull(services, turn)
        base = await _on_pull(services, turn, session, pull)
    else:
        base = await starting_point.base_branch_of_issue(services, turn, session, config)
    return base, await starting_point.pin(services, turn, base)


def _limits(turn: Turn, config: RepoConfig) -> dict[str, object]:
    """Let the repository narrow the operator's limits, and choose the model unless a person did."""
    found: dict[str, object] = {}
    if config.timeout is not None:
        found["timeout_seconds"] = min(turn.timeout_seconds, config.timeout)
    if config.model is not None and (turn.options is None or turn.options.model is None):
        found["model"] = config.model
    return found


async def _on_pull(services: Services, turn: Turn, session: Session, pull: Pull) -> str:
    """Note the pull request's own branch, where its work goes, and return its base."""
    reads, repo = services.github.installation(session.installation_id), session.thread.repo
    if pull.state != "open":
        raise UserError(endings.pull_closed(pull.number))
    if pull.head_branch == repo.default_branch and not turn.new_branch:
        raise UserError(endings.default_branch_is_head(pull.head_branch))
    if not turn.new_branch and await reads.is_protected(repo, pull.head_branch):
        raise UserError(endings.head_is_protected(pull.head_branch))
    if session.pull_number is None:
        columns = {"branch": pull.head_branch, "pull_number": pull.number, "pull_url": pull.url}
        await sessions.update_session(services.store, turn.key.session, **columns)
    return pull.base_branch
