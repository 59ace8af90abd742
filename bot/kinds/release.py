"""Forgehand pushes a held commit that a person has approved."""

from bot.kinds.traits import Does, Traits

TRAITS = Traits(name="release", does=Does.PUSHES)
