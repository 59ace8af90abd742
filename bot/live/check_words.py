"""What the check run of a turn says at its commit: a state, a conclusion, a line for each finding. Pure."""

from __future__ import annotations

from bot import findings, verification
from bot.findings import Finding, Verdict
from bot.github.types import Annotation, Button, CheckOutput
from bot.kinds.review import HandedOver
from bot.models import Outcome, TurnState
from bot.outbound import neutralise
from bot.store.checks import MOVED
from bot.store.sessions import Turn
from bot.words import endings, on_reviews, outcomes

NAME = "Forgehand"
MOST_ANNOTATIONS = 200
MOST_MESSAGE = 4_000
STOP = Button("Stop", "End it; the work so far is kept", "stop")
RETRY = Button("Run again", "The last turn, once more", "retry")
_CONCLUSIONS = {
    Outcome.REVIEWED: "success",
    Outcome.STOPPED: "cancelled",
    Outcome.TIMED_OUT: "timed_out",
    Outcome.FAILED: "failure",
    Outcome.KILLED: "failure",
}
_PUSHED = (Outcome.PULL_REQUEST, Outcome.PUSHED)
_LOUD = ("critical", "major", "blocker", "high")


def output(turn: Turn, wanted: str) -> CheckOutput:
    if wanted == MOVED:
        return CheckOutput("Newer commits", endings.moved_on(), "skipped")
    if wanted == TurnState.QUEUED:
        return CheckOutput("Queued", endings.waits(), status="queued", buttons=(STOP,))
    if wanted == TurnState.RUNNING:
        return CheckOutput("Under way", endings.is_shown_in_the_comment(), status="in_progress", buttons=(STOP,))
    return _final(turn)


def _final(turn: Turn) -> CheckOutput:
    outcome = turn.outcome or Outcome.FAILED
    review = _review(turn)
    return CheckOutput(
        title=_title(turn, outcome),
        summary=_summary(turn, outcome),
        conclusion=_conclusion(turn, outcome),
        annotations=tuple(_annotation(one) for one in review.comments[:MOST_ANNOTATIONS]) if review else (),
        buttons=(RETRY,),
    )


def _title(turn: Turn, outcome: Outcome) -> str:
    """Of a review what it has come to; of work, also that it is known to be broken."""
    if (review := _review(turn)) is not None:
        return on_reviews.headline(review.verdict)
    words = outcomes.headline(outcome)
    return outcomes.with_failing_checks(words) if _checked(turn, outcome) == "failure" else words


def _summary(turn: Turn, outcome: Outcome) -> str:
    words = turn.detail or endings.is_shown_in_the_comment()
    if outcome not in _PUSHED or not turn.verified:
        return words
    told = verification.words(turn.verified, neutralise.block, mended=turn.mending is not None)
    return f"{words}\n\n**Verified by Forgehand:** {told}"


def _conclusion(turn: Turn, outcome: Outcome) -> str:
    """Changes that a review asks for are no success; nor are they a failure of the commit, as long as people decide."""
    review = _review(turn)
    if review is not None and review.verdict is Verdict.REQUEST_CHANGES:
        return "neutral"
    if outcome in _PUSHED:
        return _checked(turn, outcome)
    return _CONCLUSIONS.get(outcome, "neutral")


def _checked(turn: Turn, outcome: Outcome) -> str:
    """Of work: a failure is what it has broken. Of what could not be verified, or was broken before, people decide."""
    if outcome not in _PUSHED or not turn.verified or verification.all_passed(turn.verified):
        return "success"
    return "failure" if verification.work_fails(turn.verified) else "neutral"


def _review(turn: Turn) -> findings.Review | None:
    said = turn.part(HandedOver).review
    return findings.load(said) if said is not None and turn.outcome is Outcome.REVIEWED else None


def _annotation(one: Finding) -> Annotation:
    level = "warning" if one.severity in _LOUD else "notice"
    return Annotation(one.path, one.first, one.line, level, one.body[:MOST_MESSAGE], one.severity.capitalize())
