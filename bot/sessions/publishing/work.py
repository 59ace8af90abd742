"""What is to be published: a turn's work as it came home, opened in its quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from bot.git.quarantine import Quarantine
from bot.sessions.services import Services
from bot.store.sessions import Session, Turn


@dataclass(frozen=True)
class Work:
    services: Services
    turn: Turn
    session: Session
    quarantine: Quarantine
    commit: str
