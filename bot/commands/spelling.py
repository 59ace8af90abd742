"""Knows which command is meant by words that are nearly one: they must not be paid for as work."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.text.likeness import is_near

LONGEST = 40
"""Of what can still be a command that is misspelt; more are words of work."""
_SYNONYMS = {
    **dict.fromkeys(("abort", "cancel", "halt", "kill", "quit", "terminate"), "stop"),
    **dict.fromkeys(("again", "rerun", "try again"), "retry"),
    **dict.fromkeys(("revert",), "undo"),
    **dict.fromkeys(("reject",), "deny"),
    **dict.fromkeys(("resume",), "continue"),
}
_ANSWERS = {
    **dict.fromkeys(("yes", "y", "yep", "yeah", "ok", "okay", "sure", "lgtm", "go ahead", "do it", "allow"), "approve"),
    **dict.fromkeys(("no", "n", "nope", "don't", "dont"), "deny"),
}
_POLITE = re.compile(r"(?:please\s+)?(.*?)(?:[\s,.!?]+(?:please|pls|now|thanks|thank you))*[\s,.!?]*\Z", re.DOTALL)
_POINTING = re.compile(r"(approve|deny|retry|stop|undo)\s+(?:it|that|this|the plan)\Z")


def plainly(said: str) -> str:
    """Leave out what is only polite, urgent or a mark: `Stop it now!` is `stop`."""
    return _bare(said) if len(said) <= LONGEST else said


def answer(said: str) -> str | None:
    """`approve` or `deny`, where somebody says so in the words of every day."""
    return _ANSWERS.get(plainly(said))


def meant(said: str, known: Sequence[str]) -> str | None:
    """Find the known command that is meant; several words must match it letter by letter."""
    if not said or len(said) > LONGEST:
        return None
    words = _bare(said)
    if words in _SYNONYMS:
        return _SYNONYMS[words]
    if " " in words:
        return words if words in known else None
    return next((one for one in known if is_near(words, one)), None)


def _bare(said: str) -> str:
    """`Fix CI, please!` is `fix ci`, and `stop it now` is `stop`."""
    match = _POLITE.match(" ".join(said.lower().split()))
    words = match[1] if match else said
    return found[1] if (found := _POINTING.match(words)) else words
