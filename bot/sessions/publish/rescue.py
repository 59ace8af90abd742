"""Saves work that may not be published: under a ref that is no branch and expires, or on the host."""

from __future__ import annotations

import logging

from bot.errors import BotError, GitHubRefused
from bot.git.errors import PushRaced, PushRefused
from bot.git.quarantine import Quarantine
from bot.git.remote import Removed
from bot.github.types import TokenPurpose
from bot.models import SessionId
from bot.sessions import saved_work
from bot.sessions.moves import End, Move
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.sessions.starting_point import follow_move, remote_access
from bot.store import audit, pushes, sessions
from bot.store.base import Store
from bot.store.operations import DAY
from bot.store.pushes import Rescue
from bot.store.sessions import Turn

log = logging.getLogger(__name__)


def rescue_until(services: Services) -> float:
    return services.clock() + services.settings.limits.rescue_days * DAY


async def expire_rescues(services: Services) -> None:
    """Tries again later what GitHub does not answer; what it refuses is not ours to remove."""
    for one in await pushes.rescues_due(services.store, services.settings.limits.rescue_days * DAY):
        try:
            became = str(await _remove(services, one))
        except GitHubRefused as error:
            became = f"could not be removed: GitHub refused it ({error.status})"
        except BotError as error:
            log.warning("a rescue ref waits", extra={"ref": one.rescue_ref, "error": str(error)})
            continue
        await pushes.rescue_gone(services.store, one)
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
    made = await pushes.signed_in(store, session)
    return ours | {name for name, commit in made.items() if commit in ours}


async def begun_with(store: Store, turn: Turn) -> Turn | None:
    """The turn whose saved work this one goes on from, where none of that is on its branch."""
    if turn.base_sha in (None, turn.tip_sha):
        return None
    earlier = [one for one in await sessions.turns_of(store, turn.key.session) if one.n < turn.n]
    names = await pushes.signed_in(store, turn.key.session)
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
    kept = saved_work.kept_bundle(work.services, work.turn)
    await work.quarantine.keep(work.commit, kept)
    return kept.name
