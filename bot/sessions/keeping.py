"""Work that lies on the host: as it came out of the environment, and what is kept of it where it cannot be pushed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.kinds.parts import OnFork
from bot.models import Outcome
from bot.sessions.services import Services
from bot.store import approvals, sessions
from bot.store.approvals import Kind
from bot.store.sessions import Turn


def collected(services: Services, turn: Turn) -> Path:
    """The bundle that was brought home; gone when the turn is settled."""
    return services.turn_folder(turn.key.workflow_id) / "work.bundle"


def path(services: Services, turn: Turn) -> Path:
    """Where the turn's work is kept for the operator."""
    folder = services.settings.data_dir / "kept"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{turn.key.session}-{turn.key.n}.bundle"


def patch(services: Services, turn: Turn) -> Path:
    """The same as something that people can apply."""
    return path(services, turn).with_suffix(".patch")


async def left_before(services: Services, turn: Turn) -> Path | None:
    """What the last turn on the same commit has left: it could not be pushed, so this one goes on from there. Not what
    waits for a yes of its own, or was turned down."""
    if turn.traits.reads:
        return None
    turns = await sessions.turns_of(services.store, turn.key.session)
    last = next((one for one in reversed(turns) if one.n < turn.n and _has_work(one)), None)
    if last is None or last.kept is None or last.part(OnFork).fork != turn.part(OnFork).fork:
        return None
    if (last.base_sha, last.number) != (turn.base_sha, turn.number):
        return None
    if any(one.kind is Kind.PUSH for one in await approvals.of_turn(services.store, last.key)):
        return None
    return path(services, last) if await asyncio.to_thread(path(services, last).is_file) else None


def _has_work(turn: Turn) -> bool:
    """Or has seen to it that there is none any more. What made a branch of a fork's work leaves the fork as it was."""
    if not turn.traits.leaves_work:
        return False
    if turn.outcome is Outcome.NO_CHANGE and turn.traits.changes:
        return True
    return turn.kept is not None or turn.rescue_ref is not None or turn.commit_sha is not None


async def keep_unpublished(services: Services, turn: Turn) -> None:
    """The last resort of a turn that ended before anything was made of what it brought home.

    The quarantine has let it in once (there is a tree), so the bundle itself is kept: a rename works on a full disk.
    """
    if turn.tree_sha is None or turn.commit_sha or turn.rescue_ref or turn.kept:
        return
    if await asyncio.to_thread(_move, collected(services, turn), path(services, turn)):
        await sessions.update_turn(services.store, turn.key, kept=path(services, turn).name)


def _move(bundle: Path, kept: Path) -> bool:
    """Also when an earlier try was cut off after the move."""
    if bundle.exists():
        bundle.replace(kept)
    return kept.exists()
