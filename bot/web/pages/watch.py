"""Keeps one picture of a session for all its viewers: read once, rendered once, handed to each as bytes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from functools import partial

from markupsafe import Markup

from bot.errors import BotError
from bot.funds import BudgetTerms
from bot.loops import LONG_TEXT, beside, in_portions
from bot.models import SessionId, TurnState
from bot.store import conversation, session_view
from bot.store.base import Store
from bot.store.session_view import SessionView
from bot.web.pages.conversation import Conversation, ConversationEntry
from bot.web.pages.frame import Pages
from bot.web.pages.overview import SessionOverview, overview
from bot.web.pages.stream import event, is_set_within
from sandbox.agents.base import Agent

log = logging.getLogger(__name__)

LIVE_SECONDS = 0.4  # between two looks while a turn runs
REST_SECONDS = 3.0  # and otherwise
HEARTBEAT_SECONDS = 15.0
PAGE = 200
MOST_HTML = 4 << 20
"""The size of all entries on a page; MOST_TOLD is for those sent at once."""
MOST_TOLD = 256 << 10
MOST_KEPT = 50  # sessions whose picture is kept without viewers


class Watched:
    """A session as its page shows it: `refresh` brings it up to date, `stream` follows it."""

    def __init__(self, session: SessionId, store: Store, pages: Pages, agent: Agent, terms: BudgetTerms) -> None:
        self.session = session
        self.viewers = 0
        self.conversation = Conversation(agent.decoder)
        self.overview = SessionOverview()
        self._store = store
        self._pages = pages
        self._terms = terms
        self._heads: dict[int, tuple[Markup, Markup]] = {}
        self.seq = 0
        """Everything up to this line is drawn; the conversation may have been read further."""
        self._html: dict[str, Markup] = {}
        self._batches: dict[int, tuple[bytes, int]] = {}
        self.drawn = Markup()  # the overview, as HTML
        self._state = b""
        self._version = 0
        self._news = asyncio.Event()
        self._nudges = 0
        self._closed = False
        self._lock = asyncio.Lock()
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
            await self._read_on(look.last_seq)
            self._redraw(look)
            self._read_at = began

    def chapters(self) -> list[dict[str, object]]:
        of_turn: dict[int, list[Markup]] = {n: [] for n in self._heads}
        for entry in self.conversation.entries.values():
            if entry.turn in of_turn and entry.id in self._html:
                of_turn[entry.turn].append(self._html[entry.id])
        return [{"n": n, "head": head, "entries": of_turn[n], "end": end} for n, (head, end) in self._heads.items()]

    async def stream(self, after: int) -> AsyncGenerator[bytes, None]:
        """Yield everything that changed after that line, then each change, until the service stops."""
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
                    seen, fresh = self._version, self._state
                if self.seq > seq:
                    lines, seq = self._since(seq)
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

    async def _read_on(self, last: int) -> None:
        """Read and draw up to that line, because later ones may be of turns that are not known yet."""
        talk = self.conversation
        while talk.seq < last:
            before = talk.seq
            rows = await conversation.events_of_session(self._store, self.session, before, PAGE)
            async for row in in_portions(rows):
                if row.seq <= last:
                    talk.feed(row)
            async for entry in in_portions(talk.since(before)):
                draw = partial(self._pages.fragment, "entry.html", entry=entry)
                self._html[entry.id] = await beside(draw, size=entry.size, most=LONG_TEXT)
            self.seq = talk.seq
            self._shorten()
            if talk.seq == before:
                return

    def _shorten(self) -> None:
        """Drop old entries until the page is small enough."""
        talk = self.conversation
        size = sum(len(self._html[name]) for name in talk.entries)
        while size > MOST_HTML:
            size -= len(self._html[talk.drop_oldest()])
        if len(self._html) > len(talk.entries):
            self._html = {name: html for name, html in self._html.items() if name in talk.entries}

    def _redraw(self, look: SessionView) -> None:
        state = self.conversation.states.get(look.turns[-1].n) if look.turns else None
        self.overview = overview(look, state, self._terms)
        fragment, done = self._pages.fragment, TurnState.DONE
        self._heads = {
            turn.n: (
                fragment("turn_head.html", turn=turn),
                fragment("turn_end.html", turn=turn) if turn.state is done else Markup(),
            )
            for turn in look.turns
        }
        self.drawn = fragment("overview.html", view=self.overview)
        heads = [{"turn": n, "head": head, "end": end} for n, (head, end) in self._heads.items()]
        shown = {"html": self.drawn, "headline": self.overview.headline, "live": self.overview.live}
        state_bytes = b"".join([*(event("turn", one) for one in heads), event("overview", shown)])
        self._batches.clear()
        if state_bytes != self._state:
            self._state = state_bytes
            self._version += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _since(self, seq: int) -> tuple[bytes, int]:
        """Share the bytes among viewers who are at the same line."""
        if seq not in self._batches:
            left = [one for one in self.conversation.since(seq) if one.changed <= self.seq]
            portion = self._portion(left)
            shown = [{"id": one.id, "turn": one.turn, "html": self._html[one.id]} for one in portion]
            upto = portion[-1].changed if len(portion) < len(left) else self.seq
            self._batches[seq] = event("lines", shown, upto), upto
        return self._batches[seq]

    def _portion(self, left: list[ConversationEntry]) -> list[ConversationEntry]:
        """Take the first ones, without splitting the entries of a line; the next portion has the rest."""
        size = 0
        for at, entry in enumerate(left):
            size += len(self._html[entry.id])
            if size > MOST_TOLD and at and entry.changed != left[at - 1].changed:
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
        for name in idle[: max(0, len(self._all) - MOST_KEPT)]:
            del self._all[name]
        return found

    def nudge(self) -> None:
        for one in self._all.values():
            one.nudge()

    def close(self) -> None:
        for one in self._all.values():
            one.close()
