"""Saves work that may not be published: under a ref that expires, or on the host."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from bot.errors import BotError, GitHubRefused
from bot.git.errors import BundleRefused, PushRaced, PushRefused
from bot.git.quarantine import Quarantine
from bot.github.types import TokenPurpose
from bot.kinds.shape import OnFork
from bot.models import Outcome, SessionId
from bot.sessions import agent_memory, turn_patch
from bot.sessions.moves import End, Move
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.sessions.starting_point import follow_rename, remote_access
from bot.store import approvals, audit, repos, sessions
from bot.store.approvals import ApprovalKind
from bot.store.base import Store
from bot.store.operations import DAY
from bot.store.sessions import Turn
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

log = logging.getLogger(__name__)

EVERY_SECONDS = 180.0
LOOK_SECONDS = 2.0
BUNDLE_BYTES = 200 << 20


def collected_bundle(services: Services, turn: Turn) -> Path:
    """Return the place of the work that came home; settling removes it."""
    return services.turn_folder(turn.key.workflow_id) / "work.bundle"


async def collected(services: Services, turn: Turn) -> Path:
    """Bring the work to this machine, if another one has brought it home."""
    place = collected_bundle(services, turn)
    return await services.files.fetch(services.name_of(place)) or place


async def save_collected(services: Services, turn: Turn) -> None:
    await services.files.save(services.name_of(collected_bundle(services, turn)))


def kept_name(file: str) -> str:
    """Name a file of kept work as `services.files` knows it."""
    return f"kept/{file}"


def _place_of(services: Services, turn: Turn, suffix: str) -> Path:
    path = services.files.path(kept_name(f"{turn.key.session}-{turn.key.n}{suffix}"))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def kept_patch(services: Services, turn: Turn) -> Path:
    """Return the place of the same work as a patch, which people can apply."""
    return _place_of(services, turn, ".patch")


async def kept_bundle(services: Services, turn: Turn) -> Path | None:
    """Find the work that was kept of a turn."""
    return await services.files.fetch(kept_name(f"{turn.key.session}-{turn.key.n}.bundle"))


async def left_before(services: Services, turn: Turn) -> Path | None:
    """Find the work of the last turn on the same commit that could not be pushed: this turn goes on from there.

    Leave out work that waits for an approval or was denied."""
    if turn.traits.reads:
        return None
    turns = await sessions.turns_of(services.store, turn.key.session)
    last = next((one for one in reversed(turns) if one.n < turn.n and _has_work(one)), None)
    if last is None or last.kept is None or last.part(OnFork).fork != turn.part(OnFork).fork:
        return None
    if (last.base_sha, last.number) != (turn.base_sha, turn.number):
        return None
    if any(one.kind is ApprovalKind.PUSH for one in await approvals.of_turn(services.store, last.key)):
        return None
    return await kept_bundle(services, last)


def _has_work(turn: Turn) -> bool:
    """Tell whether the turn left work, or removed the earlier one. Adopting a fork's work changes nothing there."""
    undid_all = turn.outcome is Outcome.NO_CHANGE and turn.traits.changes
    has_some = turn.kept is not None or turn.rescue_ref is not None or turn.commit_sha is not None
    return turn.traits.leaves_work and (undid_all or has_some)


async def keep_unpublished(services: Services, turn: Turn) -> None:
    """Keep the work of a turn that ended before any step used it, as a last resort.

    The quarantine has let it in once (there is a tree), so keep the bundle itself: a rename works on a full disk.
    """
    if turn.tree_sha is None or turn.commit_sha or turn.rescue_ref or turn.kept:
        return
    bundle, kept = await collected(services, turn), _place_of(services, turn, ".bundle")

    def move() -> bool:
        if bundle.exists():
            bundle.replace(kept)
        return kept.exists()  # perhaps since an earlier try, which was cut off after the move

    if await asyncio.to_thread(move):
        await services.files.save(kept_name(kept.name))
        await sessions.update_turn(services.store, turn.key, kept=kept.name)


def checkpoint_place(services: Services, turn: Turn) -> Path:
    return services.turn_folder(turn.key.workflow_id) / "checkpoint.bundle"


async def checkpoint(services: Services, turn: Turn) -> Path | None:
    """Find the last work that came home and passed the quarantine; None while nothing changed."""
    return await services.files.fetch(services.name_of(checkpoint_place(services, turn)))


async def save_checkpoint(services: Services, turn: Turn) -> None:
    await services.files.save(services.name_of(checkpoint_place(services, turn)))


async def forget_checkpoint(services: Services, turn: Turn) -> None:
    await services.files.forget(services.name_of(checkpoint_place(services, turn)))


async def forget_collected(services: Services, turn: Turn) -> None:
    await services.files.forget(services.name_of(collected_bundle(services, turn)))


async def save_checkpoints(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Save beside the run, as long as it goes on. After a failure, the next try comes in a few minutes."""
    tree: str | None = None
    tried_at = 0.0
    while True:
        now = await sessions.turn(services.store, turn.key)
        last = max(now.checkpoint_at or 0.0, now.work_started_at or services.clock(), tried_at)
        if services.clock() - last >= EVERY_SECONDS:
            tried_at = services.clock()
            try:
                tree = await _brought_home(services, turn, environment, tree)
                await sessions.update_turn(services.store, turn.key, checkpoint_at=services.clock())
            except EnvironmentGone:
                raise
            except (BotError, SandboxError, OSError) as error:
                log.warning("no checkpoint", extra={"turn": turn.key.workflow_id, "error": str(error)})
        await asyncio.sleep(LOOK_SECONDS)


async def _brought_home(
    services: Services, turn: Turn, environment: ExecutionEnvironment, known: str | None
) -> str | None:
    """Bring the work home unless its tree is known; return the tree that is at home now."""
    session = await sessions.session(services.store, turn.key.session)
    assert turn.base_sha is not None and session.agent_session_id is not None
    await agent_memory.keep_transcript(services, session.agent_session_id, environment)
    if turn.traits.reads:
        return None
    at = services.clock()
    collected = await environment.collect(turn.key.n, turn.base_sha, beside=True)
    place = checkpoint_place(services, turn)
    note = place.with_suffix(".met")
    if not collected.changed:
        await forget_checkpoint(services, turn)
        await turn_patch.forget(services, turn)
    elif collected.tree not in (known, note.read_text("ascii") if note.exists() else None):
        arrived = place.with_suffix(".new")
        await environment.fetch_bundle(collected, arrived, BUNDLE_BYTES)
        # Noted before anything looks at it: a tree that is refused, or kills this process, never comes in again.
        note.write_text(str(collected.tree), "ascii")
        await _let_in(services, turn, arrived, at)
        note.unlink()
    return collected.tree


async def _let_in(services: Services, turn: Turn, arrived: Path, at: float) -> None:
    assert turn.base_sha is not None
    try:
        async with services.cache.quarantine(turn.repo_id) as quarantine:
            tree = await quarantine.admit(arrived, base=turn.base_sha)
            await turn_patch.save(services, turn, quarantine, tree, at=at)
    except BundleRefused:
        await asyncio.to_thread(arrived.unlink)
        raise
    await asyncio.to_thread(arrived.replace, checkpoint_place(services, turn))
    await save_checkpoint(services, turn)


async def expire_rescues(services: Services) -> None:
    """Remove old rescue refs, or try again later if GitHub does not answer. A ref that it refuses to remove stays."""
    for one in await repos.rescues_due(services.store, services.settings.limits.rescue_days * DAY):
        try:
            thread = (await sessions.session(services.store, one.session_id)).thread
            access = await remote_access(services, thread, TokenPurpose.PUSH)
            became = str(await services.cache.remove_ref(access, one.rescue_ref, one.commit_sha))
        except GitHubRefused as error:
            became = f"could not be removed: GitHub refused it ({error.status})"
        except BotError as error:
            log.warning("a rescue ref waits", extra={"ref": one.rescue_ref, "error": str(error)})
            continue
        await repos.rescue_gone(services.store, one)
        await audit.add(services.store, "forgehand", "rescue ref expired", one.rescue_ref, became)


async def rescue(work: TurnWork, end: End) -> Move:
    """Push work cut short to a ref that is no branch; if that fails too, it stays on the host."""
    ref = work.turn.key.rescue_ref
    if work.quarantine.large is not None:
        from bot.sessions import large_files

        if await large_files.upload(work, ref) is not None:
            return await keep_on_host(work, end)
    try:
        access = await remote_access(work.services, work.session.thread, TokenPurpose.PUSH)
        await work.quarantine.push(access, work.commit, ref, expect=None)
    except (PushRefused, PushRaced):
        return await keep_on_host(work, end)
    except GitHubRefused as error:
        await follow_rename(work.services, work.turn, error)
        return await keep_on_host(work, end)
    until = work.services.clock() + work.services.settings.limits.rescue_days * DAY
    columns = {"rescue_ref": ref, "rescue_until": until, "commit_sha": work.commit}
    return End(end.outcome, end.detail, columns, parts=end.parts)


async def saved_commits(store: Store, session: SessionId) -> set[str]:
    """List commits of turns that were cut short, by all their names; a push on top of them takes them along."""
    turns = await sessions.turns_of(store, session)
    ours = {one.commit_sha for one in turns if one.rescue_ref is not None and one.commit_sha is not None}
    made = await repos.signed_in(store, session)
    return ours | {name for name, commit in made.items() if commit in ours}


async def begun_with(store: Store, turn: Turn) -> Turn | None:
    """Find the turn whose saved work this one continues, if none of that is on its branch."""
    if turn.base_sha in (None, turn.tip_sha):
        return None
    earlier = [one for one in await sessions.turns_of(store, turn.key.session) if one.n < turn.n]
    names = await repos.signed_in(store, turn.key.session)
    at = names.get(str(turn.base_sha), turn.base_sha)
    return next((one for one in reversed(earlier) if one.rescue_ref is not None and one.commit_sha == at), None)


async def commit_below(store: Store, session: SessionId, quarantine: Quarantine, commit: str) -> str | None:
    """Find the commit below this one, and below saved ones that its push took along."""
    ours, at = await saved_commits(store, session), next(iter(await quarantine.parents(commit)), None)
    while at in ours:
        at = next(iter(await quarantine.parents(str(at))), None)
    return at


async def keep_on_host(work: TurnWork, end: End) -> Move:
    return End(end.outcome, end.detail, {"kept": await keep_bundle(work)}, parts=end.parts)


async def keep_bundle(work: TurnWork) -> str:
    """Keep the commit on the host, and return its file's name."""
    kept = _place_of(work.services, work.turn, ".bundle")
    await work.quarantine.keep(work.whole or work.commit, kept)
    await work.services.files.save(kept_name(kept.name))
    return kept.name
