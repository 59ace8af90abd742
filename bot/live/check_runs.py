"""Keep the check runs true to the store, and know what each says: a state, a conclusion, a line for each finding."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from bot.agent import findings
from bot.agent.findings import ReviewFinding, ReviewVerdict, Severity
from bot.errors import BotError, TransientError
from bot.github.types import Annotation, Button, CheckOutput
from bot.kinds.review import HandedOver
from bot.live.questions import is_retry_useless
from bot.live.sections import agents_words, clip
from bot.loops import Loop
from bot.models import InstallationId, Outcome, Thread, TurnState
from bot.outbound import Outbound, neutralise
from bot.proposal import verification
from bot.store import ci, posts, sessions
from bot.store.base import Store
from bot.store.ci import MOVED, TurnCheck
from bot.store.sessions import Turn
from bot.words import endings, on_reviews

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
PAUSE_SECONDS = 2.0
NAME = "Forgehand"
MOST_ANNOTATIONS = 200
MOST_MESSAGE = 4_000
MOST_WORDS = 1_500
STOP = Button("Stop", "Stop it and keep the work so far", "stop")
RETRY = Button("Run again", "Run the last turn again", "retry")
_CONCLUSIONS = {
    Outcome.REVIEWED: "success",
    Outcome.STOPPED: "cancelled",
    Outcome.TIMED_OUT: "timed_out",
    Outcome.FAILED: "failure",
    Outcome.KILLED: "failure",
}
_PUSHED = (Outcome.PULL_REQUEST, Outcome.PUSHED)
_LOUD = (Severity.CRITICAL, Severity.MAJOR)


def check_output(turn: Turn, wanted: str, comment_url: str = "") -> CheckOutput:
    """Show a state of the turn; `comment_url` is its live comment's, which has the details."""
    shown, link = _output(turn, wanted), endings.all_in_the_comment(comment_url)
    summary = "\n\n".join(filter(None, (shown.summary, link)))
    return replace(shown, summary=summary or shown.title, details_url=comment_url or None)


def _output(turn: Turn, wanted: str) -> CheckOutput:
    if wanted == MOVED:
        return CheckOutput("Newer commits", endings.moved_on(), "skipped")
    if wanted == TurnState.QUEUED:
        return CheckOutput("Queued", endings.waits(), status="queued", buttons=(STOP,))
    if wanted == TurnState.RUNNING:
        return CheckOutput("Under way", endings.under_way(), status="in_progress", buttons=(STOP,))
    return _of_review(turn) or _of_work(turn, turn.outcome or Outcome.FAILED)


def _of_review(turn: Turn) -> CheckOutput | None:
    said = turn.part(HandedOver).review
    if said is None or turn.outcome is not Outcome.REVIEWED:
        return None
    review = findings.load(said)
    changes_wanted = review.verdict is ReviewVerdict.REQUEST_CHANGES  # not a failure of the commit: people decide
    return CheckOutput(
        title=on_reviews.headline(review.verdict),
        summary=turn.detail or "",
        conclusion="neutral" if changes_wanted else _CONCLUSIONS[Outcome.REVIEWED],
        annotations=tuple(_annotation(one) for one in review.comments[:MOST_ANNOTATIONS]),
        buttons=(RETRY,),
    )


def _of_work(turn: Turn, outcome: Outcome) -> CheckOutput:
    """Fail for what the work has broken; people decide on what could not be verified, or was broken before."""
    title, words = endings.headline(outcome), clip((turn.agent_result or "").strip(), MOST_WORDS)
    summary = "\n\n".join(filter(None, (turn.detail, agents_words(words, 2 * MOST_WORDS))))
    conclusion = _CONCLUSIONS.get(outcome, "neutral")
    if outcome in _PUSHED:
        conclusion = "success"
        if turn.verified:
            told = verification.words(turn.verified, neutralise.block, mended=turn.mending is not None)
            summary = f"{summary}\n\n**{verification.heading(turn.verified)}:** {told}"
            if verification.work_fails(turn.verified):
                title, conclusion = endings.with_failing_checks(title), "failure"
            elif not verification.all_passed(turn.verified):
                conclusion = "neutral"
    return CheckOutput(
        title=title, summary=summary, conclusion=conclusion, buttons=() if is_retry_useless(turn) else (RETRY,)
    )


def _annotation(one: ReviewFinding) -> Annotation:
    level = "warning" if one.severity in _LOUD else "notice"
    return Annotation(one.path, one.first, one.line, level, one.body[:MOST_MESSAGE], one.severity.capitalize())


class CheckBoard:
    """One writer per installation, as for the comments: if GitHub is slow for one, the others do not wait."""

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
        pause = 0.0
        for check in due:
            try:
                pause = max(pause, await self._write_one(check))
            except Exception:  # a bug, or the store's: the other check runs must not wait for it
                log.exception("a check run could not be updated", extra={"turn": check.key.workflow_id})
                pause = max(pause, PAUSE_SECONDS)
        await asyncio.sleep(pause)

    async def _write_one(self, check: TurnCheck) -> float:
        """Write it, and return how long to leave GitHub alone afterwards."""
        try:
            await self._tell(check)
        except TransientError as error:
            log.warning("a check run waits", extra={"turn": check.key.workflow_id, "error": str(error)})
            return error.retry_after or PAUSE_SECONDS
        except BotError as error:  # for example a missing permission: the review itself goes on
            log.warning("a check run could not be updated", extra={"turn": check.key.workflow_id, "error": str(error)})
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
            output=check_output(turn, check.wanted, await self._comment_url(home, check)),
        )

    async def _comment_url(self, home: Thread, check: TurnCheck) -> str:
        comment = await posts.get(self._store, check.key)
        if comment is None or comment.comment_id is None:
            return ""
        return self._outbound.comment_address(comment.moved_to or home, comment.comment_id)
