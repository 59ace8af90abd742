"""Posts the findings of a reviewing agent: one review, each finding at its line or below, none of them twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from bot import repo_config
from bot.agent import findings, prompt
from bot.agent.findings import ReviewReport, ReviewVerdict, Severity
from bot.errors import GitHubRefused, NotFound
from bot.github import reviews
from bot.github.types import LineComment, Pull, ReviewDraft
from bot.kinds import review
from bot.kinds.shape import AgentReading, Aim, TurnPart
from bot.live.state import LiveState
from bot.models import Outcome, Step, Thread
from bot.outbound import TextKind, neutralise
from bot.sessions import starting_point
from bot.sessions.kinds import Preparation, TurnKind
from bot.sessions.moves import End, Move, To
from bot.sessions.reading import Evidence, briefing
from bot.sessions.reviews import discussions, earlier, placing, scope
from bot.sessions.reviews.earlier import Placed, Sorted
from bot.sessions.services import Services
from bot.sessions.starting_point import Start
from bot.store import ci, sessions
from bot.store import findings as stored_findings
from bot.store.sessions import Session, Turn
from bot.words import endings, on_findings, on_reviews
from bot.words.on_reviews import ReviewAccount

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Work:
    services: Services
    turn: Turn
    thread: Thread
    """The pull request's, which may differ from the session's."""
    pull: Pull
    found: Sorted
    account: ReviewAccount
    event: str
    report: ReviewReport
    """The agent's, without the findings that are kept back."""


class ReviewTurn(TurnKind):
    traits = review.TRAITS
    schema = findings.SCHEMA

    async def pin(self, services: Services, turn: Turn) -> tuple[str, Start] | None:
        return await starting_point.pin_pull(services, turn)

    async def begin(self, services: Services, turn: Turn, preparation: Preparation) -> Preparation | To | End:
        sha = preparation.start.sha
        if await briefing.is_repetition(services, turn, sha):
            return End(Outcome.NO_CHANGE, endings.reviewed_already(sha))
        changed = await _changed_paths(services, turn, preparation)
        left_out = await asyncio.to_thread(scope.ignored, changed, preparation.config.review)
        if left_out and len(left_out) == len(changed):
            return End(Outcome.NO_CHANGE, endings.nothing_to_review())
        await ci.show_turn(services.store, turn.key, sha)
        notes, again = (scope.left_out(left_out),) if left_out else (), turn.part(Aim).findings
        words = on_findings.to_look_at(again) if again else preparation.request
        return replace(preparation, beside=Evidence(missing=notes), request=words)

    def result(self, turn: Turn, state: LiveState) -> tuple[str, tuple[TurnPart, ...]]:
        """Read the agent's structured answer; if it has another form, its words alone are its summary."""
        ended = state.ended
        found = findings.read(ended.structured if ended else None)
        words = found.summary if found else state.last_words
        if ended is None or not ended.ok:
            return words, ()
        if found is None and ended.text.strip():
            found = findings.ReviewReport(ReviewVerdict.COMMENT, ended.text.strip()[: findings.MAX_SUMMARY])
        return words, (review.HandedOver(findings.dump(found)),) if found else ()

    async def ended(self, services: Services, turn: Turn) -> Move:
        if turn.outcome is not None:
            return End(turn.outcome, turn.detail or "")
        handed_over = turn.part(review.HandedOver).review
        return To(Step.PUBLISH) if handed_over is not None else End(Outcome.FAILED, endings.no_review())

    async def publish(self, services: Services, turn: Turn, session: Session) -> Move:
        assert turn.base_sha is not None
        thread = replace(session.thread, number=turn.number, is_pull=True)
        pull = await services.github.installation(thread.installation).pull(thread.repo, turn.number)
        later = [one for one in await sessions.turns_of(services.store, session.id) if one.n > turn.n]
        waiting = [one for one in later if one.traits.judges and one.number == turn.number and one.outcome is None]
        if pull.head_sha != turn.base_sha and waiting:  # two reviews of one push help nobody
            return End(Outcome.STOPPED, endings.review_superseded(pull.head_sha))
        work = await _prepared(services, turn, thread, pull)
        if pull.state != "open":
            unsaid = endings.closed_before_review(pull.number, pull.merged)
            return End(Outcome.STOPPED, f"{unsaid}\n\n{_summary(_all_below(work))}")
        parts = turn.part(review.HandedOver)
        kept = msgspec.structs.replace(parts, review=findings.dump(work.report), pull_url=pull.url)
        if _is_quiet(work):
            await _remember(work, None)
            return End(Outcome.REVIEWED, on_reviews.nothing_new(work.account), parts=(kept,))
        try:
            work, review_id = await _post(work)
        except GitHubRefused as refused:
            words = endings.review_not_taken(services.outbound.text(TextKind.COMMENT, refused.message))
            return End(Outcome.REFUSED, f"{words}\n\n{_summary(_all_below(work))}")
        await _remember(work, review_id)
        posted = msgspec.structs.replace(kept, posted=review_id)
        url = f"{pull.url}#pullrequestreview-{review_id}"
        return End(Outcome.REVIEWED, on_reviews.in_short(work.account, url), parts=(posted,))


def _is_quiet(work: _Work) -> bool:
    """Decide whether a review that no person asked for in words has nothing to post."""
    found = work.found
    if not work.turn.part(Aim).unasked or found.on_lines or found.below:
        return False
    return work.event == ReviewVerdict.COMMENT.name or (work.event != ReviewVerdict.APPROVE.name and found.repeated > 0)


async def _changed_paths(services: Services, turn: Turn, preparation: Preparation) -> Sequence[str]:
    """List them only if the repository wants some of them left out."""
    start, base = preparation.start, preparation.base
    if not preparation.config.review.ignore or start.base is None or start.tip is None or start.ref is None:
        return ()
    thread = (await sessions.session(services.store, turn.key.session)).thread
    between = ((start.base, f"refs/heads/{base}"), (start.tip, start.ref))
    found = await starting_point.compared(services, thread, *between, max_bytes=1)
    return found.paths if found else ()


async def _prepared(services: Services, turn: Turn, thread: Thread, pull: Pull) -> _Work:
    handed_over = turn.part(review.HandedOver).review
    assert handed_over is not None and turn.base_sha is not None
    read = findings.load(handed_over)
    found, unsaid = _with_room(await earlier.sort(services, turn, pull, read))
    read = _without_kept_back(read, found)
    config = repo_config.load(turn.config).review
    notes = turn.part(AgentReading).notes
    own = pull.author.id == (await services.github.identity()).bot_id
    retargeted = turn.base not in (None, pull.base_branch)
    allowed = {
        ReviewVerdict.COMMENT: True,
        ReviewVerdict.REQUEST_CHANGES: config.request_changes and not own,
        # No approval for a change that was not read whole, or not compared with today's base.
        ReviewVerdict.APPROVE: config.approve
        and not own
        and not retargeted
        and not any(one.startswith(prompt.UNREAD) for one in notes),
    }
    account = ReviewAccount(
        verdict=read.verdict,
        approves=allowed[ReviewVerdict.APPROVE],
        summary=read.summary,
        on_lines=len(found.on_lines),
        below=[one.finding for one in found.below],
        unsaid=unsaid,
        left_out=read.left_out,
        repeated=found.repeated,
        resolved=found.resolved,
        notes=notes,
        commit=turn.base_sha,
        base=turn.base or pull.base_branch,
        base_now=pull.base_branch if retargeted else None,
        moved_to=pull.head_sha if pull.head_sha != turn.base_sha else None,
        graded=_graded(found),
        kept_back=found.kept_back,
    )
    event = (read.verdict if allowed[read.verdict] else ReviewVerdict.COMMENT).name  # GitHub uses the same names
    return _Work(services, turn, thread, pull, found, account, event, read)


def _without_kept_back(read: ReviewReport, found: Sorted) -> ReviewReport:
    """Leave them out, and ask for no changes on their account alone."""
    blocks = read.verdict is ReviewVerdict.REQUEST_CHANGES and (found.kept or not found.kept_back.any)
    harmless = read.verdict is not ReviewVerdict.REQUEST_CHANGES
    verdict = read.verdict if blocks or harmless else ReviewVerdict.COMMENT
    return replace(read, comments=found.kept, verdict=verdict)


def _graded(found: Sorted) -> list[Severity]:
    return [one.finding.severity for one in (*found.on_lines, *found.below)]


def _with_room(found: Sorted) -> tuple[Sorted, int]:
    """Cut findings that have no room; a later review may post them."""
    most = on_reviews.room_for([one.finding for one in found.below], neutralise.inert)
    return replace(found, below=found.below[:most]), len(found.below) - most


def _all_below(work: _Work) -> _Work:
    """Move all findings below the summary, if none can stand at lines."""
    all_of_them = sorted((*work.found.on_lines, *work.found.below), key=lambda one: one.place)
    return _placed(work, replace(work.found, on_lines=(), below=tuple(all_of_them)))


def _placed(work: _Work, placed: Sorted) -> _Work:
    found, unsaid = _with_room(placed)
    below = [one.finding for one in found.below]
    unsaid = work.account.unsaid + unsaid
    account = replace(work.account, on_lines=len(found.on_lines), below=below, unsaid=unsaid, graded=_graded(found))
    return replace(work, found=found, account=account)


def _summary(work: _Work) -> str:
    return on_reviews.summary(work.account, neutralise.inert)


async def _post(work: _Work) -> tuple[_Work, int]:
    """Post the review and return it as posted. One bad line makes GitHub refuse all, so then retry without such
    lines, or without any."""
    try:
        return work, await _send(work, work.turn.base_sha)
    except GitHubRefused as refused:
        _require_lines(refused)
    shown = await placing.as_shown(work.services, work.turn, work.thread, work.pull, work.found)
    if shown.on_lines and shown.on_lines != work.found.on_lines:
        fitting = _placed(work, shown)
        try:
            return fitting, await _send(fitting, work.turn.base_sha)
        except GitHubRefused as refused:
            _require_lines(refused)
    plain = replace(_all_below(work), event="COMMENT")
    return plain, await _send(plain, None)


def _require_lines(refused: GitHubRefused) -> None:
    """Raise a refusal that other lines would not change."""
    if isinstance(refused, NotFound) or refused.status != 422:
        raise refused
    log.warning("a review is posted without some of its lines, or all", extra={"error": refused.message})


async def _send(work: _Work, sha: str | None) -> int:
    key = work.turn.key
    marker = on_reviews.marker(key.session, key.n)
    comments = tuple(_comment(work.services, one) for one in work.found.on_lines)
    draft = ReviewDraft(sha, work.event, f"{marker}\n{_summary(work)}", comments)
    return await work.services.outbound.review(work.thread, draft, marker)


def _comment(services: Services, placed: Placed) -> LineComment:
    """Word a finding at its lines; drop a suggestion that was changed or would replace other lines."""
    one, (first, last) = placed.finding, placed.shown or (placed.finding.first, placed.finding.line)
    body = on_reviews.on_line(one, placed.name, neutralise.inert, suggests=placed.is_whole)
    suggestion = on_reviews.suggestion(one)
    if suggestion is not None and suggestion not in services.outbound.text(TextKind.COMMENT, body):
        body = on_reviews.on_line(one, placed.name, neutralise.inert, suggests=False)
    if not placed.is_whole:
        body += f"\n\n{on_reviews.beyond_the_diff(one)}"
    body += f"\n\n{on_reviews.how_to_answer(services.settings.command)}"
    return LineComment(one.path, last, first if first < last else None, body)


async def _remember(work: _Work, review_id: int | None) -> None:
    """Store which comment is which finding, and resolve the fixed ones, also at GitHub. None: nothing was posted."""
    services, thread = work.services, work.thread
    comments = []
    if review_id is not None:
        reads = services.github.installation(thread.installation)
        comments = await reviews.of_review(reads, thread.repo, thread.number, review_id)
    ids = {name: one.id for one in comments if (name := reviews.finding_of(one.body)) is not None}
    new = [one.said(work.turn, ids.get(one.name)) for one in (*work.found.on_lines, *work.found.below)]
    await _let_go(work, review_id)
    fixed = [one.comment_id for one in work.found.resolved if one.comment_id is not None]
    await discussions.resolve(services.github, services.outbound, thread, fixed)
    await stored_findings.put_findings(services.store, new, [one.id for one in work.found.resolved])


async def _let_go(work: _Work, review_id: int | None) -> None:
    """Dismiss an earlier review that asks for changes: a comment alone would not let the merge go on."""
    if work.event == "REQUEST_CHANGES":
        return
    services, thread = work.services, work.thread
    reads, me = services.github.installation(thread.installation), (await services.github.identity()).bot_id
    try:
        for one in await reviews.holding(reads, thread.repo, thread.number, me):
            if one != review_id:
                await services.outbound.dismiss(thread, one, on_reviews.let_go())
    except GitHubRefused as refused:  # perhaps a rule leaves that to people
        log.warning("an earlier review could not be dismissed", extra={"error": str(refused)})


KIND = ReviewTurn()
