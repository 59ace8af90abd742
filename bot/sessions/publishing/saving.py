"""Work that may not be published: saved under a ref that is no branch, or kept on the host."""

from __future__ import annotations

from bot.errors import GitHubRefused
from bot.git.errors import PushRaced, PushRefused
from bot.git.quarantine import Quarantine
from bot.github.types import TokenPurpose
from bot.live.saving import rescue_ref
from bot.models import SessionId
from bot.sessions import keeping, rescues
from bot.sessions.moves import End, Move
from bot.sessions.publishing.work import Work
from bot.sessions.remote import follow_move, remote_access
from bot.store import sessions, signed
from bot.store.base import Store
from bot.store.sessions import Turn


async def rescue(work: Work, end: End) -> Move:
    """Work cut short goes to a ref that is no branch; where even that cannot be pushed, it stays on the host."""
    ref = rescue_ref(work.turn)
    try:
        access = await remote_access(work.services, work.session.thread, TokenPurpose.PUSH)
        await work.quarantine.push(access, work.commit, ref, expect=None)
    except (PushRefused, PushRaced):
        return await keep(work, end)
    except GitHubRefused as error:
        await follow_move(work.services, work.turn, error)
        return await keep(work, end)
    columns = {"rescue_ref": ref, "rescue_until": rescues.until(work.services), "commit_sha": work.commit}
    return End(end.outcome, end.detail, columns)


async def saved(store: Store, session: SessionId) -> set[str]:
    """Commits of turns that were cut short, by all their names: they go along with what is pushed on top of them."""
    turns = await sessions.turns_of(store, session)
    ours = {one.commit_sha for one in turns if one.rescue_ref is not None and one.commit_sha is not None}
    made = await signed.made(store, session)
    return ours | {name for name, commit in made.items() if commit in ours}


async def begun_with(store: Store, turn: Turn) -> Turn | None:
    """The turn whose saved work this one goes on from, where none of that is on its branch."""
    if turn.base_sha in (None, turn.tip_sha):
        return None
    earlier = [one for one in await sessions.turns_of(store, turn.key.session) if one.n < turn.n]
    names = await signed.made(store, turn.key.session)
    at = names.get(str(turn.base_sha), turn.base_sha)
    return next((one for one in reversed(earlier) if one.rescue_ref is not None and one.commit_sha == at), None)


async def below(store: Store, session: SessionId, quarantine: Quarantine, commit: str) -> str | None:
    """The commit that was there without this one, and without those below it that were saved and went along."""
    ours, at = await saved(store, session), next(iter(await quarantine.parents(commit)), None)
    while at in ours:
        at = next(iter(await quarantine.parents(str(at))), None)
    return at


async def keep(work: Work, end: End) -> Move:
    return End(end.outcome, end.detail, {"kept": await bundle(work)})


async def bundle(work: Work) -> str:
    """The name under which the commit is kept on the host."""
    kept = keeping.path(work.services, work.turn)
    await work.quarantine.keep(work.commit, kept)
    return kept.name
