"""A commit that is held for a person: kept on the host, shown, and offered by its SHA for a yes."""

from __future__ import annotations

from bot.kinds.resolve import Merge
from bot.models import Outcome
from bot.sessions.moves import End, Move
from bot.sessions.publishing import saving
from bot.sessions.publishing.judging import Judged
from bot.sessions.publishing.work import Work
from bot.store import approvals, sessions
from bot.store.approvals import Kind, Question
from bot.text import characters
from bot.words import on_pushes

DAYS = 7
MOST_SHOWN = 5_000
"""Bytes of the held files' patch: what is longer is looked at in the bundle."""


async def workflows(work: Work, judged: Judged) -> Move:
    """Held by our own policy: it shows what a yes lets go."""
    paths = judged.allowable
    # Of a merge that is what the branch gets: over both sides with their conflicts it would show marks.
    over = judged.over if work.turn.part(Merge).sha is None else work.turn.tip_sha or judged.over
    whole = await work.quarantine.patch(over, f"{work.commit}^{{tree}}", MOST_SHOWN + 1, paths=paths)
    text = characters.spelled_out(whole.decode("utf-8", "replace"))
    return await _offered(work, on_pushes.held(paths, work.commit, text, DAYS, cut=len(whole) > MOST_SHOWN))


async def permission(work: Work, words: str) -> Move:
    """The remote found workflow files that we may not push: with the permission, a yes pushes the same commit."""
    app = await work.services.github.identity()
    told = on_pushes.no_permission if work.let_go else on_pushes.takes_a_yes
    return await _offered(work, told(words, app.slug, work.commit, DAYS))


async def _offered(work: Work, words: str) -> Move:
    """What a yes pushes is there before it can be said."""
    kept = await saving.bundle(work)
    session = await sessions.session(work.services.store, work.turn.key.session)
    matter = {"commit": work.commit, "branch": session.branch, "done_by": work.done.n}
    expires = work.services.clock() + DAYS * 24 * 3600
    approval = await approvals.ask(work.services.store, Question(work.turn.key, Kind.PUSH, matter, expires))
    return End(Outcome.REFUSED, on_pushes.waits(words, approval.id), {"kept": kept})
