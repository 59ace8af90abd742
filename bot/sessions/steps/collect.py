"""Step 4: bring the changes of the work tree home, through a quarantine, and the agent's memory with them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from bot.git import names
from bot.git.errors import BundleRefused
from bot.kinds.resolve import Merge
from bot.kinds.shape import BroughtHome
from bot.models import Outcome, Step
from bot.sessions import agent_memory, environments, kinds, turn_patch
from bot.sessions.kinds import NO_WORK
from bot.sessions.moves import End, Move, To
from bot.sessions.publish import rescue
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings
from sandbox.execution import ExecutionEnvironment


async def run(services: Services, turn: Turn) -> Move:
    environment = await environments.attach(services, turn)
    blocked = [asdict(one) for one in await environment.blocked(turn.started_at or turn.created_at)]
    move = await _collect(services, turn, environment)
    left_out = next((one.left_out for one in move.parts if isinstance(one, BroughtHome)), ())
    return replace(move, parts=(*move.parts, BroughtHome(tuple(blocked), left_out)))


async def _collect(services: Services, turn: Turn, environment: ExecutionEnvironment) -> Move:
    session = await sessions.session(services.store, turn.key.session)
    assert turn.base_sha is not None and session.agent_session_id is not None
    await agent_memory.keep_transcript(services, session.agent_session_id, environment)
    if turn.traits.reads:
        return await kinds.of(turn).ended(services, turn)
    collected = await environment.collect(turn.key.n, turn.base_sha)
    left_out = tuple((path, names.alias_fault(path) or endings.UNREADABLE) for path in collected.left_out)
    left_out += tuple((path, endings.CHANGED_INSIDE) for path in collected.inside)
    bundle = rescue.collected_bundle(services, turn)
    if collected.changed:
        bundle.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        await environment.fetch_bundle(collected, bundle, rescue.BUNDLE_BYTES)
        move = await admit(services, turn, bundle)
    else:
        bundle.unlink(missing_ok=True)  # an earlier run's work, which this one has undone
        await turn_patch.forget(services, turn)
        move = await _unchanged(services, turn)
    return replace(move, parts=(*move.parts, BroughtHome(left_out=left_out)))


async def admit(services: Services, turn: Turn, bundle: Path) -> Move:
    """Let a bundle in, and go on to the checks."""
    assert turn.base_sha is not None
    try:
        async with services.cache.quarantine(turn.repo_id) as quarantine:
            tree = await quarantine.admit(bundle, base=turn.base_sha)
            changes = await quarantine.changes(turn.base_sha, tree)
            await turn_patch.save(services, turn, quarantine, tree, at=services.clock(), is_home=True)
    except BundleRefused as error:
        return End(Outcome.REFUSED, endings.work_refused(str(error)))
    if not changes:
        return await _unchanged(services, turn)
    await rescue.save_collected(services, turn)
    files = [
        {
            "path": services.redactor.redact(change.path.encode("utf-8", "replace").decode()),
            "added": None if change.binary else change.added,
            "removed": None if change.binary else change.removed,
        }
        for change in changes
    ]
    return To(Step.VERIFY, {"tree_sha": tree, "files_changed": files})


async def _unchanged(services: Services, turn: Turn) -> Move:
    """End the turn, except for a merge or saved work: without a further change, that may be right as it is."""
    if turn.outcome is None and turn.part(Merge).sha is not None:
        return To(Step.VERIFY)
    begun = await rescue.begun_with(services.store, turn) if turn.outcome is None else None
    if begun is not None:
        return To(Step.VERIFY, {**NO_WORK, "files_changed": begun.files_changed})
    return await kinds.of(turn).ended(services, turn)
