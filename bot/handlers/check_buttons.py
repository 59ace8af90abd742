"""The buttons of a check run: `stop` and `retry` by the person who pressed one, if they may write here."""

from __future__ import annotations

import re
from dataclasses import replace

from bot.commands.kinds import Retry
from bot.errors import StoreError
from bot.events.checks import CheckAsked
from bot.events.remarks import ButtonPressed
from bot.handlers import again, permission, stop
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted, ignored, refused
from bot.models import SessionId, TurnKey
from bot.store import sessions

_OURS = re.compile(r"([a-z0-9]{8})-(\d{1,5})\Z")


async def handle(event: CheckAsked, desk: Desk) -> Noted:
    if event.app_id != (await desk.github.identity()).app_id:
        return ignored("it is the check run of another App")
    remark = await _remark(event, desk)
    if remark is None:
        return ignored("no turn of ours is known for this check run")
    if not (decision := await permission.judge(remark, desk)).allowed:
        return refused(decision.reason)
    if event.wish == "retry":
        if await sessions.by_source(desk.store, remark.source):
            return ignored("this check run was begun again before")
        remark = replace(remark, thread_sha256=await desk.standing(remark.thread))
        return await again.retry(Retry(), remark, desk)
    if event.wish != "stop":
        return ignored("there is no such button")
    latest = await sessions.latest(desk.store, remark.thread)
    if latest is None or not await stop.stop_all(latest.key.session, remark.author.login, desk):
        return ignored("nothing was running any more")
    return acted(latest.key.session)


async def _remark(event: CheckAsked, desk: Desk) -> ButtonPressed | None:
    """As if they had written it on the thread of the turn; a check run names no thread, a fork's not even its pull."""
    named = _OURS.match(event.external_id)
    if named is None:
        return None
    try:
        turn = await sessions.turn(desk.store, TurnKey(SessionId(named[1]), int(named[2])))
        session = await sessions.session(desk.store, turn.key.session)
    except StoreError:
        return None
    if session.repo_id != event.repo.id:
        return None
    thread = replace(session.thread, repo=event.repo, installation=event.installation, number=turn.number)
    now = desk.clock()
    return ButtonPressed(event.origin, thread, event.origin.sender, "", now, None, None, pressed=event.external_id)
