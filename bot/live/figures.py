"""Times, counts and short texts as people read them, in the live comment and elsewhere."""

from __future__ import annotations

import time

from bot.models import TokenUsage
from bot.outbound import neutralise

BAR_PARTS = 10


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def roughly(seconds: float) -> str:
    """Claims no second of what is not known exactly."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes} min" if minutes < 90 else f"about {round(minutes / 60)} h"


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(at))


def count(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f} k" if number < 1_000_000 else f"{number / 1_000_000:.1f} M"


def size(count_of_bytes: int) -> str:
    return f"{count_of_bytes / 1e6:.0f} MB" if count_of_bytes < 1e9 else f"{count_of_bytes / 1e9:.1f} GB"


def tokens(usage: TokenUsage) -> str:
    return count(usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens)


def ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def bar(part: float, whole: float) -> str:
    filled = round(min(1.0, part / whole) * BAR_PARTS) if whole > 0 else 0
    return "▰" * filled + "▱" * (BAR_PARTS - filled)


def line(text: str, most: int) -> str:
    """Words of others on one line."""
    return neutralise.line(clip(" ".join(text.split()), most))


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
