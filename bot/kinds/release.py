"""A held commit that a person has approved is pushed."""

from bot.kinds.traits import Does, Traits

TRAITS = Traits(name="release", does=Does.PUSHES)
