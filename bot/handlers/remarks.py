"""What somebody says or does on a thread: whether it asks for something, whether they may, and who carries it out."""

from __future__ import annotations

from functools import partial

from bot import commands
from bot.commands.options import NO_OPTIONS
from bot.errors import CommandError
from bot.events.remarks import IssueOpened, Labeled, PullOpened, Remark, ReviewWanted
from bot.handlers import answers, table, turns
from bot.handlers.desk import Desk, Handled, ignored, refused
from bot.handlers.turns import Wish
from bot.models import Outcome, TurnState
from bot.policy import Answer
from bot.portions import made_of
from bot.repo_config import Triggers
from bot.store import sessions, threads
from bot.store.sessions import Turn
from bot.words import replies

LOOKED_AT = 4_000
"""Characters of what somebody wrote who may not command us: enough to see whether they meant to."""
WORK = Wish(commands.FREE_TEXT, "", NO_OPTIONS)
"""The thread itself says what is to be done."""


async def handle(remark: Remark, desk: Desk) -> Handled:
    """Carry out the command of somebody who may give one. Of others only the beginning is parsed, and a text that
    does not name us costs no request to GitHub."""
    if isinstance(remark, Labeled | ReviewWanted):
        return await _without_words(remark, desk)
    ours = {"word": desk.settings.command, "app_slug": (await desk.github.identity()).slug}
    if not await made_of(remark.body, partial(commands.begins, **ours)):
        return await _without_words(remark, desk)
    decision = await desk.judge(remark)
    try:
        read = remark.body if decision.allowed else remark.body[:LOOKED_AT]
        command, error = await made_of(read, partial(commands.parse, forms=table.TABLE, **ours)), None
    except CommandError as problem:
        command, error = None, str(problem)
    if command is None and error is None:
        return await _without_words(remark, desk)
    if not decision.allowed:
        if decision.answer is Answer.IGNORED:
            return ignored(decision.reason)
        if decision.sentence and await threads.tell_refused(desk.store, remark.thread):
            await desk.reply(remark, decision.sentence)
        return refused(decision.reason)
    if error is not None:
        return await desk.refuse(remark, error)
    assert command is not None
    return await table.carry_out(command, remark, desk)


async def _without_words(remark: Remark, desk: Desk) -> Handled:
    """Start what the repository's config says. A trigger is silent towards people who may not use it."""
    match remark:
        case Labeled():
            return await _labeled(remark, desk)
        case IssueOpened():
            return await _issue_opened(remark, desk)
        case PullOpened():
            return await _pull_opened(remark, desk)
        case ReviewWanted():
            await answers.pushed(remark, desk)
            return await _review_wanted(remark, desk)
        case _:
            return await desk.without_command(remark)


async def _labeled(event: Labeled, desk: Desk) -> Handled:
    config, problem = await desk.config_of(event.thread)
    if config is None:
        return refused(problem)
    label, triggers = event.label.casefold(), config.triggers  # as GitHub compares labels
    if event.thread.is_pull and triggers.review_label is not None and triggers.review_label.casefold() == label:
        pull = await desk.github.installation(event.thread.installation).pull(event.thread.repo, event.thread.number)
        return await _begin_review(event, pull.head_sha, desk)
    if triggers.label is None or triggers.label.casefold() != label:
        return ignored("this label starts nothing here (`triggers.label` in `.github/forgehand.yml`)")
    if not (decision := await desk.judge(event)).allowed:
        return refused(decision.reason)
    latest = await sessions.latest(desk.store, event.thread)
    if latest is not None and latest.state is not TurnState.DONE:
        return ignored("the thread is being worked on already")
    return await turns.begin(WORK, event, desk)


async def _issue_opened(event: IssueOpened, desk: Desk) -> Handled:
    config, problem = await desk.config_of(event.thread)
    if config is None:
        return refused(problem)
    if not config.triggers.issue_opened:
        return await desk.without_command(event, replies.opening_starts_nothing())
    if not (decision := await desk.judge(event)).allowed:
        return refused(decision.reason)
    return await turns.begin(WORK, event, desk)


async def _pull_opened(event: PullOpened, desk: Desk) -> Handled:
    """A draft is reviewed when it is made ready."""
    config, problem = await desk.config_of(event.thread)
    if config is None:
        return refused(problem)
    if not config.triggers.review_opened:
        return await desk.without_command(event, replies.opening_starts_nothing())
    pull = await desk.github.installation(event.thread.installation).pull(event.thread.repo, event.thread.number)
    if pull.draft:
        return ignored("it is a draft: it is reviewed once it is ready")
    return await _begin_review(event, pull.head_sha, desk)


async def _review_wanted(event: ReviewWanted, desk: Desk) -> Handled:
    if event.is_push and (why_not := _not_after_push(await _reviews(event, desk))):
        return ignored(why_not)
    config, problem = await desk.config_of(event.thread)
    if config is None:
        return refused(problem)
    if why_not := await _not_wanted(event, config.triggers, desk):
        return ignored(why_not)
    return await _begin_review(event, event.head_sha, desk)


async def _begin_review(event: Remark, head_sha: str, desk: Desk) -> Handled:
    if not (decision := await desk.judge(event)).allowed:
        return refused(decision.reason)
    is_push = isinstance(event, ReviewWanted) and event.is_push
    if not is_push and any(one.state is not TurnState.DONE for one in await _reviews(event, desk)):
        return ignored("a review of it is under way already")
    return await turns.begin(Wish("review", "", NO_OPTIONS, head_sha=head_sha), event, desk)


async def _reviews(event: Remark, desk: Desk) -> list[Turn]:
    latest = await sessions.latest(desk.store, event.thread)
    found = await sessions.turns_of(desk.store, latest.key.session) if latest else []
    return [one for one in found if one.kind == "review" and one.number == event.thread.number]


def _not_after_push(reviews: list[Turn]) -> str | None:
    """However many commits are pushed, one review waits, and it reads what is there when its turn comes."""
    if not reviews:
        return "no review of this pull request was asked for"
    last = reviews[-1]
    if last.state is TurnState.QUEUED:
        return "the review that waits already will read these commits too"
    if last.outcome is Outcome.STOPPED and last.stop_requested:
        return "its last review was stopped"
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
        return "the review of somebody else was asked for (`triggers.review_team`, `triggers.review_user`)"
    return None
