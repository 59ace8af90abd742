"""A period as the command line takes it: a day, or a time ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from bot.errors import UserError

SECONDS = {"h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
UNITS = {"h": "hour", "d": "day", "w": "week"}
_AGO = re.compile(r"(\d{1,5})([hdw])")


def began(since: str, now: float, option: str = "--since") -> float:
    if match := _AGO.fullmatch(since):
        return now - int(match[1]) * SECONDS[match[2]]
    try:
        moment = datetime.fromisoformat(since)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UserError(
            f"{option} takes a day such as 2026-11-01, or a time such as 30d or 12h, not {since!r}."
        ) from None


def period(since: str) -> str:
    """Say in words the period that `began` understood."""
    match = _AGO.fullmatch(since)
    if match is None:
        return f"since {since}"
    count, unit = int(match[1]), UNITS[match[2]]
    return f"in the last {unit}" if count == 1 else f"in the last {count} {unit}s"


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """Name the day of a row that counts it since 1970."""
    day = row.get("day")
    if isinstance(day, int):
        return {**row, "day": datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()}
    return row
