"""What becomes of a yes to a fork's code: it names the commit, and is void once the fork's branch holds another one."""

from __future__ import annotations

import re

from bot.events.remarks import Remark, ReviewWanted
from bot.handlers import expiry
from bot.handlers.desk import Desk
from bot.store import approvals, sessions
from bot.store.approvals import Approval, Standing
from bot.words import on_forks

_COMMIT = re.compile(r"[0-9a-f]{12,40}\Z")


def names_commit(given: str | None) -> bool:
    return given is not None and _COMMIT.match(given) is not None


def meant(given: str, known: list[Approval]) -> Approval | None:
    """The newest that is about this commit: a fork's, or one of ours that is held."""
    return next((one for one in reversed(known) if one.commit is not None and one.commit.startswith(given)), None)


async def pushed(event: ReviewWanted, desk: Desk) -> None:
    """A yes that is still asked for was about what the branch held before."""
    latest = await sessions.latest(desk.store, event.thread)
    if latest is None or not event.is_push:
        return
    for one in await approvals.of_session(desk.store, latest.key.session):
        is_about = one.sha is not None and (await sessions.turn(desk.store, one.key)).number == event.thread.number
        if is_about and one.state is Standing.OPEN and one.sha != event.head_sha:
            await expiry.take_away(one, desk)


async def void_now(approval: Approval, remark: Remark, desk: Desk) -> str | None:
    """The sentence where the branch has moved on, which GitHub may not have told us yet."""
    if approval.sha is None:
        return None
    turn, at = await sessions.turn(desk.store, approval.key), desk.github.installation(remark.thread.installation)
    pull = await at.pull(remark.thread.repo, turn.number)
    if pull.head_sha == approval.sha:
        return None
    await expiry.take_away(approval, desk)
    return on_forks.void(approval.sha, pull.head_sha, desk.settings.command)
