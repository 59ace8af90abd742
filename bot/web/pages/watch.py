"""Keeps one picture of a session for all its viewers: read once, rendered once, handed to each as bytes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

from markupsafe import Markup

from bot.errors import BotError
from bot.funds import BudgetTerms
from bot.loops import beside
from bot.models import SessionId, TurnState
from bot.store import session_view
from bot.store.base import Store
from bot.store.session_view import SessionView
from bot.web.pages.conversation import ConversationEntry
from bot.web.pages.frame import Pages
from bot.web.pages.overview import SessionOverview, overview
from bot.web.pages.stream import event, is_set_within
from bot.web.pages.timeline import Timeline, timeline
from bot.web.pages.transcript import Transcript
from sandbox.agents.base import Agent

log = logging.getLogger(__name__)

LIVE_SECONDS = 0.4  # between two looks while a turn runs
REST_SECONDS = 3.0  # and otherwise
TIMELINE_SECONDS = 2.0  # between two drawings of it, while entries come
HEARTBEAT_SECONDS = 15.0
MOST_TOLD = 256 << 10
"""The size of all entries that are sent at once, and how many these are at most."""
MOST_ENTRIES_TOLD = 500
MANY_ENTRIES = 2000
"""So many entries make a timeline in some 10 ms."""
MOST_KEPT = 50  # sessions whose picture is kept without viewers
MOST_ENTRIES_KEPT = 200_000  # in all of them
TellSince = Callable[[int], Awaitable[tuple[bytes, int]]]
"""Writes what changed after a line, and up to which line that is."""


class Watched:
    """A session as its page shows it: `refresh` brings it up to date, `stream` follows it."""

    def __init__(self, session: SessionId, store: Store, pages: Pages, agent: Agent, terms: BudgetTerms) -> None:
        self.session = session
        self.viewers = 0
        self.transcript = Transcript(session, store, pages, agent.decoder)
        self.overview = SessionOverview()
        self._store = store
        self._pages = pages
        self._terms = terms
        self.heads: dict[int, tuple[Markup, Markup]] = {}
        """By turn: how it begins and, once it is done, how it ended."""
        self.seq = 0
        """Everything up to this line may be shown; the conversation may have been read further."""
        self._batches: dict[int, tuple[bytes, int]] = {}
        self.drawn: dict[str, Markup] = {}
        """Parts of the page as HTML, by their names."""
        self._state = b""
        self._version = 0
        self._timeline_of: tuple[int, int, bool] = (-1, 0, False)
        self._timeline_at = float("-inf")
        self._columns: Sequence[str] = ()
        self._news = asyncio.Event()
        self._nudges = 0
        self._closed = False
        self._lock = asyncio.Lock()
        self._telling = asyncio.Lock()
        self._read_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Show the state of now or later: all who ask during one look share the next."""
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        async with self._lock:
            if self._read_at >= asked_at:
                return
            began = clock()
            look = await session_view.of(self._store, self.session)
            await self.transcript.read_to(look.last_seq)
            self.seq = self.transcript.talk.seq
            self._show(look)
            if began - self._timeline_at >= TIMELINE_SECONDS or not self.overview.live:
                await self._draw_timeline(look)
                self._timeline_at = began
            self._tell()
            self._read_at = began

    def entry_at(self, column: str) -> ConversationEntry | None:
        """Return the entry at which a column of the timeline begins."""
        known = column.isascii() and column.isdecimal() and len(column) < 4 and int(column) < len(self._columns)
        return self.transcript.talk.entries.get(self._columns[int(column)]) if known else None

    async def stream(
        self, after: int, state: Callable[[], bytes] | None = None, since: TellSince | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield everything that changed after that line, then each change, until the service stops.

        `state` and `since` write it in another form than a page's."""
        state, since = state or (lambda: self._state), since or self._since
        self.viewers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())
        seq, seen = after if after <= self.seq else 0, -1
        nudges = self._nudges
        try:
            yield b"retry: 1000\n\n"
            while not self._closed:
                news, fresh = self._news, b""
                if seen != self._version:
                    seen, fresh = self._version, state()
                if self.seq > seq:
                    lines, seq = await since(seq)
                    fresh += lines
                if fresh:
                    yield fresh
                elif not await is_set_within(HEARTBEAT_SECONDS, news) or nudges != self._nudges:
                    nudges = self._nudges
                    yield b": still here\n\n"
        finally:
            self.viewers -= 1

    def nudge(self) -> None:
        """Send something on each stream, so that its sender checks access again."""
        self._nudges += 1
        self._news.set()

    def close(self) -> None:
        self._closed = True
        self._news.set()
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        while self.viewers:
            try:
                await self.refresh()
            except BotError as error:
                log.warning("a watched session cannot be read", extra={"session": self.session, "error": str(error)})
            await asyncio.sleep(LIVE_SECONDS if self.overview.live else REST_SECONDS)

    def _show(self, look: SessionView) -> None:
        state = self.transcript.talk.states.get(look.turns[-1].n) if look.turns else None
        self.overview = overview(look, state, self._terms)
        fragment, done = self._pages.fragment, TurnState.DONE
        self.heads = {
            turn.n: (
                fragment("turn_head.html", turn=turn),
                fragment("turn_end.html", turn=turn) if turn.state is done else Markup(),
            )
            for turn in look.turns
        }
        for name in ("overview", "money", "pull"):
            self.drawn[name] = fragment(f"{name}.html", view=self.overview)

    async def _draw_timeline(self, look: SessionView) -> None:
        known = self.seq, len(look.spent), self.overview.live
        if known == self._timeline_of:
            return
        entries = self.transcript.entries
        make = partial(timeline, entries, look.turns, look.spent)
        line: Timeline = await beside(make, size=len(entries), most=MANY_ENTRIES)
        self.drawn["timeline"] = self._pages.fragment("timeline.html", line=line)
        self._timeline_of, self._columns = known, line.ids

    def _tell(self) -> None:
        heads = [{"turn": n, "head": head, "end": end} for n, (head, end) in self.heads.items()]
        shown = {**self.drawn, "headline": self.overview.headline, "live": self.overview.live}
        state_bytes = b"".join([*(event("turn", one) for one in heads), event("overview", shown)])
        self._batches.clear()
        if state_bytes != self._state:
            self._state = state_bytes
            self._version += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _since(self, seq: int) -> tuple[bytes, int]:
        """Share the bytes among viewers who are at the same line."""
        async with self._telling:
            if (known := self._batches.get(seq)) is None:
                upto = self.seq
                left = [one for one in self.transcript.talk.since(seq) if one.changed <= upto]
                few = portion(left, lambda _: 1, MOST_ENTRIES_TOLD)
                html = await self.transcript.draw(few)
                few = portion(few, lambda one: len(html[one.id]), MOST_TOLD)
                shown = [{"id": one.id, "turn": one.turn, "html": html[one.id]} for one in few]
                upto = few[-1].changed if len(few) < len(left) else upto
                known = self._batches[seq] = event("lines", shown, upto), upto
            return known


def portion(
    left: Sequence[ConversationEntry], weight: Callable[[ConversationEntry], int], most: int
) -> Sequence[ConversationEntry]:
    """Take the first ones, without splitting the entries of a line; the next portion has the rest."""
    size = 0
    for at, entry in enumerate(left):
        size += weight(entry)
        if size > most and at and entry.changed != left[at - 1].changed:
            return left[:at]
    return left


class Watching:
    """Keeps the sessions that are watched, and some that were."""

    def __init__(self, store: Store, pages: Pages, agent: Agent, terms: BudgetTerms) -> None:
        self._store = store
        self._terms = terms
        self._pages = pages
        self._agent = agent
        self._all: dict[SessionId, Watched] = {}

    def of(self, session: SessionId) -> Watched:
        found = self._all.pop(session, None) or Watched(session, self._store, self._pages, self._agent, self._terms)
        self._all[session] = found  # the latest is at the end
        idle = [name for name, one in self._all.items() if not one.viewers and one is not found]
        for name in idle:
            if len(self._all) <= MOST_KEPT and self._entries <= MOST_ENTRIES_KEPT:
                break
            del self._all[name]
        return found

    @property
    def _entries(self) -> int:
        return sum(len(one.transcript.talk.entries) for one in self._all.values())

    def nudge(self) -> None:
        for one in self._all.values():
            one.nudge()

    def close(self) -> None:
        for one in self._all.values():
            one.close()
