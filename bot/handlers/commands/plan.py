"""`plan`: a turn that writes a plan and waits for a yes."""

from __future__ import annotations

from bot.handlers import turns
from bot.handlers.desk import Feature

FEATURE = Feature(
    "plan",
    "plan …",
    "writes a plan, changes nothing, and waits up to 7 days for approval; waiting costs nothing",
    text=True,
    options=True,
    handle=turns.handle,
)
