"""When an environment starts from a snapshot of its repository, and when one is worth making."""

from __future__ import annotations

import hashlib
import json

from bot import repo_config
from bot.models import Outcome, Thread
from bot.sessions.services import Services
from bot.store import sessions, snapshots
from bot.store.sessions import Turn
from bot.store.snapshots import Base, Snapshot

FRESH_SECONDS = 7 * 86_400.0
AGAIN_SECONDS = 86_400.0
"""A day old, and it is made anew: the difference to the newest commit grows."""
GOOD = (Outcome.PULL_REQUEST, Outcome.PUSHED, Outcome.ANSWERED, Outcome.NO_CHANGE)


async def found(services: Services, turn: Turn, thread: Thread) -> Snapshot | None:
    """What the turn's environment is to start from. Its setup commands are those that the turn itself would run."""
    if services.snapshots is None:
        return None
    snapshot = await snapshots.ready(services.store, base(turn, thread))
    if snapshot is None or snapshot.created_at < services.clock() - FRESH_SECONDS:
        return None
    return snapshot


async def consider(services: Services, turn: Turn) -> None:
    """After a turn: have a snapshot made if it went well on a commit of the default branch, and was slow to begin.

    Only such a commit: what is in a snapshot is in every later session of the repository, so it is what people with
    write access have merged, and nothing of a pull request or a session's own branch.
    """
    if services.snapshots is None or turn.outcome not in GOOD or not _was_slow(services, turn):
        return
    session = await sessions.session(services.store, turn.key.session)
    repo, now = session.thread.repo, services.clock()
    fresh = turn.n == 1 and turn.tip_sha is None and turn.number == session.number and not session.is_pull
    if not fresh or turn.base != repo.default_branch or turn.base_sha is None:
        return
    of = base(turn, session.thread)
    name = f"forgehand-{int(repo.id)}-{_digest([of.template, of.setup_sha256, turn.base_sha])[:20]}"
    config = repo_config.load(turn.config)
    wanted = Snapshot(name, of, config.setup, config.egress, turn.base_sha, turn.base, None, (), 0, now)
    await snapshots.plan(services.store, wanted, not_since=now - AGAIN_SECONDS)


def _was_slow(services: Services, turn: Turn) -> bool:
    e2b = services.settings.e2b
    return e2b is not None and 0 < e2b.snapshot_after <= (turn.furnish_seconds or 0)


def base(turn: Turn, thread: Thread) -> Base:
    config = repo_config.load(turn.config)
    return Base(thread.repo.id, config.template or "", _digest(list(config.setup)))


def _digest(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
