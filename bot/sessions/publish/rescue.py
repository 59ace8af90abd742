"""Saves work that may not be published: under a ref that expires, or on the host."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from bot.errors import BotError, GitHubRefused
from bot.git.errors import BundleRefused, PushRaced, PushRefused
from bot.git.quarantine import Quarantine
from bot.git.remote import Removed
from bot.github.types import TokenPurpose
from bot.kinds.parts import OnFork
from bot.models import Outcome, SessionId
from bot.sessions import agent_memory
from bot.sessions.moves import End, Move
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.sessions.starting_point import follow_move, remote_access
from bot.store import approvals, audit, repos, sessions
from bot.store.approvals import ApprovalKind
from bot.store.base import Store
from bot.store.operations import DAY
from bot.store.repos import Rescue
from bot.store.sessions import Turn
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment


def collected_bundle(services: Services, turn: Turn) -> Path:
    """The bundle that was brought home; gone when the turn is settled."""
    return services.turn_folder(turn.key.workflow_id) / "work.bundle"


def kept_bundle(services: Services, turn: Turn) -> Path:
    folder = services.settings.data_dir / "kept"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{turn.key.session}-{turn.key.n}.bundle"


def kept_patch(services: Services, turn: Turn) -> Path:
    """The same as something that people can apply."""
    return kept_bundle(services, turn).with_suffix(".patch")


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
    if any(one.kind is ApprovalKind.PUSH for one in await approvals.of_turn(services.store, last.key)):
        return None
    return kept_bundle(services, last) if await asyncio.to_thread(kept_bundle(services, last).is_file) else None


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
    if await asyncio.to_thread(_move, collected_bundle(services, turn), kept_bundle(services, turn)):
        await sessions.update_turn(services.store, turn.key, kept=kept_bundle(services, turn).name)


def _move(bundle: Path, kept: Path) -> bool:
    """Also when an earlier try was cut off after the move."""
    if bundle.exists():
        bundle.replace(kept)
    return kept.exists()


EVERY_SECONDS = 180.0
LOOK_SECONDS = 2.0
BUNDLE_BYTES = 200 << 20


def checkpoint_bundle(services: Services, turn: Turn) -> Path:
    """Holds what was brought home last, let in by the quarantine; not there while nothing was changed."""
    return services.turn_folder(turn.key.workflow_id) / "checkpoint.bundle"


async def save_checkpoints(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Saves beside the run, for as long as it goes on. One that fails is left out: the next comes in a few minutes."""
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
    """The tree that is at home now; nothing is carried when it is the one that was known."""
    session = await sessions.session(services.store, turn.key.session)
    assert turn.base_sha is not None and session.agent_session_id is not None
    await agent_memory.keep_transcript(services, session.agent_session_id, environment)
    if turn.traits.reads:
        return None
    collected = await environment.collect(turn.key.n, turn.base_sha, beside=True)
    if not collected.changed:
        checkpoint_bundle(services, turn).unlink(missing_ok=True)
    elif collected.tree not in (known, _met(services, turn)):
        arrived = checkpoint_bundle(services, turn).with_suffix(".new")
        await environment.fetch_bundle(collected, arrived, BUNDLE_BYTES)
        await _let_in(services, turn, arrived, str(collected.tree))
    return collected.tree


async def _let_in(services: Services, turn: Turn, arrived: Path, tree: str) -> None:
    """Noted before anything looks at it: what is refused, or ends this very process, is not met a second time."""
    assert turn.base_sha is not None
    note = _note(services, turn)
    note.write_text(tree, "ascii")
    try:
        async with services.cache.quarantine(turn.repo_id) as quarantine:
            await quarantine.admit(arrived, base=turn.base_sha)
    except BundleRefused:
        await asyncio.to_thread(arrived.unlink)
        raise
    await asyncio.to_thread(arrived.replace, checkpoint_bundle(services, turn))
    note.unlink()


def _note(services: Services, turn: Turn) -> Path:
    return checkpoint_bundle(services, turn).with_suffix(".met")


def _met(services: Services, turn: Turn) -> str | None:
    try:
        return _note(services, turn).read_text("ascii")
    except FileNotFoundError:
        return None


log = logging.getLogger(__name__)


def rescue_until(services: Services) -> float:
    return services.clock() + services.settings.limits.rescue_days * DAY


async def expire_rescues(services: Services) -> None:
    """Tries again later what GitHub does not answer; what it refuses is not ours to remove."""
    for one in await repos.rescues_due(services.store, services.settings.limits.rescue_days * DAY):
        try:
            became = str(await _remove(services, one))
        except GitHubRefused as error:
            became = f"could not be removed: GitHub refused it ({error.status})"
        except BotError as error:
            log.warning("a rescue ref waits", extra={"ref": one.rescue_ref, "error": str(error)})
            continue
        await repos.rescue_gone(services.store, one)
        await audit.add(services.store, "forgehand", "rescue ref expired", one.rescue_ref, became)


async def _remove(services: Services, one: Rescue) -> Removed:
    session = await sessions.session(services.store, one.session_id)
    access = await remote_access(services, session.thread, TokenPurpose.PUSH)
    return await services.cache.remove_ref(access, one.rescue_ref, one.commit_sha)


async def rescue(work: TurnWork, end: End) -> Move:
    """Work cut short goes to a ref that is no branch; where even that cannot be pushed, it stays on the host."""
    ref = work.turn.key.rescue_ref
    try:
        access = await remote_access(work.services, work.session.thread, TokenPurpose.PUSH)
        await work.quarantine.push(access, work.commit, ref, expect=None)
    except (PushRefused, PushRaced):
        return await keep_on_host(work, end)
    except GitHubRefused as error:
        await follow_move(work.services, work.turn, error)
        return await keep_on_host(work, end)
    columns = {"rescue_ref": ref, "rescue_until": rescue_until(work.services), "commit_sha": work.commit}
    return End(end.outcome, end.detail, columns)


async def saved_commits(store: Store, session: SessionId) -> set[str]:
    """Commits of turns that were cut short, by all their names: they go along with what is pushed on top of them."""
    turns = await sessions.turns_of(store, session)
    ours = {one.commit_sha for one in turns if one.rescue_ref is not None and one.commit_sha is not None}
    made = await repos.signed_in(store, session)
    return ours | {name for name, commit in made.items() if commit in ours}


async def begun_with(store: Store, turn: Turn) -> Turn | None:
    """The turn whose saved work this one goes on from, where none of that is on its branch."""
    if turn.base_sha in (None, turn.tip_sha):
        return None
    earlier = [one for one in await sessions.turns_of(store, turn.key.session) if one.n < turn.n]
    names = await repos.signed_in(store, turn.key.session)
    at = names.get(str(turn.base_sha), turn.base_sha)
    return next((one for one in reversed(earlier) if one.rescue_ref is not None and one.commit_sha == at), None)


async def commit_below(store: Store, session: SessionId, quarantine: Quarantine, commit: str) -> str | None:
    """The commit that was there without this one, and without those below it that were saved and went along."""
    ours, at = await saved_commits(store, session), next(iter(await quarantine.parents(commit)), None)
    while at in ours:
        at = next(iter(await quarantine.parents(str(at))), None)
    return at


async def keep_on_host(work: TurnWork, end: End) -> Move:
    return End(end.outcome, end.detail, {"kept": await keep_bundle(work)})


async def keep_bundle(work: TurnWork) -> str:
    """The name under which the commit is kept on the host."""
    kept = kept_bundle(work.services, work.turn)
    await work.quarantine.keep(work.commit, kept)
    return kept.name
