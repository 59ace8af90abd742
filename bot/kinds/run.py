"""Plain work: the agent carries a request out, and what it changed becomes a pull request."""

from bot.kinds.parts import Does, Traits

TRAITS = Traits(
    name="run",
    does=Does.CHANGES,
    task="Carry the request out in the working directory.",
    reads_findings=True,
)
