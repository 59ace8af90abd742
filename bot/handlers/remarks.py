"""Remarks on threads: whether one asks for something, whether its author may, and which handler carries it out."""

from __future__ import annotations

from functools import partial

from bot import commands
from bot.authorisation import AccessAnswer
from bot.commands import Command
from bot.commands.options import NO_OPTIONS, Options
from bot.errors import CommandError
from bot.events.threads import IssueOpened, Labeled, PullOpened, Remark, ReviewWanted
from bot.github.types import Pull
from bot.handlers import answers, table, turns
from bot.handlers.desk import LOOKED_AT, Desk, Handled, acted, ignored, refused
from bot.handlers.turns import Wish
from bot.kinds.shape import WorkEstimate
from bot.loops import made_of
from bot.models import Outcome, TurnState
from bot.repo_config import Triggers
from bot.sessions.money.budget import Prices, UnknownPrice, canonical
from bot.store import repos, sessions
from bot.store.sessions import Turn
from bot.words import endings, on_models, replies

WORK = Wish(commands.FREE_TEXT, "", NO_OPTIONS)
"""Work for which the thread itself says what to do."""


async def handle(remark: Remark, desk: Desk) -> Handled:
    """Carry out the command, if its author may give one; of other people's texts, parse only the beginning.

    Without a command, the repository's triggers decide."""
    if isinstance(remark, Labeled | ReviewWanted):
        return await _by_trigger(remark, desk)
    ours = {"word": desk.settings.command, "app_slug": (await desk.github.identity()).slug}
    if not await made_of(remark.body, partial(commands.begins, **ours)):
        return await _by_trigger(remark, desk)
    decision = await desk.judge(remark)
    try:
        read = remark.body if decision.allowed else remark.body[:LOOKED_AT]
        command, error = await made_of(read, partial(commands.parse, forms=table.TABLE, **ours)), None
    except CommandError as problem:
        command, error = None, str(problem)
    if command is None and error is None:
        return await _by_trigger(remark, desk)
    if not decision.allowed:
        if decision.answer is AccessAnswer.IGNORED:
            return ignored(decision.reason)
        await _turn_away(remark, decision.sentence, desk)
        return refused(decision.reason)
    if error is not None:
        return await desk.refuse(remark, error)
    assert command is not None
    return await carry_out(command, remark, desk)


async def _turn_away(remark: Remark, sentence: str | None, desk: Desk) -> None:
    """Say why once on a thread, and show from then on only that the comment was seen."""
    if not sentence:
        return
    if await repos.has_told_refusal(desk.store, remark.thread):
        await desk.react(remark, "confused")
        return
    await desk.reply(remark, sentence)
    await repos.note_refusal(desk.store, remark.thread)


async def carry_out(command: Command, remark: Remark, desk: Desk) -> Handled:
    """Carry out the command of a person who may give it."""
    if command.word == commands.THANKS:
        await desk.react(remark, "heart")
        return acted(reason="it thanks us and asks for nothing")
    if (unusable := await _unusable(command.options, remark, desk)) is not None:
        return await desk.refuse(remark, f"Nothing was started. {unusable}")
    return await table.carry_out(command, remark, desk)


async def _unusable(options: Options, remark: Remark, desk: Desk) -> str | None:
    """Say which option names something that does not exist, before anything is queued or paid for."""
    named = [model for model in (options.model, options.fallback) if model is not None]
    try:
        for model in named:
            Prices.at(desk.settings.model).of(model)
    except UnknownPrice as unknown:
        return str(unknown)
    if options.model is not None and len(set(map(canonical, named))) < len(named):
        return on_models.same_twice(options.model)
    if options.base is not None:
        reads = desk.github.installation(remark.thread.installation)
        if await reads.branch_sha(remark.thread.repo, options.base) is None:
            return endings.branch_missing(options.base)
    return None


async def _by_trigger(remark: Remark, desk: Desk) -> Handled:
    """Start the work that the repository's config attaches to the act; people who may not start it get no answer."""
    if not isinstance(remark, Labeled | IssueOpened | PullOpened | ReviewWanted):
        return await desk.without_command(remark)
    if isinstance(remark, ReviewWanted):
        await answers.pushed(remark, desk)
        if remark.is_push and (why_not := await _not_after_push(remark, await _reviews(remark, desk), desk)):
            return ignored(why_not)
    config, problem = await desk.config_of(remark.thread)
    if config is None:
        return refused(problem)
    wish = await _wish(remark, config.triggers, desk)
    if isinstance(wish, Handled):
        return wish
    if not (decision := await desk.judge(remark)).allowed:
        return refused(decision.reason)
    if (why_not := await _under_way(remark, wish, desk)) is not None:
        return ignored(why_not)
    return await turns.begin(wish, remark, desk)


async def _wish(
    remark: Labeled | IssueOpened | PullOpened | ReviewWanted, triggers: Triggers, desk: Desk
) -> Wish | Handled:
    match remark:
        case Labeled():
            label, review = remark.label.casefold(), triggers.review_label  # as GitHub compares labels
            if remark.thread.is_pull and review is not None and review.casefold() == label:
                return _review((await _pull(remark, desk)).head_sha)
            if triggers.label is None or triggers.label.casefold() != label:
                return ignored("this label starts nothing here (`triggers.label` in `.github/forgehand.yml`)")
            return WORK
        case IssueOpened() if triggers.issue_opened:
            return WORK
        case PullOpened() if triggers.review_opened:
            pull = await _pull(remark, desk)
            return (
                ignored("it is a draft: it is reviewed once it is ready")
                if pull.draft
                else _review(pull.head_sha, unasked=True)
            )
        case ReviewWanted():
            why_not = await _not_wanted(remark, triggers, desk)
            if why_not:
                return ignored(why_not)
            return _review(remark.head_sha, unasked=remark.why != "review_requested")
    return await desk.without_command(remark, replies.opening_starts_nothing())


def _review(head_sha: str, *, unasked: bool = False) -> Wish:
    return Wish("review", "", NO_OPTIONS, head_sha=head_sha, unasked=unasked)


async def _pull(remark: Remark, desk: Desk) -> Pull:
    return await desk.github.installation(remark.thread.installation).pull(remark.thread.repo, remark.thread.number)


async def _under_way(remark: Remark, wish: Wish, desk: Desk) -> str | None:
    """Say what is under way already. A push gets a further review and an issue is new, so both may always start."""
    if isinstance(remark, IssueOpened) or (isinstance(remark, ReviewWanted) and remark.is_push):
        return None
    if wish is not WORK:
        waits = any(one.state is not TurnState.DONE for one in await _reviews(remark, desk))
        return "a review of it is already under way" if waits else None
    latest = await sessions.latest(desk.store, remark.thread)
    waits = latest is not None and latest.state is not TurnState.DONE
    return "work on this thread is already under way" if waits else None


async def _reviews(event: Remark, desk: Desk) -> list[Turn]:
    latest = await sessions.latest(desk.store, event.thread)
    found = await sessions.turns_of(desk.store, latest.key.session) if latest else []
    return [one for one in found if one.traits.judges and one.number == event.thread.number]


async def _not_after_push(event: ReviewWanted, reviews: list[Turn], desk: Desk) -> str | None:
    """Say why a push starts no review; one waiting review is enough, because it reads the commits of its time.

    Webhooks of many pushes arrive late and in any order: what counts is where the branch is now."""
    if not reviews:
        return "nobody asked for a review of this pull request"
    last = reviews[-1]
    if last.state is TurnState.QUEUED or (last.state is TurnState.RUNNING and last.base_sha is None):
        return "the review that is already waiting will read these commits too"
    if last.part(WorkEstimate).asks:
        return "people were asked whether its last review may cost so much"
    if last.outcome is Outcome.STOPPED and last.stop_requested:
        return "its last review was stopped"
    reads = last.state is TurnState.RUNNING or last.outcome is Outcome.REVIEWED
    if reads and (await _pull(event, desk)).head_sha == last.base_sha:
        return "its last review reads the newest commit already"
    return None


async def _not_wanted(event: ReviewWanted, triggers: Triggers, desk: Desk) -> str | None:
    if event.is_push:
        return None if triggers.review_pushed else "pushes start no review here (`triggers.review_pushed`)"
    if event.why == "ready_for_review":
        return None if triggers.review_opened else "a pull request that becomes ready starts nothing here"
    if event.reviewer is not None and event.reviewer.id == (await desk.github.identity()).bot_id:
        return None  # GitHub does not offer Apps as reviewers yet
    asked = event.reviewer.login if event.reviewer else event.team
    name = triggers.review_user if event.reviewer else triggers.review_team
    if name is None or asked is None or name.rpartition("/")[2].casefold() != asked.casefold():
        return "somebody else was asked for the review (`triggers.review_team`, `triggers.review_user`)"
    return None
