"""`review`: a turn that reads a pull request and posts what it found."""

from __future__ import annotations

from dataclasses import replace

from bot.commands import Command
from bot.events.threads import Remark, text_digest
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.handlers.turns import Wish
from bot.store import posts, sessions
from bot.store.deliveries import DeliveryState
from bot.words import endings, on_reviews, replies


async def handle(command: Command, remark: Remark, desk: Desk) -> Handled:
    number = await desk.pull_number(remark)
    if number is None:
        return await desk.refuse(remark, replies.needs_a_pull(command.word, desk.settings.command))
    thread = replace(remark.thread, number=number, is_pull=True)
    pull = await desk.github.installation(thread.installation).pull(thread.repo, number)
    if pull.state != "open":
        return await desk.refuse(remark, endings.pull_closed(pull.number))
    wish = Wish("review", command.prompt, command.options, head_sha=pull.head_sha)
    if number == remark.thread.number:
        return await turns.begin(wish, remark, desk)
    # What the agent reads is the pull request's own text.
    there = replace(remark, thread=thread, thread_sha256=text_digest(pull.title, pull.body))
    handled = await turns.begin(replace(wish, told=True), there, desk)
    if handled.state is DeliveryState.ACTED:
        await desk.reply(remark, on_reviews.is_at(number, await _address(there, desk)))
    return handled


async def _address(remark: Remark, desk: Desk) -> str:
    key = await sessions.by_source(desk.store, remark.source)
    comment = await posts.get(desk.store, key) if key else None
    return desk.outbound.comment_address(remark.thread, comment.comment_id) if comment and comment.comment_id else ""


FEATURE = Feature(
    "review",
    "review …",
    "reviews the pull request: line comments with suggestions, a summary and a verdict; also works on forks",
    text=True,
    options=True,
    handle=handle,
)
