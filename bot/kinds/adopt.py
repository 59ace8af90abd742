"""Work on a fork that a person has approved becomes a branch here. The fork stays as it was."""

from bot.kinds.parts import Does, Traits

TRAITS = Traits(name="adopt", does=Does.PUSHES, leaves_work=False)
