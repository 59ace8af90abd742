"""What asks for a review without a command: a requested reviewer, a label, a pull request opened, ready, pushed to."""

from __future__ import annotations

from bot.commands.options import NO_OPTIONS
from bot.events.remarks import Labeled, PullOpened, Remark, ReviewWanted
from bot.handlers import permission, start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.triggers import config_of
from bot.handlers.verdicts import Noted, ignored, refused
from bot.models import Outcome, TurnState
from bot.repo_config import Triggers
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import replies


async def wanted(event: ReviewWanted, desk: Desk) -> Noted:
    """Nobody is told that a trigger which they may not know of did not obey them."""
    if event.is_push and (why_not := _not_after_push(await _reviews(event, desk))):
        return ignored(why_not)
    config, problem = await config_of(event.thread, desk)
    if config is None:
        return refused(problem)
    if why_not := await _not_wanted(event, config.triggers, desk):
        return ignored(why_not)
    return await _begin(event, event.head_sha, desk)


async def labeled(event: Labeled, desk: Desk) -> Noted | None:
    """None where the label is not the one that asks for reviews."""
    config, problem = await config_of(event.thread, desk)
    if config is None:
        return refused(problem)
    name = config.triggers.review_label
    if name is None or name.casefold() != event.label.casefold():
        return None
    pull = await desk.github.installation(event.thread.installation).pull(event.thread.repo, event.thread.number)
    return await _begin(event, pull.head_sha, desk)


async def opened(event: PullOpened, desk: Desk) -> Noted:
    """A draft is reviewed when it is made ready."""
    config, problem = await config_of(event.thread, desk)
    if config is None:
        return refused(problem)
    if not config.triggers.review_opened:
        return await desk.without_command(event, replies.opening_starts_nothing())
    pull = await desk.github.installation(event.thread.installation).pull(event.thread.repo, event.thread.number)
    if pull.draft:
        return ignored("it is a draft: it is reviewed once it is ready")
    return await _begin(event, pull.head_sha, desk)


async def _begin(event: Remark, head_sha: str, desk: Desk) -> Noted:
    if not (decision := await permission.judge(event, desk)).allowed:
        return refused(decision.reason)
    is_push = isinstance(event, ReviewWanted) and event.is_push
    if not is_push and any(one.state is not TurnState.DONE for one in await _reviews(event, desk)):
        return ignored("a review of it is under way already")
    return await start.begin(Wish("review", "", NO_OPTIONS, head_sha=head_sha), event, desk)


async def _reviews(event: Remark, desk: Desk) -> list[Turn]:
    """Of this pull request, in their order."""
    latest = await sessions.latest(desk.store, event.thread)
    turns = await sessions.turns_of(desk.store, latest.key.session) if latest else []
    return [one for one in turns if one.traits.judges and one.number == event.thread.number]


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
