"""The days that a page of money shows: a month, from a day to a day, or the last thirty. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self
from urllib.parse import urlencode

from bot.errors import UserError

USUAL = 30
MOST = 1100
WRONG = "These dates cannot be read. Give days such as 2026-11-01, or a month such as 2026-11, of at most three years."


@dataclass(frozen=True)
class Days:
    """Days of UTC; both ends count."""

    first: date
    last: date
    words: str

    @classmethod
    def of(cls, query: Mapping[str, str], now: float) -> Self:
        """Read `month`, or `from` and `to`; the last thirty days if none is given."""
        today = datetime.fromtimestamp(now, UTC).date()
        month, start, end = (query.get(name, "").strip() for name in ("month", "from", "to"))
        try:
            if month:
                first = date.fromisoformat(f"{month}-01")
                next_month = (first + timedelta(days=31)).replace(day=1)
                return cls(first, next_month - timedelta(days=1), f"in {first:%B %Y}")
            if not (start or end):
                return cls(today - timedelta(days=USUAL - 1), today, f"in the last {USUAL} days")
            last = min(date.fromisoformat(end), date(9000, 1, 1)) if end else today
            first = date.fromisoformat(start) if start else last - timedelta(days=USUAL - 1)
            found = cls(first, last, f"from {first} to {last}" if first != last else f"on {first}")
        except (ValueError, OverflowError):
            raise UserError(WRONG) from None
        if not 0 <= (last - first).days < MOST:
            raise UserError(WRONG)
        return found

    @property
    def since(self) -> float:
        return _start(self.first)

    @property
    def until(self) -> float:
        return _start(self.last + timedelta(days=1))

    @property
    def query(self) -> str:
        return urlencode({"from": self.first.isoformat(), "to": self.last.isoformat()})


def months(now: float) -> tuple[tuple[str, str], ...]:
    """Name this month and the last one, each with its value in an address."""
    this = datetime.fromtimestamp(now, UTC).date().replace(day=1)
    before = (this - timedelta(days=1)).replace(day=1)
    return (f"{this:%Y-%m}", f"{this:%B}"), (f"{before:%Y-%m}", f"{before:%B}")


def _start(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
