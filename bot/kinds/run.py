"""Plain work: the agent carries out a request, and its changes become a pull request."""

from bot.kinds.shape import Does, Traits

TRAITS = Traits(
    name="run",
    by_api=True,
    does=Does.CHANGES,
    task="Carry the request out in the working directory.",
    reads_findings=True,
)
