"""Reads from the page's address which part of a transcript to show, and cuts that part out. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from bot.web.pages.conversation import ConversationEntry

PAGE = 100
ERRORS = "errors"
_PLACE = re.compile(r"e([0-9]{1,15})-([0-9]{1,9})")


@dataclass(frozen=True)
class TranscriptQuery:
    find: str = ""
    tool: str = ""
    """A tool, or a kind of entry."""
    only: str = ""
    open: str = ""
    before: str = ""
    after: str = ""
    at: str = ""

    @classmethod
    def of(cls, query: QueryParams) -> Self:
        return cls(*(query.get(name, "").strip()[:200] for name in cls.__dataclass_fields__))

    @property
    def filters(self) -> dict[str, str]:
        given = {"find": self.find, "tool": self.tool, "only": ERRORS if self.only == ERRORS else ""}
        return {name: value for name, value in given.items() if value}

    def takes(self, entry: ConversationEntry) -> bool:
        """Decide by everything but the words."""
        of_kind = not self.tool or self.tool in (entry.tool, entry.kind)
        return of_kind and (entry.failed or self.only != ERRORS)

    def address(self, *, opened: bool | None = None, **place: str) -> str:
        """Write a relative address with the same filters, at another place."""
        opens = bool(self.open) if opened is None else opened
        query = urlencode({**self.filters, **({"open": "all"} if opens else {}), **place})
        return f"?{query}"

    def here(self, *, opened: bool) -> str:
        place = {"before": self.before, "after": self.after, "at": self.at}
        return self.address(opened=opened, **{name: value for name, value in place.items() if value})


@dataclass(frozen=True)
class TranscriptPage:
    """Some entries in a row, of all that a query takes."""

    entries: Sequence[ConversationEntry]
    first: int
    """The number of the first one, from 1."""
    total: int
    following: ConversationEntry | None
    """The first one behind them."""

    @property
    def last(self) -> int:
        return self.first + len(self.entries) - 1


def page_of(found: Sequence[ConversationEntry], query: TranscriptQuery) -> TranscriptPage:
    """Cut the page out: around an entry, beside one, or the newest."""
    begin, end = len(found) - PAGE, len(found)
    if place := place_in(query.at):
        begin = min(bisect_left(found, place, key=_place) - PAGE // 2, begin)
    elif place := place_in(query.after):
        begin = bisect_right(found, place, key=_place)
    elif place := place_in(query.before):
        end = bisect_left(found, place, key=_place)
        begin = end - PAGE
    begin = max(0, begin)
    end = min(begin + PAGE, end)
    return TranscriptPage(found[begin:end], begin + 1, len(found), found[end] if end < len(found) else None)


def next_failed(entries: Sequence[ConversationEntry], after: str) -> ConversationEntry | None:
    """Return the first failed entry after that one; behind the last, begin again."""
    failed = [entry for entry in entries if entry.failed]
    if not failed:
        return None
    return failed[bisect_right(failed, place_in(after) or (0, 0), key=_place) % len(failed)]


def place_in(name: str) -> tuple[int, int] | None:
    match = _PLACE.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def _place(entry: ConversationEntry) -> tuple[int, int]:
    return entry.place
