"""The session's last push is taken back, by a commit on top."""

from __future__ import annotations

from bot.kinds.parts import Does, Traits, TurnPart

TRAITS = Traits(name="undo", does=Does.PUSHES, repeatable=False, checks_followed=False)


class TakenBack(TurnPart, frozen=True):
    turn: int | None = None
    """The turn whose push is taken back."""
