"""Tells a session as server-sent events: the same fold as its page, redacted, as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from bot.kinds.shape import ByToken
from bot.models import TurnState
from bot.outbound.redact import Redactor
from bot.store import api_tokens
from bot.store.api_tokens import ApiToken
from bot.store.records import Turn
from bot.store.sessions import Session
from bot.web.api.door import ApiDoor
from bot.web.api.shapes import EntryAnswer, TurnAnswer
from bot.web.pages import redacting
from bot.web.pages.conversation import ConversationEntry, EntryContent
from bot.web.pages.stream import event
from bot.web.pages.watch import MOST_ENTRIES_TOLD, MOST_TOLD, Watched, portion

CHECK_SECONDS = 60.0


class Telling:
    """One program's view of a watched session."""

    def __init__(self, watched: Watched, redactor: Redactor) -> None:
        self._watched = watched
        self._redactor = redactor
        self.seq = 0

    def state(self) -> bytes:
        """Tell how each turn stands; small, so it is sent whole after each change."""
        look = self._watched.overview.look
        turns = [turn_answer(one, self._redactor) for one in look.turns] if look else []
        return event("turns", msgspec.to_builtins(turns))

    async def since(self, seq: int) -> tuple[bytes, int]:
        """Tell the entries that changed after that line, in portions, and up to which line these are."""
        upto, transcript = self._watched.seq, self._watched.transcript
        left = [one for one in transcript.talk.since(seq) if one.changed <= upto]
        few = portion(left, lambda _: 1, MOST_ENTRIES_TOLD)
        contents = await transcript.contents(few)
        few = portion(few, lambda one: contents[one.id].size, MOST_TOLD)
        upto = few[-1].changed if len(few) < len(left) else upto
        told = await asyncio.to_thread(self._entries, few, contents)
        self.seq = upto
        return event("entries", told, upto), upto

    def _entries(self, few: Sequence[ConversationEntry], contents: dict[str, EntryContent]) -> object:
        clean = (redacting.entry(self._redactor, one, contents[one.id]) for one in few)
        return msgspec.to_builtins([_entry_answer(*one) for one in clean])

    @property
    def is_over(self) -> bool:
        """Tell whether no turn is under way and everything was told."""
        return not self._watched.overview.live and self.seq >= self._watched.seq

    async def allowed(
        self, door: ApiDoor, token: ApiToken, session: Session, after: int
    ) -> AsyncGenerator[bytes, None]:
        """Follow the session until it is over; the token and its maker are judged again now and then."""
        asked_at, doubts = door.store.now(), door.doubts(token)
        self.seq = after if after <= self._watched.seq else 0
        async with aclosing(self._watched.stream(after, self.state, self.since)) as chunks:
            async for chunk in chunks:
                now = door.store.now()
                if not 0 <= now - asked_at < CHECK_SECONDS or doubts != door.doubts(token):
                    asked_at, doubts = now, door.doubts(token)
                    known = await api_tokens.get(door.store, token.id)
                    if known is None or not known.is_live(now):
                        return
                    await door.require_writer(token, session.repo)
                yield chunk
                if self.is_over and chunk != b"retry: 1000\n\n":
                    yield event("over", {})
                    return


def turn_answer(one: Turn, redactor: Redactor) -> TurnAnswer:
    clean = redacting.turn(redactor, one)
    return TurnAnswer(
        n=one.n,
        kind=one.asked_as,
        state=TurnState(one.state).value,
        step=one.step.value,
        outcome=one.outcome.value if one.outcome else None,
        detail=clean.detail or "",
        prompt=clean.prompt,
        requester=one.requester,
        token=one.part(ByToken).name,
        created_at=one.created_at,
        started_at=one.started_at,
        finished_at=one.finished_at,
        commit=one.commit_sha,
    )


def _entry_answer(one: ConversationEntry, content: EntryContent) -> EntryAnswer:
    return EntryAnswer(
        id=one.id,
        turn=one.turn,
        at=one.at,
        kind=one.kind,
        title=one.title,
        about=one.about,
        tool=one.tool,
        ok=one.ok,
        text=content.text,
        result=content.result,
        diff=content.diff,
    )
