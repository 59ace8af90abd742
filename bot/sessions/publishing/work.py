"""What is to be published: a turn's work as it came home, opened in its quarantine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.git.quarantine import Quarantine
from bot.proposal import verification
from bot.sessions.services import Services
from bot.store.sessions import Session, Turn


@dataclass(frozen=True)
class TurnWork:
    services: Services
    turn: Turn
    session: Session
    quarantine: Quarantine
    commit: str
    report: tuple[str, ...] = ()
    """What people should be told of the change, in the pull request or, where that is there, beside the push."""
    done_by: Turn | None = None
    """The earlier turn whose agent did it, where this one only lets it go."""
    landed: str | None = None
    """The commit at which people see it, once it is pushed: ours, or what GitHub has made and signed of it."""

    @property
    def done(self) -> Turn:
        """The turn whose words the pull request has."""
        return self.done_by or self.turn

    @property
    def is_verified(self) -> bool:
        """All checks have passed on this very commit."""
        return verification.all_passed(self.done.verified, self.commit)

    @property
    def checks(self) -> list[dict[str, Any]]:
        """What they gave, under the name by which people see the commit: the content is the same."""
        return verification.renamed(self.done.verified or (), self.commit, self.landed or self.commit)

    @property
    def columns(self) -> dict[str, object]:
        """What its turn knows once it has landed."""
        return {"commit_sha": self.landed, **({"verified": self.checks} if self.turn.verified else {})}

    @property
    def let_go(self) -> bool:
        """Somebody has approved this very commit, with the workflow files that it changes."""
        return self.done_by is not None
