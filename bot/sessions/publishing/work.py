"""What is to be published: a turn's work as it came home, opened in its quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from bot import verification
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
    report: tuple[str, ...] = ()
    """What the pull request should tell of the change."""
    done_by: Turn | None = None
    """The earlier turn whose agent did it, where this one only lets it go."""

    @property
    def done(self) -> Turn:
        """The turn whose words the pull request has."""
        return self.done_by or self.turn

    @property
    def is_verified(self) -> bool:
        """All checks have passed on this very commit."""
        return verification.all_passed(self.done.verified, self.commit)

    @property
    def let_go(self) -> bool:
        """Somebody has approved this very commit, with the workflow files that it changes."""
        return self.done_by is not None
