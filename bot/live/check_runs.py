"""Keeps the check runs true to the store, and knows what each says: a state, a conclusion, a line for each finding."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from bot.agent import findings
from bot.agent.findings import ReviewFinding, ReviewVerdict
from bot.errors import BotError, TransientError
from bot.github.types import Annotation, Button, CheckOutput
from bot.kinds.review import HandedOver
from bot.loops import Loop
from bot.models import InstallationId, Outcome, TurnState
from bot.outbound import Outbound, neutralise
from bot.proposal import verification
from bot.store import ci, sessions
from bot.store.base import Store
from bot.store.ci import MOVED, TurnCheck
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


def check_output(turn: Turn, wanted: str) -> CheckOutput:
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
    """Says what a review has come to, and of work also that it is known to be broken."""
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
    if review is not None and review.verdict is ReviewVerdict.REQUEST_CHANGES:
        return "neutral"
    if outcome in _PUSHED:
        return _checked(turn, outcome)
    return _CONCLUSIONS.get(outcome, "neutral")


def _checked(turn: Turn, outcome: Outcome) -> str:
    """Fails for what the work has broken; people decide on what could not be verified, or was broken before."""
    if outcome not in _PUSHED or not turn.verified or verification.all_passed(turn.verified):
        return "success"
    return "failure" if verification.work_fails(turn.verified) else "neutral"


def _review(turn: Turn) -> findings.ReviewReport | None:
    said = turn.part(HandedOver).review
    return findings.load(said) if said is not None and turn.outcome is Outcome.REVIEWED else None


def _annotation(one: ReviewFinding) -> Annotation:
    level = "warning" if one.severity in _LOUD else "notice"
    return Annotation(one.path, one.first, one.line, level, one.body[:MOST_MESSAGE], one.severity.capitalize())


log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
PAUSE_SECONDS = 2.0


class CheckBoard:
    """One writer an installation, as for the comments: a slow GitHub of one holds up no other."""

    def __init__(self, store: Store, outbound: Outbound) -> None:
        self._store = store
        self._outbound = outbound
        self._writers: dict[InstallationId, asyncio.Task[None]] = {}
        self.loop = Loop("check_runs", self._look, LOOK_SECONDS, rest_seconds=PAUSE_SECONDS)

    async def _look(self) -> None:
        self._writers = {one: writer for one, writer in self._writers.items() if not writer.done()}
        due: defaultdict[InstallationId, list[TurnCheck]] = defaultdict(list)
        for check in await ci.untold_checks(self._store):
            due[check.installation_id].append(check)
        for installation in due.keys() - self._writers.keys():
            self._writers[installation] = self.loop.begin(self._write(due[installation]))

    async def _write(self, due: Sequence[TurnCheck]) -> None:
        """One that cannot be told must not silence the others."""
        pause = 0.0
        for check in due:
            try:
                pause = max(pause, await self._one(check))
            except Exception:  # a bug, or the store's
                log.exception("a check run cannot be told", extra={"turn": check.key.workflow_id})
                pause = max(pause, PAUSE_SECONDS)
        await asyncio.sleep(pause)

    async def _one(self, check: TurnCheck) -> float:
        """Returns how long to leave GitHub alone afterwards."""
        try:
            await self._tell(check)
        except TransientError as error:
            log.warning("a check run waits", extra={"turn": check.key.workflow_id, "error": str(error)})
            return error.retry_after or PAUSE_SECONDS
        except BotError as error:  # without the permission, say: nobody has to do without the review for that
            log.warning("a check run cannot be told", extra={"turn": check.key.workflow_id, "error": str(error)})
            await ci.check_refused(self._store, check)
            return PAUSE_SECONDS
        await ci.check_told(self._store, check)
        return 0.0

    async def _tell(self, check: TurnCheck) -> None:
        turn = await sessions.turn(self._store, check.key)
        home = (await sessions.session(self._store, check.session_id)).thread
        await self._outbound.check(
            replace(home, number=turn.number),
            sha=check.sha,
            name=NAME,
            external_id=f"{check.session_id}-{check.turn}",
            output=check_output(turn, check.wanted),
        )
