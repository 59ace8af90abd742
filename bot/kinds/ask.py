"""A question: the agent reads and answers."""

from bot.kinds.shape import Does, Traits
from bot.models import Outcome

TRAITS = Traits(
    name="ask",
    by_api=True,
    does=Does.READS,
    task="Answer the request. Change no file: nothing you change will be kept.",
    unchanged=Outcome.ANSWERED,
    named=True,
    goes_on=True,
    reads_findings=True,
)
