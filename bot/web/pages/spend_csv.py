"""An account's spending as CSV, which a spreadsheet opens without carrying anything out. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime

from bot.store.spend_lines import SpendLine

COLUMNS = (
    "day",
    "account",
    "repository",
    "thread",
    "person",
    "session",
    "turn",
    "kind",
    "model",
    "requests",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "model_usd",
    "sandbox_usd",
    "not_confirmed_usd",
)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""With these a spreadsheet takes a text for a formula, also in their full-width form."""


def text(lines: Sequence[SpendLine]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for line in lines:
        writer.writerow([_safe(cell) for cell in _cells(line)])
    return out.getvalue()


def _cells(line: SpendLine) -> Sequence[str | int]:
    tokens = (line.input_tokens, line.output_tokens, line.cache_read_tokens, line.cache_write_tokens)
    money = (line.cost_usd, line.sandbox_usd, line.unconfirmed_usd)
    return (
        datetime.fromtimestamp(line.day * 86_400, UTC).date().isoformat(),
        line.account or "",
        line.repo or "",
        "" if line.number is None else line.number,
        line.person or "",
        line.session_id,
        line.turn,
        line.kind or "",
        line.model,
        line.requests,
        *tokens,
        *(f"{usd:.6f}" for usd in money),
    )


def _safe(cell: str | int) -> str | int:
    """Put an apostrophe before a text that a spreadsheet would take for a formula; numbers stay numbers."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA) else cell
