"""Posts what a reviewing agent has found: one review, each finding at its line or below, nothing said twice."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import msgspec

from bot import repo_config
from bot.agent import findings, prompt
from bot.agent.findings import ReviewVerdict
from bot.errors import GitHubRefused, NotFound
from bot.github import reviews
from bot.github.types import LineComment, Pull, ReviewDraft
from bot.kinds import review
from bot.kinds.parts import AgentReading, TurnPart
from bot.live.state import LiveState
from bot.models import Outcome, Step, Thread
from bot.outbound import TextKind, neutralise
from bot.sessions import dialogue, starting_point
from bot.sessions.kinds import Preparation, TurnKind
from bot.sessions.moves import End, Move, To
from bot.sessions.reading import briefing
from bot.sessions.reviews import earlier, placing
from bot.sessions.reviews.earlier import Placed, Sorted
from bot.sessions.services import Services
from bot.sessions.starting_point import Start
from bot.store import ci, posted_findings, sessions
from bot.store.sessions import Session, Turn
from bot.words import endings, on_reviews
from bot.words.on_reviews import ReviewAccount

log = logging.getLogger(__name__)

EVENTS = {
    ReviewVerdict.COMMENT: "COMMENT",
    ReviewVerdict.REQUEST_CHANGES: "REQUEST_CHANGES",
    ReviewVerdict.APPROVE: "APPROVE",
}


@dataclass(frozen=True)
class _Work:
    services: Services
    turn: Turn
    thread: Thread
    """The pull request."""
    pull: Pull
    found: Sorted
    account: ReviewAccount
    event: str


class ReviewTurn(TurnKind):
    traits = review.TRAITS
    schema = findings.SCHEMA

    async def pin(self, services: Services, turn: Turn) -> tuple[str, Start] | None:
        return await starting_point.pin_pull(services, turn)

    async def begin(self, services: Services, turn: Turn, preparation: Preparation) -> Preparation | To | End:
        sha = preparation.start.sha
        if await briefing.is_repetition(services, turn, sha):
            return End(Outcome.NO_CHANGE, endings.reviewed_already(sha))
        await ci.show_turn(services.store, turn.key, sha)
        return preparation

    def result(self, turn: Turn, state: LiveState) -> tuple[str, tuple[TurnPart, ...]]:
        """Where what it handed over is not in the form asked for, its words alone are its summary."""
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
        if pull.head_sha != turn.base_sha and await _is_superseded(services, turn):
            return End(Outcome.STOPPED, endings.review_superseded(pull.head_sha))
        work = await _prepared(services, turn, thread, pull)
        if pull.state != "open":
            unsaid = endings.closed_before_review(pull.number, pull.merged)
            return End(Outcome.STOPPED, f"{unsaid}\n\n{_summary(_all_below(work))}")
        if turn.is_for_a_push and not (work.found.on_lines or work.found.below or work.found.resolved):
            return End(Outcome.REVIEWED, endings.nothing_new(turn.base_sha))
        try:
            work, review_id = await _post(work)
        except GitHubRefused as refused:
            words = endings.review_not_taken(services.outbound.text(TextKind.COMMENT, refused.message))
            return End(Outcome.REFUSED, f"{words}\n\n{_summary(_all_below(work))}")
        await _remember(work, review_id)
        posted = msgspec.structs.replace(turn.part(review.HandedOver), posted=review_id)
        url = f"{pull.url}#pullrequestreview-{review_id}"
        return End(Outcome.REVIEWED, on_reviews.in_short(work.account, url), parts=(posted,))


async def _is_superseded(services: Services, turn: Turn) -> bool:
    """A later turn will read the newer state: two reviews of one push help nobody."""
    later = [one for one in await sessions.turns_of(services.store, turn.key.session) if one.n > turn.n]
    return any(one.traits.judges and one.number == turn.number and one.outcome is None for one in later)


async def _prepared(services: Services, turn: Turn, thread: Thread, pull: Pull) -> _Work:
    handed_over = turn.part(review.HandedOver).review
    assert handed_over is not None and turn.base_sha is not None
    read = findings.load(handed_over)
    found, unsaid = _with_room(await earlier.sort(services, turn, pull, read))
    config = repo_config.load(turn.config).review
    notes = turn.part(AgentReading).notes
    own = pull.author.id == (await services.github.identity()).bot_id
    retargeted = turn.base not in (None, pull.base_branch)
    allowed = {
        ReviewVerdict.COMMENT: True,
        ReviewVerdict.REQUEST_CHANGES: config.request_changes and not own,
        # What was not read whole is not approved, nor what it was not compared with.
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
    )
    return _Work(
        services,
        turn,
        thread,
        pull,
        found,
        account,
        EVENTS[read.verdict if allowed[read.verdict] else ReviewVerdict.COMMENT],
    )


def _with_room(found: Sorted) -> tuple[Sorted, int]:
    """What is not shown has not been said: a later review may say it."""
    most = on_reviews.room_for([one.finding for one in found.below], neutralise.inert)
    return replace(found, below=found.below[:most]), len(found.below) - most


def _all_below(work: _Work) -> _Work:
    """Nothing at lines: where there is no place for that."""
    all_of_them = sorted((*work.found.on_lines, *work.found.below), key=lambda one: one.place)
    return _placed(work, replace(work.found, on_lines=(), below=tuple(all_of_them)))


def _placed(work: _Work, placed: Sorted) -> _Work:
    found, unsaid = _with_room(placed)
    below = [one.finding for one in found.below]
    account = replace(work.account, on_lines=len(found.on_lines), below=below, unsaid=work.account.unsaid + unsaid)
    return replace(work, found=found, account=account)


def _summary(work: _Work) -> str:
    return on_reviews.summary(work.account, neutralise.inert)


async def _post(work: _Work) -> tuple[_Work, int]:
    """As it went out: one line that GitHub does not take has it refuse the whole, so then without those, or without
    any."""
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
    """Raises what no other lines would mend."""
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
    """With a suggestion only as long as it leaves as it was given, at all of its lines: one that was changed, or that
    takes the place of other lines, would apply as nonsense."""
    one, (first, last) = placed.finding, placed.shown or (placed.finding.first, placed.finding.line)
    body = on_reviews.on_line(one, placed.name, neutralise.inert, suggests=placed.is_whole)
    suggestion = on_reviews.suggestion(one)
    if suggestion is not None and suggestion not in services.outbound.text(TextKind.COMMENT, body):
        body = on_reviews.on_line(one, placed.name, neutralise.inert, suggests=False)
    if not placed.is_whole:
        body += f"\n\n{on_reviews.beyond_the_diff(one)}"
    return LineComment(one.path, last, first if first < last else None, body)


async def _remember(work: _Work, review_id: int) -> None:
    """Which comment is which finding, and that the mended ones are done with, at GitHub too."""
    services, thread = work.services, work.thread
    reads = services.github.installation(thread.installation)
    comments = await reviews.of_review(reads, thread.repo, thread.number, review_id)
    ids = {name: one.id for one in comments if (name := reviews.finding_of(one.body)) is not None}
    new = [one.said(work.turn, ids.get(one.name)) for one in (*work.found.on_lines, *work.found.below)]
    await _let_go(work, review_id)
    await dialogue.resolve_discussions(
        services, thread, [one.comment_id for one in work.found.resolved if one.comment_id is not None]
    )
    await posted_findings.put_findings(services.store, new, [one.id for one in work.found.resolved])


async def _let_go(work: _Work, review_id: int) -> None:
    """An earlier review that asks for changes holds the merge until it is dismissed: a comment does not end it."""
    if work.event == "REQUEST_CHANGES":
        return
    services, thread = work.services, work.thread
    reads, me = services.github.installation(thread.installation), (await services.github.identity()).bot_id
    try:
        for one in await reviews.holding(reads, thread.repo, thread.number, me):
            if one != review_id:
                await services.outbound.dismiss(thread, one, on_reviews.let_go())
    except GitHubRefused as refused:  # where a rule leaves that to people
        log.warning("an earlier review could not be dismissed", extra={"error": str(refused)})


KIND = ReviewTurn()
