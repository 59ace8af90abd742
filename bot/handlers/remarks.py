"""A text on a thread: is there a command in it, may its author give it, and who carries it out."""

from __future__ import annotations

from functools import partial
from typing import assert_never

from bot import commands
from bot.commands.kinds import (
    Approve,
    Ask,
    Command,
    Continue,
    Cost,
    Deny,
    FixCi,
    Help,
    Init,
    Plan,
    Resolve,
    Retry,
    Review,
    Run,
    Status,
    Stop,
    StopCi,
    Undo,
    Why,
)
from bot.errors import CommandError
from bot.events.remarks import IssueOpened, Labeled, PullOpened, Remark, ReviewWanted
from bot.handlers import (
    again,
    answers,
    ci,
    forks,
    init,
    permission,
    resolve,
    review_triggers,
    reviews,
    start,
    stop,
    triggers,
    undo,
    why,
    words,
)
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, ignored, refused
from bot.policy import Answer, Decision
from bot.portions import made_of
from bot.store import threads

LOOKED_AT = 4_000
"""Characters of what somebody wrote who may not command us: enough to see whether they meant to."""


async def handle(remark: Remark, desk: Desk) -> Noted:
    """Who may not command us is told so, but has nothing long read; who says nothing to us costs no question to
    GitHub."""
    if isinstance(remark, Labeled | ReviewWanted):
        return await _without_words(remark, desk)
    ours = {"word": desk.settings.command, "app_slug": (await desk.github.identity()).slug}
    if not await made_of(remark.body, partial(commands.begins, **ours)):
        return await _without_words(remark, desk)
    decision = await permission.judge(remark, desk)
    try:
        read = remark.body if decision.allowed else remark.body[:LOOKED_AT]
        command, error = await made_of(read, partial(commands.parse, **ours)), None
    except CommandError as problem:
        command, error = None, str(problem)
    if command is None and error is None:
        return await _without_words(remark, desk)
    if not decision.allowed:
        return await _turn_away(remark, decision, desk)
    if error is not None:
        return await desk.refuse(remark, error)
    assert command is not None
    return await _dispatch(command, remark, desk)


async def _without_words(remark: Remark, desk: Desk) -> Noted:
    """What starts something in repositories that say so."""
    match remark:
        case Labeled() if remark.thread.is_pull:
            return await review_triggers.labeled(remark, desk) or await triggers.labeled(remark, desk)
        case Labeled():
            return await triggers.labeled(remark, desk)
        case IssueOpened():
            return await triggers.opened(remark, desk)
        case PullOpened():
            return await review_triggers.opened(remark, desk)
        case ReviewWanted():
            await forks.pushed(remark, desk)
            return await review_triggers.wanted(remark, desk)
        case _:
            return await desk.without_command(remark)


async def _turn_away(remark: Remark, decision: Decision, desk: Desk) -> Noted:
    if decision.answer is Answer.IGNORED:
        return ignored(decision.reason)
    if decision.sentence and await threads.tell_refused(desk.store, remark.thread):
        await desk.reply(remark, decision.sentence)
    return refused(decision.reason)


async def _dispatch(command: Command, remark: Remark, desk: Desk) -> Noted:
    match command:
        case Run() | Ask() | Plan() | Retry() | Continue():
            return await _work(command, remark, desk)
        case Approve() | Deny():
            return await answers.handle(command, remark, desk)
        case Undo():
            return await undo.handle(remark, desk)
        case Stop():
            return await stop.handle(remark, desk)
        case Init():
            return await init.handle(remark, desk)
        case Status() | Help() | Cost() | Why():
            return await _answer(command, remark, desk)
        case Review() | FixCi() | StopCi():
            return await _on_pull(command, remark, desk)
        case Resolve():
            return await resolve.handle(command, remark, desk)
        case _:
            assert_never(command)


async def _work(command: Run | Ask | Plan | Retry | Continue, remark: Remark, desk: Desk) -> Noted:
    match command:
        case Run():
            return await answers.in_other_words(command, remark, desk) or await start.handle(command, remark, desk)
        case Ask() | Plan():
            return await start.handle(command, remark, desk)
        case Retry():
            return await again.retry(command, remark, desk)
        case Continue():
            return await again.go_on(command, remark, desk)
        case _:
            assert_never(command)


async def _on_pull(command: Review | FixCi | StopCi, remark: Remark, desk: Desk) -> Noted:
    match command:
        case Review():
            return await reviews.asked(command, remark, desk)
        case FixCi():
            return await ci.asked(command, remark, desk)
        case StopCi():
            return await ci.stopped(remark, desk)
        case _:
            assert_never(command)


async def _answer(command: Status | Help | Cost | Why, remark: Remark, desk: Desk) -> Noted:
    match command:
        case Status():
            return await words.status(remark, desk)
        case Help():
            return await words.help_(remark, desk)
        case Cost():
            return await words.cost(remark, desk)
        case Why():
            return await why.handle(remark, desk)
        case _:
            assert_never(command)
