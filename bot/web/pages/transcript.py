"""A session's transcript in memory: all entries, the contents of the newest, and the HTML of those seen lately."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial

from markupsafe import Markup

from bot.loops import LONG_TEXT, beside, in_portions
from bot.models import SessionId
from bot.store import conversation
from bot.store.base import Store
from bot.web.pages.conversation import Conversation, ConversationEntry, EntryContent
from bot.web.pages.frame import Pages
from bot.web.pages.query import TranscriptQuery
from sandbox.agents.base import Decoder

READ_AT_ONCE = 200
SEARCHED_AT_ONCE = 40
MOST_TOOLS = 40
MOST_HTML = 4 << 20
"""In characters: the drawn entries that are kept, those seen last."""


class Transcript:
    def __init__(self, session: SessionId, store: Store, pages: Pages, decoder: Callable[[], Decoder]) -> None:
        self.talk = Conversation(decoder)
        self._session = session
        self._store = store
        self._pages = pages
        self._decoder = decoder
        self._html: dict[str, tuple[int, Markup]] = {}
        """By entry: the line that changed it last when it was drawn. The latest use is at the end."""
        self._size = 0
        self._searching = asyncio.Lock()
        """One search at a time, because it may read the whole session again."""

    @property
    def entries(self) -> list[ConversationEntry]:
        return list(self.talk.entries.values())

    async def read_to(self, last: int) -> None:
        """Read up to that line, because later ones may be of turns that are not known yet."""
        talk = self.talk
        while talk.seq < last:
            before = talk.seq
            rows = await conversation.events_of_session(self._store, self._session, before, READ_AT_ONCE)
            async for row in in_portions(rows):
                if row.seq <= last:
                    talk.feed(row)
            if talk.seq == before:
                return

    async def matching(self, query: TranscriptQuery) -> list[ConversationEntry]:
        found = [entry for entry in self.entries if query.takes(entry)]
        words = query.find.casefold()
        if not words:
            return found
        async with self._searching:
            return [entry async for entry in self._having(words, found)]

    async def _having(self, words: str, entries: Sequence[ConversationEntry]) -> AsyncIterator[ConversationEntry]:
        parts = [entries[at : at + SEARCHED_AT_ONCE] for at in range(0, len(entries), SEARCHED_AT_ONCE)]
        async for part in in_portions(parts):
            contents = await self.contents(part)
            for entry in part:
                if words in f"{entry.tool} {entry.title}\n{entry.about}".casefold() or contents[entry.id].has(words):
                    yield entry

    def tools(self) -> list[tuple[str, int]]:
        """List the tools that the agent used, each with the number of its calls, the most used first."""
        return Counter(entry.tool for entry in self.talk.entries.values() if entry.tool).most_common(MOST_TOOLS)

    async def draw(self, entries: Sequence[ConversationEntry]) -> dict[str, Markup]:
        """Render entries, by their ids; one that changes meanwhile is drawn again at the next look."""
        drawn: dict[str, Markup] = {}
        missing: list[ConversationEntry] = []
        for entry in entries:
            changed, html = self._html.pop(entry.id, (0, Markup()))
            if changed == entry.changed:
                self._html[entry.id] = changed, html
                drawn[entry.id] = html
            else:
                self._size -= len(html)
                missing.append(entry)
        for at in range(0, len(missing), SEARCHED_AT_ONCE):
            part = missing[at : at + SEARCHED_AT_ONCE]
            seen = {entry.id: entry.changed for entry in part}
            contents = await self.contents(part)
            async for entry in in_portions(part):
                content = contents[entry.id]
                draw = partial(self._pages.fragment, "entry.html", entry=entry, content=content)
                html = await beside(draw, size=content.size, most=LONG_TEXT)
                drawn[entry.id] = html
                if entry.changed == seen[entry.id]:
                    self._keep(entry, html)
        return drawn

    def _keep(self, entry: ConversationEntry, html: Markup) -> None:
        _, before = self._html.pop(entry.id, (0, Markup()))
        self._html[entry.id] = entry.changed, html
        self._size += len(html) - len(before)
        while self._size > MOST_HTML and len(self._html) > 1:
            _, oldest = self._html.pop(next(iter(self._html)))
            self._size -= len(oldest)

    async def contents(self, entries: Iterable[ConversationEntry]) -> dict[str, EntryContent]:
        """Return the contents; of an entry that has let its own go, it is folded again from its lines."""
        known = {entry.id: entry.content for entry in entries}
        lost = sorted({line for name in known for line in self._lines_of(name) if known[name] is None})
        again = Conversation(self._decoder)
        for at in range(0, len(lost), READ_AT_ONCE):
            rows = await conversation.events_at(self._store, self._session, lost[at : at + READ_AT_ONCE])
            async for row in in_portions(rows):
                again.feed(row)
        found: dict[str, EntryContent] = {}
        for name, content in known.items():
            entry = again.entries.get(name)
            found[name] = content or (entry and entry.content) or EntryContent()
        return found

    def _lines_of(self, name: str) -> list[int]:
        entry = self.talk.entries.get(name)
        return entry.lines if entry is not None else []
