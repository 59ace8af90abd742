"""`stop` and `retry` without a comment, for a session's page and the operator: what the comments of those words do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.commands.kinds import Retry
from bot.errors import NotAllowed
from bot.events.remarks import Remark
from bot.handlers import again, permission, stop
from bot.handlers.desk import Desk
from bot.models import DeliveryId, Origin, Person, Thread, TurnState
from bot.store import audit, sessions
from bot.store.deliveries import DeliveryState
from bot.store.sessions import Session, Turn
from bot.words import replies

STILL_UNDER_WAY = "It is still under way."
ASKED_FOR = "Another turn has been asked for."


@dataclass(frozen=True)
class PressedOnPage(Remark):
    """In the place of a comment."""

    pressed: str = ""
    """What it was pressed on: pressed there twice it is one."""

    @property
    def source(self) -> str:
        return f"page:{self.thread.repo.id}:{self.pressed}"


async def press_stop(session: Session, person: Person, desk: Desk) -> str:
    """What came of it, in words; NotAllowed for who may not."""
    await _require(await _remark("stop", session, person, desk), desk)
    if not await stop.stop_all(session.id, person.login, desk):
        return replies.nothing_runs()
    await audit.add(desk.store, person.login, "stop on the page", session.id)
    return "It is being stopped; the work so far is kept."


async def press_retry(session: Session, person: Person, desk: Desk) -> str:
    if not await _again(session, person, desk):
        return STILL_UNDER_WAY
    await audit.add(desk.store, person.login, "retry on the page", session.id)
    return ASKED_FOR


async def retry_for_operator(session: Session, desk: Desk) -> str:
    """In the name of who asked for the last turn, who must have write access still: operators have no say at GitHub."""
    last = await _last(session, desk)
    if not await _again(session, Person(last.requester_id, last.requester), desk):
        raise NotAllowed(STILL_UNDER_WAY)
    await audit.add(desk.store, "operator", "retry", session.id)
    return ASKED_FOR


async def _again(session: Session, person: Person, desk: Desk) -> bool:
    """False while the last turn is under way; NotAllowed for who may not, or where it cannot be."""
    remark = await _remark("retry", session, person, desk)
    await _require(remark, desk)
    if (await _last(session, desk)).state is not TurnState.DONE:
        return False
    remark = replace(remark, thread_sha256=await desk.standing(remark.thread))
    noted = await again.retry(Retry(), remark, desk)
    if noted.state is DeliveryState.REFUSED:
        raise NotAllowed(noted.reason or "That cannot be done now.")
    return True


async def _require(remark: PressedOnPage, desk: Desk) -> None:
    decision = await permission.judge(remark, desk)
    if not decision.allowed:
        raise NotAllowed(f"Nothing was done: {decision.reason}.")


async def _remark(word: str, session: Session, person: Person, desk: Desk) -> PressedOnPage:
    """As if it had been said where the last turn was."""
    last, home = await _last(session, desk), session.thread
    thread = Thread(home.repo, home.installation, last.number, home.is_pull)
    return PressedOnPage(
        origin=Origin(DeliveryId(""), "page", word, person),
        thread=thread,
        author=person,
        body=f"{desk.settings.command} {word}",
        created_at=desk.clock(),
        comment_id=None,
        via_app=None,
        pressed=f"{session.id}:{last.n}",
    )


async def _last(session: Session, desk: Desk) -> Turn:
    return (await sessions.turns_of(desk.store, session.id))[-1]
