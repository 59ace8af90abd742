"""A held commit that a person has approved is pushed."""

from bot.kinds.parts import Does, Traits

TRAITS = Traits(name="release", does=Does.PUSHES)
