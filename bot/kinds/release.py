"""Forgehand pushes a held commit that a person has approved."""

from bot.kinds.shape import Does, Traits

TRAITS = Traits(name="release", does=Does.PUSHES)
