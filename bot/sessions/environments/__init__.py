"""Takes, finds, keeps and ends the environment of a turn, and knows which hosts it reaches.

When a turn is over the row says first that its environment is kept, then it is laid to rest; whoever dies in between
leaves it to the sweep.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace

from bot import repo_config
from bot.errors import EnvironmentUnavailable
from bot.kinds.parts import BroughtHome, OnFork
from bot.models import Outcome, Step
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

MOST_HOSTS = 10
OPEN_PORT = 443
"""The only one that the way out lets through."""
HOSTS_REQUEST = "hosts"


async def ask_for_hosts(services: Services, turn: Turn) -> None:
    """Asks with the turn's end: nobody waits for the answer, and a yes begins the next turn."""
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
    """Those of the repository's config, and those that people have allowed: this turn, or the whole session. None:
    nothing at all, where the code comes from a fork."""
    if turn.part(OnFork).fork is not None:
        return None
    found = set(repo_config.load(turn.config).egress)
    for one in await approvals.of_session(services.store, turn.key.session):
        if one.hosts and one.state is ApprovalState.APPROVED and await _counts(services, turn, one):
            found.update(one.hosts)
    return frozenset(found)


async def _counts(services: Services, turn: Turn, yes: Approval) -> bool:
    """One that is given once is used up by the first turn whose agent has worked with it: a `retry` asks again."""
    if yes.scope is Scope.SESSION or yes.id != turn.approval:
        return yes.scope is Scope.SESSION
    begun_with_it = [one for one in await sessions.turns_of(services.store, turn.key.session) if one.approval == yes.id]
    return not any(one.n < turn.n and one.work_started_at is not None for one in begun_with_it)


log = logging.getLogger(__name__)
CLOSED = 1
"""Grows whenever more of a sandbox is closed before an agent comes: in one that was open, one has been already."""
NETWORKED = (Step.WORK, Step.VERIFY)
"""Steps in which commands of others run there; bringing the work home asks for nothing but the work."""


async def find_or_create(
    services: Services, turn: Turn, snapshot: StoredSnapshot | None
) -> tuple[ExecutionEnvironment, EnvironmentRow]:
    """The turn's own, the one that was kept for it, or a new one; under a key that a repetition finds again."""
    spec = await spec_of(services, turn)
    again = await rows.used_by(services.store, turn.key) is not None
    async with services.environment_locks.of(turn.key.session):
        # No longer than this: there may not be room for it for hours, and who looks for strays must not wait for that.
        row = await rows.take(services.store, turn.key, _made_of(services, spec))
    await _end_given_up(services, turn)
    if again:
        await meter.catch_up(services, row.id)
    if is_reused(row) and not row.prepared:
        # By way of `attach`, which says so when it is not there: `create` would make another, unseen.
        kept = await services.environments.attach(row.id)
        await kept.still()
    primitives = await created(services, row, spec, snapshot)
    await services.egress.open(row.id, None if spec.egress is None else frozenset(spec.egress))
    await meter.look(services.store, turn.key, primitives)
    return ExecutionEnvironment(primitives, services.agent, attempt=turn.attempt), row


async def _end_given_up(services: Services, turn: Turn) -> None:
    """Ends what was kept and does not fit: it may hold the place that the new one needs."""
    for left in await rows.given_up(services.store, turn.key.session):
        try:
            await give_up(services, left)
        except SandboxError as error:
            log.warning("an environment is left to the sweep", extra={"id": left, "error": str(error)})


async def created(
    services: Services, row: EnvironmentRow, spec: EnvironmentSpec, snapshot: StoredSnapshot | None
) -> EnvironmentPrimitives:
    found = await _created(services, row, spec, snapshot)
    log.info("a sandbox is there", extra={"sandbox": row.id, "purpose": row.purpose, "kept": is_reused(row)})
    return found


async def _created(
    services: Services, row: EnvironmentRow, spec: EnvironmentSpec, snapshot: StoredSnapshot | None
) -> EnvironmentPrimitives:
    if snapshot is None or is_reused(row):
        return await services.environments.create(row.id, spec)
    try:
        return await services.environments.create(row.id, replace(spec, snapshot=snapshot.snapshot_id))
    except SnapshotGone:
        await snapshots.condemn(services.store, snapshot.name)
        return await services.environments.create(row.id, spec)


def is_reused(row: EnvironmentRow) -> bool:
    """An earlier turn has left it."""
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


def _made_of(services: Services, spec: EnvironmentSpec) -> str:
    """Sums up what cannot change in one that is there, also the operator's: the cloud's firewall stays as it was."""
    e2b = services.settings.e2b
    operators = [] if e2b is None else [CLOSED, e2b.template, e2b.hosts(), e2b.unmetered is not None]
    wish = [spec.public_repository, spec.egress, spec.template, *operators]
    return hashlib.sha256(json.dumps(wish).encode()).hexdigest()


async def attach(services: Services, turn: Turn) -> ExecutionEnvironment:
    row = await rows.used_by(services.store, turn.key)
    if row is None:
        raise EnvironmentUnavailable("the turn has no environment yet")
    primitives = await services.environments.attach(row.id)
    if turn.step in NETWORKED:
        await services.egress.open(row.id, await reachable_hosts(services, turn))
    await meter.look(services.store, turn.key, primitives)
    return ExecutionEnvironment(primitives, services.agent, attempt=turn.attempt)


async def is_gone(services: Services, turn: Turn, error: SandboxError) -> bool:
    """Whether what failed in it failed because there is no environment any more. What says so itself is believed: of
    one that is just being removed something may be left for a moment."""
    if isinstance(error, EnvironmentGone):
        return True
    try:
        environment = await attach(services, turn)
        return not await environment.primitives.is_running()
    except EnvironmentGone:
        return True
    except (EnvironmentUnavailable, SandboxError):
        return False


async def give_up(services: Services, environment_id: str) -> None:
    """Gone for good; that it is gone already is as good."""
    await rows.give_up(services.store, environment_id)
    await meter.catch_up(services, environment_id)
    await services.environments.end(environment_id)
    await machines.end_of(services.store, environment_id)
    await services.egress.close(environment_id)
    await rows.forget(services.store, environment_id)
    log.info("a sandbox was ended", extra={"sandbox": environment_id})


async def lay_to_rest(services: Services, row: EnvironmentRow) -> None:
    """A kept one, by who holds its session's lock: it needs nothing from now on. One that does not come to rest is
    given up, since it would go on to cost."""
    try:
        await services.environments.rest(row.id)
    except SandboxError as error:
        log.warning("a kept environment does not come to rest", extra={"id": row.id, "error": str(error)})
        await give_up(services, row.id)
    else:
        await machines.end_of(services.store, row.id)


IN_PEACE = (
    Outcome.PULL_REQUEST,
    Outcome.PUSHED,
    Outcome.ANSWERED,
    Outcome.REVIEWED,
    Outcome.PLANNED,
    Outcome.NO_CHANGE,
    Outcome.NEEDS_INPUT,
    Outcome.OVER_BUDGET,
    Outcome.TIMED_OUT,
)
"""After these the next turn may go on there. After any other, who knows what state it is in."""


async def keep_or_end(services: Services, turn: Turn) -> bool:
    """Returns whether it is kept; safe to repeat."""
    row = await rows.last_of(services.store, turn.key)
    if row is None:
        return False
    if row.state is EnvironmentUse.KEPT:
        return True
    if not _may_stay(services, turn):
        await give_up(services, row.id)
        return False
    await rows.keep(services.store, row.id, services.clock() + 60 * services.settings.limits.keep_minutes)
    return True


async def rest_kept(services: Services, turn: Turn) -> None:
    """Leaves it to the sweep where it cannot be done now."""
    async with services.environment_locks.of(turn.key.session):
        row = await rows.last_of(services.store, turn.key)
        if row is None or row.state is not EnvironmentUse.KEPT:
            return
        try:
            await lay_to_rest(services, row)
        except SandboxError as error:
            log.warning("an environment is left to the sweep", extra={"id": row.id, "error": str(error)})


def _may_stay(services: Services, turn: Turn) -> bool:
    """Not what has read words of people without write access (they might have laid something down for the next), and
    not where an agent was lost."""
    if turn.untrusted or turn.resumptions or turn.stop_requested or turn.outcome not in IN_PEACE:
        return False
    return services.settings.limits.keep_minutes > 0
