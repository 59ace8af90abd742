"""`stop` and `retry` as buttons of a session's page, and the operator's `retry`: what comments of those words do."""

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
    begun, words = await _again(session, person, desk)
    if begun:
        await audit.add(desk.store, person.login, "retry on the page", session.id)
    return words


async def retry_as_operator(session: Session, desk: Desk) -> tuple[bool, str]:
    """In the name of who asked for the last turn, who must still have write access: the operator has none here."""
    last = await _last(session, desk)
    person = Person(last.requester_id, last.requester)
    begun, words = await _again(session, person, desk)
    if begun:
        await audit.add(desk.store, "operator", "retry on the command line", session.id, f"for {person.login}")
    return begun, words


async def _again(session: Session, person: Person, desk: Desk) -> tuple[bool, str]:
    """Whether another turn was asked for, in words."""
    remark = await _remark("retry", session, person, desk)
    await _require(remark, desk)
    if (await _last(session, desk)).state is not TurnState.DONE:
        return False, "It is still under way."
    remark = replace(remark, thread_sha256=await desk.standing(remark.thread))
    noted = await again.retry(Retry(), remark, desk)
    if noted.state is DeliveryState.REFUSED:
        raise NotAllowed(noted.reason or "Not possible now.")
    return True, "Another turn has been asked for."


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
