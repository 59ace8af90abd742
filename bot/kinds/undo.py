"""A commit on top takes the last push of the session back."""

from __future__ import annotations

from bot.kinds.shape import Does, Traits, TurnPart

TRAITS = Traits(name="undo", does=Does.PUSHES, repeatable=False, checks_followed=False)


class TakenBack(TurnPart, frozen=True):
    turn: int | None = None
    """The turn whose push is taken back."""
