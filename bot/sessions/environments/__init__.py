"""Takes, finds, keeps and ends the environment of a turn, and knows which hosts it reaches.

After a turn, the row first marks its environment as kept; only then does the environment come to rest. A process that
dies in between leaves it to the sweep.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace

from bot import repo_config
from bot.errors import EnvironmentUnavailable
from bot.kinds.shape import BroughtHome, OnFork
from bot.models import PUSHED, Outcome, Step
from bot.repo_config.values import covered, may_be_opened
from bot.sessions.environments import meter
from bot.sessions.services import Services
from bot.store import approvals, machines, sessions, snapshots
from bot.store import environments as rows
from bot.store.approvals import Approval, ApprovalKind, ApprovalRequest, ApprovalState, Scope
from bot.store.environments import EnvironmentRow, EnvironmentUse
from bot.store.sessions import Turn
from bot.store.snapshots import StoredSnapshot
from bot.words import on_approvals
from sandbox.errors import EnvironmentGone, SandboxError, SnapshotGone
from sandbox.execution import ExecutionEnvironment
from sandbox.primitives import EnvironmentPrimitives, EnvironmentSpec

log = logging.getLogger(__name__)

MOST_HOSTS = 10
OPEN_PORT = 443
"""The only port that the way out lets through."""
HOSTS_REQUEST = "hosts"
CLOSED = 1
"""A version: with a higher one, sandboxes are closed further before an agent comes, and older ones are not reused."""
NETWORKED = (Step.WORK, Step.VERIFY)
"""Steps in which other people's commands run there."""
IN_PEACE = (
    *PUSHED,
    Outcome.ANSWERED,
    Outcome.REVIEWED,
    Outcome.PLANNED,
    Outcome.NO_CHANGE,
    Outcome.NEEDS_INPUT,
    Outcome.OVER_BUDGET,
    Outcome.TIMED_OUT,
)
"""After these the next turn may go on there; after any other its state is unknown."""


async def ask_for_hosts(services: Services, turn: Turn) -> None:
    """Ask at the turn's end: nobody waits for the answer, and a yes begins the next turn."""
    ours = sorted(services.settings.own_hosts())
    asked = [str(one["host"]) for one in turn.part(BroughtHome).blocked if one["port"] == OPEN_PORT]
    wanted = [host for host in asked if may_be_opened(host) and not covered(host, ours)]
    if not turn.traits.changes or not wanted or repo_config.load(turn.config).permission != "ask":
        return
    hosts = wanted[:MOST_HOSTS]
    matter = {"tool": "network", "hosts": hosts, "shown": on_approvals.hosts_asked(hosts), "call": HOSTS_REQUEST}
    question = ApprovalRequest(turn.key, ApprovalKind.TOOL, matter, services.clock(), HOSTS_REQUEST)
    await approvals.expire(services.store, (await approvals.ask(services.store, question)).id)


async def reachable_hosts(services: Services, turn: Turn) -> frozenset[str] | None:
    """Join the config's hosts with those that people allowed for this turn or the session; None for a fork's code,
    which reaches nothing."""
    if turn.part(OnFork).fork is not None:
        return None
    found = set(repo_config.load(turn.config).egress)
    for one in await approvals.of_session(services.store, turn.key.session):
        if one.hosts and one.state is ApprovalState.APPROVED and await _holds(services, turn, one):
            found.update(one.hosts)
    return frozenset(found)


async def _holds(services: Services, turn: Turn, yes: Approval) -> bool:
    """Tell whether a yes holds: the first turn whose agent works with a single one uses it up."""
    if yes.scope is Scope.SESSION or yes.id != turn.approval:
        return yes.scope is Scope.SESSION
    begun_with_it = [one for one in await sessions.turns_of(services.store, turn.key.session) if one.approval == yes.id]
    return not any(one.n < turn.n and one.work_started_at is not None for one in begun_with_it)


async def find_or_create(
    services: Services, turn: Turn, snapshot: StoredSnapshot | None
) -> tuple[ExecutionEnvironment, EnvironmentRow]:
    """Return the turn's own, the kept one, or a new one, under a key that a repetition finds again."""
    spec, config = await spec_of(services, turn), repo_config.load(turn.config)
    again = await rows.used_by(services.store, turn.key) is not None
    e2b = services.settings.e2b
    # The operator's part counts too: the firewall of a cloud's sandbox stays as it was made.
    operators = [] if e2b is None else [CLOSED, e2b.template, e2b.hosts(), e2b.unmetered is not None]
    # What one person may read of private submodules stays out of another's turn.
    brought = [config.lfs, config.submodules and turn.requester_id] if config.brings_more else []
    made_of = json.dumps([spec.public_repository, spec.egress, spec.template, *operators, *brought])
    async with services.environment_locks.of(turn.key.session):
        await _end_stale(services, turn)
        # No longer than this: room may be missing for hours, and the sweep must not wait so long.
        digest = hashlib.sha256(made_of.encode()).hexdigest()
        row = await rows.take(services.store, turn.key, digest, services.here)
    await _end_given_up(services, turn)
    if again:
        await meter.catch_up(services, row.id)
    if is_reused(row) and not row.prepared:
        # `attach` fails if it is gone; `create` would silently make another.
        kept = await services.environments.attach(row.id)
        await kept.still()
    primitives = await created(services, row, spec, snapshot)
    await services.egress.open(row.id, None if spec.egress is None else frozenset(spec.egress))
    await meter.look(services.store, turn.key, primitives)
    return ExecutionEnvironment(primitives, services.agent, attempt=turn.attempt), row


async def _end_stale(services: Services, turn: Turn) -> None:
    """End what we made for the turn before another replica took it over: an agent may still be at work there."""
    row = await rows.used_by(services.store, turn.key)
    if services.here is not None and (row is None or row.bound_to != services.here):
        await services.environments.end(rows.name_of(turn.key))
        await services.egress.close(rows.name_of(turn.key))


async def _end_given_up(services: Services, turn: Turn) -> None:
    """End kept environments that do not fit: they may hold the place that the new one needs."""
    for left in await rows.given_up(services.store, turn.key.session):
        try:
            await give_up(services, left)
        except SandboxError as error:
            log.warning("an environment is left to the sweep", extra={"id": left, "error": str(error)})


async def created(
    services: Services, row: EnvironmentRow, spec: EnvironmentSpec, snapshot: StoredSnapshot | None
) -> EnvironmentPrimitives:
    wanted = spec if snapshot is None or is_reused(row) else replace(spec, snapshot=snapshot.snapshot_id)
    try:
        found = await services.environments.create(row.id, wanted)
    except SnapshotGone:
        if snapshot is None:
            raise
        await snapshots.condemn(services.store, snapshot.name)
        found = await services.environments.create(row.id, spec)
    log.info("a sandbox is there", extra={"sandbox": row.id, "purpose": row.purpose, "kept": is_reused(row)})
    return found


def is_reused(row: EnvironmentRow) -> bool:
    """Tell whether an earlier turn has left it."""
    return row.purpose is rows.EnvironmentPurpose.WORK and row.id != f"{row.session_id}-{row.turn}"


async def spec_of(services: Services, turn: Turn) -> EnvironmentSpec:
    thread = (await sessions.session(services.store, turn.key.session)).thread
    config, reachable = repo_config.load(turn.config), await reachable_hosts(services, turn)
    return EnvironmentSpec(
        labels={"app": "forgehand", "session": turn.key.session, "turn": str(turn.key.n), "repo": str(thread.repo.id)},
        public_repository=not thread.repo.private,
        lifetime_seconds=turn.timeout_seconds + 600,
        egress=None if reachable is None else tuple(sorted(reachable)),
        template=config.template,
    )


async def attach(services: Services, turn: Turn) -> ExecutionEnvironment:
    row = await rows.used_by(services.store, turn.key)
    if row is None:
        raise EnvironmentUnavailable("the turn has no environment yet")
    if row.bound_to != services.here:
        raise EnvironmentGone("it is on the machine of another replica")
    primitives = await services.environments.attach(row.id)
    if turn.step in NETWORKED:
        await services.egress.open(row.id, await reachable_hosts(services, turn))
    await meter.look(services.store, turn.key, primitives)
    return ExecutionEnvironment(primitives, services.agent, attempt=turn.attempt)


async def is_elsewhere(services: Services, turn: Turn) -> bool:
    """Tell whether another replica has run the turn, on a machine that we do not reach."""
    row = await rows.used_by(services.store, turn.key)
    return row is not None and row.bound_to != services.here


async def is_gone(services: Services, turn: Turn, error: SandboxError) -> bool:
    """Find out whether a step failed because its environment is gone."""
    if isinstance(error, EnvironmentGone):  # believed: parts of one that is just being removed may still be there
        return True
    try:
        environment = await attach(services, turn)
        return not await environment.primitives.is_running()
    except EnvironmentGone:
        return True
    except (EnvironmentUnavailable, SandboxError):
        return False


async def give_up(services: Services, environment_id: str) -> None:
    """End an environment for good, also one that is gone already."""
    await rows.give_up(services.store, environment_id)
    await meter.catch_up(services, environment_id)
    await services.environments.end(environment_id)
    await machines.end_of(services.store, environment_id)
    await services.egress.close(environment_id)
    await rows.forget(services.store, environment_id)
    log.info("a sandbox was ended", extra={"sandbox": environment_id})


async def lay_to_rest(services: Services, row: EnvironmentRow) -> None:
    """Bring a kept one to rest; the caller holds its session's lock. End one that does not rest: it would cost."""
    try:
        await services.environments.rest(row.id)
    except SandboxError as error:
        log.warning("a kept environment does not come to rest", extra={"id": row.id, "error": str(error)})
        await give_up(services, row.id)
    else:
        await machines.end_of(services.store, row.id)


async def keep_or_end(services: Services, turn: Turn) -> bool:
    """Return whether it is kept; safe to repeat.

    Never keep one that has read outsiders' words, which may have left a trap, or one where an agent was lost."""
    row, minutes = await rows.last_of(services.store, turn.key), services.settings.limits.keep_minutes
    if row is None:
        return False
    if row.state is EnvironmentUse.KEPT:
        return True
    if turn.untrusted or turn.resumptions or turn.stop_requested or turn.outcome not in IN_PEACE or minutes <= 0:
        await give_up(services, row.id)
        return False
    await rows.keep(services.store, row.id, services.clock() + 60 * minutes)
    return True


async def rest_kept(services: Services, turn: Turn) -> None:
    """Bring it to rest, or leave it to the sweep if that fails."""
    async with services.environment_locks.of(turn.key.session):
        row = await rows.last_of(services.store, turn.key)
        if row is None or row.state is not EnvironmentUse.KEPT:
            return
        try:
            await lay_to_rest(services, row)
        except SandboxError as error:
            log.warning("an environment is left to the sweep", extra={"id": row.id, "error": str(error)})
