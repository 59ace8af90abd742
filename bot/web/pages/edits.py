"""Folds a session's stream into the calls of editing tools: what each says that it added and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bot.live.state import place_of
from bot.loops import in_portions
from bot.models import SessionId
from bot.store import conversation
from bot.store.base import Store
from bot.store.conversation import StoredEvent
from bot.web.pages.conversation import changes
from sandbox.agents import events
from sandbox.agents.base import Decoder

EDITING = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit"))
PAGE = 200
MOST_SIZE = 2 << 20
"""The newest calls count."""
CALL_SIZE, LINE_SIZE = 400, 40


@dataclass
class EditCall:
    """Mutable, because its result comes later."""

    id: str
    """The place of the call's entry in the transcript."""
    turn: int
    at: float
    tool: str
    path: str
    diff: list[tuple[str, str]]
    """(add, del, hunk or same; the line)."""
    ok: bool | None = None

    @property
    def size(self) -> int:
        """Estimate its memory, and the time to draw it."""
        return CALL_SIZE + sum(len(text) + LINE_SIZE for _, text in self.diff)


class SessionEdits:
    def __init__(self, session: SessionId, store: Store, decoder: Callable[[], Decoder]) -> None:
        self._session = session
        self._store = store
        self._decoder = decoder
        self._decoders: dict[int, Decoder] = {}
        self._calls: dict[tuple[int, str], EditCall] = {}
        self._size = 0
        self._seq = 0
        self.version = 0
        """Grows with each change."""

    async def refresh(self) -> None:
        while rows := await conversation.events_of_session(self._store, self._session, self._seq, PAGE):
            async for row in in_portions(rows):
                self._feed(row)

    def of_turns(self, turns: Iterable[int]) -> list[EditCall]:
        """List the calls that have not failed."""
        wanted = set(turns)
        return [one for one in self._calls.values() if one.turn in wanted and one.ok is not False]

    def _feed(self, row: StoredEvent) -> None:
        self._seq = row.seq
        if row.kind != conversation.STREAM:
            return
        for part, event in enumerate(self._decoders.setdefault(row.turn, self._decoder()).feed(row.line)):
            if isinstance(event, events.ToolCalled) and event.name in EDITING and event.title:
                call = EditCall(
                    place_of(row.seq, part), row.turn, row.at, event.name, event.title, changes(event.input)
                )
                self._put(row.turn, event.id, call)
            elif isinstance(event, events.ToolReturned) and (known := self._calls.get((row.turn, event.id))):
                known.ok, self.version = event.ok, self.version + 1

    def _put(self, turn: int, name: str, call: EditCall) -> None:
        if not call.diff:
            return
        if (same := self._calls.pop((turn, name), None)) is not None:  # an agent may give a name twice
            self._size -= same.size
        self._calls[turn, name] = call
        self._size, self.version = self._size + call.size, self.version + 1
        while self._size > MOST_SIZE:
            self._size -= self._calls.pop(next(iter(self._calls))).size
