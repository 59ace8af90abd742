"""Step 1: read the repository's config from its default branch, pin the SHA, compose what the agent will read."""

from __future__ import annotations

from dataclasses import asdict, replace

from bot import prompt, repo_config
from bot.errors import UserError
from bot.github.types import Pull
from bot.models import Outcome, Step, Thread
from bot.repo_config import RepoConfig
from bot.sessions import basing, configuring, openness, pinning, reading
from bot.sessions.money import exhaustion
from bot.sessions.moves import End, Move, To
from bot.sessions.pinning import Start
from bot.sessions.publishing import releasing
from bot.sessions.pulls import adopting, forks, resolving, undoing
from bot.sessions.reading import evidence, rereading, shelf, trust
from bot.sessions.reading.evidence import Evidence
from bot.sessions.rights import WORK
from bot.sessions.services import Services
from bot.store import checks, sessions
from bot.store.sessions import Session, Turn
from bot.words import endings

WITHOUT_AGENT = {"undo": undoing.prepare, "release": releasing.prepare, "adopt": adopting.prepare}
FRESH_SECONDS = 60.0
"""For so long it holds what was found out about a person when they spoke."""


async def run(services: Services, turn: Turn) -> Move:
    if turn.kind in WITHOUT_AGENT:
        return await WITHOUT_AGENT[turn.kind](services, turn)
    session = await sessions.session(services.store, turn.key.session)
    await openness.check(services, turn, session)
    if not await _may_begin(services, turn, session):
        return End(Outcome.REFUSED, endings.may_not_begin(turn.requester))
    config = await configuring.read(services, session)
    repo_config.keep_from(config, services.settings.own_hosts())
    await sessions.update_session(services.store, turn.key.session, budget_usd=config.budget)
    if spent := await exhaustion.before_the_start(services, turn):
        return End(Outcome.OVER_BUDGET, spent.sentence, {"agent_error": spent.error})
    base, start = await _start(services, turn, session, config)
    if turn.kind == "review" and await rereading.is_repetition(services, turn, start.sha):
        return End(Outcome.NO_CHANGE, endings.reviewed_already(start.sha))
    if turn.kind == "review":
        await checks.put(services.store, turn.key, start.sha)
    if turn.kind == "resolve":
        return await _resolve(services, turn, config, base, start)
    if isinstance(red := await evidence.of(services, turn, start.tip), End):
        return red
    return await _ready(services, replace(turn, kind=_kind(turn, config)), config, (base, start), red)


async def _ready(
    services: Services, turn: Turn, config: RepoConfig, place: tuple[str, Start], beside: Evidence | None
) -> To:
    """All that the agent needs to begin, with what it is to read."""
    fork = place[1].fork
    turn = replace(turn, fork=fork, base_sha=place[1].sha)
    found = await reading.gather(services, turn, config, place, beside)
    await shelf.put(services, turn, found.files)
    columns = {
        "kind": turn.kind,
        "context": found.context,
        "instructions": found.instructions,
        "notes": (*found.notes, *await forks.notes(services, turn, config)),
        "ignored": found.ignored,
        "discussions": [asdict(spot) for spot in found.discussions],
        "fork": asdict(fork) if fork else None,
        "untrusted": int(found.untrusted or turn.kind == "review" or fork is not None),  # not merged by anybody
    }
    return To(Step.FURNISH, {**columns, **_pinned(config, *place), **_limits(turn, config)})


async def _may_begin(services: Services, turn: Turn, session: Session) -> bool:
    """Its author was asked about when it was said; where it has waited since, they may have lost access."""
    if services.clock() - (turn.asked_at or turn.created_at) < FRESH_SECONDS:
        return True
    reads = services.github.installation(session.installation_id)
    return await trust.may_write(reads, session.thread.repo, turn.requester, turn.requester_id)


def _pinned(config: RepoConfig, base: str, start: Start) -> dict[str, object]:
    return {"base": base, "base_sha": start.sha, "tip_sha": start.tip, "config": repo_config.dump(config)}


async def _resolve(services: Services, turn: Turn, config: RepoConfig, base: str, start: Start) -> Move:
    """The agent begins at both sides as git merges them; where git can do that alone, there is nothing for it to do."""
    joined = await resolving.join(services, turn, base, start)
    if isinstance(joined, End):
        return joined
    merge = {
        "merged_sha": start.base,
        "tree_sha": joined.tree,
        "conflicts": [path.encode("utf-8", "replace").decode() for path in joined.conflicts],
    }
    at = replace(start, sha=joined.commit)
    if not joined.conflicts:
        return To(Step.VERIFY, {**_pinned(config, base, at), **merge})
    beside = await resolving.both_sides(services, turn, base, start, joined)
    turn = replace(turn, kind=_kind(turn, config), prompt=turn.prompt or prompt.RESOLVE)
    ready = await _ready(services, turn, config, (base, at), beside)
    return replace(ready, columns={**ready.columns, **merge})


async def _start(services: Services, turn: Turn, session: Session, config: RepoConfig) -> tuple[str, Start]:
    """What the work is to be merged into, and the commits that it starts from."""
    if turn.kind == "review":
        return await pinning.pin_pull(services, turn)
    if pinning.is_on_pull(turn, session):
        reads = services.github.installation(session.installation_id)
        pull = await reads.pull(session.thread.repo, turn.number)
        basing.require_that_of(pull, turn)
        if pull.head_repo_id != session.repo_id:
            return await forks.pin(services, turn)
        base = await _on_pull(services, turn, session.thread, pull)
    else:
        base = await basing.of_issue(services, turn, session, config)
    return base, await pinning.pin(services, turn, base)


def _kind(turn: Turn, config: RepoConfig) -> str:
    """Where the repository wants plans only, work begins with one unless its plan was approved."""
    return "plan" if turn.kind in WORK and config.permission == "plan" and turn.approval is None else turn.kind


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
