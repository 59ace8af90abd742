"""Work on a fork that a person has approved becomes a branch here. The fork does not change."""

from bot.kinds.shape import Does, Traits

TRAITS = Traits(name="adopt", does=Does.PUSHES, leaves_work=False)
