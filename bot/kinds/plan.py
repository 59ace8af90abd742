"""A plan: the agent reads and proposes, and a person's yes begins the work."""

from bot.kinds.shape import Does, Traits

TRAITS = Traits(
    name="plan",
    by_api=True,
    does=Does.READS,
    task=(
        "Write a plan for the request and change no file. Your last message is the plan itself, whole; it needs no "
        "tool to hand it over. A person will approve it before it is carried out."
    ),
    named=True,
    one_answer=True,
    goes_on=True,
    plans=True,
    effort="high",
    reads_findings=True,
)
