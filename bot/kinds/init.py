"""A config for the repository: Forgehand tries the commands that its files name, and proposes what passed."""

from __future__ import annotations

from typing import Any

from bot.kinds.shape import Does, Traits, TurnPart

TRAITS = Traits(name="init", does=Does.TRIES, named=True, goes_on=True, repeatable=False)


class ConfigTrials(TurnPart, frozen=True):
    candidates: tuple[dict[str, Any], ...] = ()
    """The commands to try (`bot.survey`)."""
    tried: tuple[dict[str, Any], ...] = ()
    """The results (`bot.proposal.trials`)."""
