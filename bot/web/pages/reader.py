"""Draws the part of a transcript that somebody wants to read, turn by turn, and tells times for a replay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bot.store.session_view import SessionView
from bot.web.pages.conversation import ConversationEntry
from bot.web.pages.query import TranscriptPage, TranscriptQuery, page_of
from bot.web.pages.watch import Watched

_CLOSED, _OPEN = Markup('<details class="call">'), Markup('<details class="call" open>')


@dataclass(frozen=True)
class Chapter:
    """A turn, or the part of it that is shown."""

    n: int
    head: Markup
    entries: Sequence[Markup]
    end: Markup


@dataclass(frozen=True)
class DrawnPage:
    page: TranscriptPage
    chapters: Sequence[Chapter]
    seq: int
    """The page shows everything up to this line."""
    tools: Sequence[tuple[str, int]]
    all: int
    failed: int
    dropped: int
    newest: bool
    """It shows the end of the whole transcript, so that new entries belong on it."""

    @property
    def first(self) -> str:
        return self.page.entries[0].id if self.page.entries else ""

    @property
    def last(self) -> str:
        return self.page.entries[-1].id if self.page.entries else ""


async def reader_of(watched: Watched, query: TranscriptQuery) -> DrawnPage:
    transcript, seq = watched.transcript, watched.seq
    page = page_of(await transcript.matching(query), query)
    html = await transcript.draw(page.entries)
    entries = transcript.entries
    newest = not query.filters and page.following is None
    return DrawnPage(
        page=page,
        chapters=_chapters(watched, page, html, query),
        seq=seq,
        tools=transcript.tools(),
        all=len(entries),
        failed=sum(entry.failed for entry in entries),
        dropped=transcript.talk.dropped,
        newest=newest,
    )


def _chapters(watched: Watched, page: TranscriptPage, html: dict[str, Markup], query: TranscriptQuery) -> list[Chapter]:
    """Show the turns with entries on the page; a page without filters also shows those beside them without any.
    The entry that was asked for is open."""
    whole = not query.filters
    of_turn: dict[int, list[Markup]] = {}
    for entry in page.entries:
        made = html[entry.id].replace(_CLOSED, _OPEN, 1) if query.open or entry.id == query.at else html[entry.id]
        of_turn.setdefault(entry.turn, []).append(made)
    begin = min(of_turn, default=0) if page.first > 1 else 0
    after = page.following.turn if page.following is not None else None
    shown = [n for n in watched.heads if n in of_turn or (whole and begin <= n and (after is None or n < after))]
    return [
        Chapter(n, watched.heads[n][0], of_turn.get(n, []), watched.heads[n][1] if whole and n != after else Markup())
        for n in shown
    ]


def times_of(entries: Sequence[ConversationEntry], look: SessionView | None) -> str:
    """List each entry with its times and turn, and each request to the model with its time and dollars."""
    told = [[one.id, round(one.at, 3), round(one.ended_at or one.at, 3), one.turn] for one in entries]
    return json.dumps({"entries": told, "spent": look.spent if look is not None else []})
