"""`init`: a turn without an agent that proposes a config whose commands passed."""

from __future__ import annotations

from bot.handlers import turns
from bot.handlers.desk import Feature

FEATURE = Feature(
    "init", "init", "tries the repository's own commands, and proposes a `.github/forgehand.yml`", handle=turns.handle
)
