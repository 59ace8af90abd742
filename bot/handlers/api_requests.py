"""Requests of the API, handled as if the person who made the token had written a comment on the thread."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import replace

from bot.commands import FREE_TEXT, Command
from bot.commands.options import NO_OPTIONS, Options
from bot.errors import NotFound
from bot.events import api, threads
from bot.events.api import ApiAsked, ApiRemark
from bot.handlers import remarks, turns
from bot.handlers.answers import Word
from bot.handlers.desk import Desk, Handled, refused
from bot.handlers.turns import Wish
from bot.models import DeliveryId, Origin, Person, Repo, Thread
from bot.store import api_tokens
from bot.store.api_tokens import ApiToken
from bot.store.deliveries import DeliveryState
from bot.words import on_api, replies

LEAST_USD = 0.01

_asking: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
"""One request of a token at a time, so that two do not spend the same rest of its budget. One process handles all."""


async def handle(asked: ApiAsked, desk: Desk) -> Handled:
    token = await api_tokens.get(desk.store, asked.token)
    if token is None or not token.is_live(desk.clock()):
        return refused(on_api.ended(token.name if token else asked.token))
    async with _asking.setdefault(token.id, asyncio.Lock()):
        noted = await _handle(asked, token, desk)
    if noted.state is DeliveryState.ACTED:
        return noted
    return replace(noted, reason=replies.of_token(token.name, noted.reason or ""))


async def _handle(asked: ApiAsked, token: ApiToken, desk: Desk) -> Handled:
    remark = await _remark(asked, token, desk)
    if isinstance(remark, str):
        return refused(remark)
    source = remark.source
    await api_tokens.used(desk.store, token, source, asked.action, f"{asked.repository}#{asked.number}")
    if not (decision := await desk.judge(remark)).allowed:
        return refused(decision.reason)
    left = await api_tokens.left_usd(desk.store, token, besides=source)
    remark = replace(remark, most_usd=max(left, LEAST_USD))
    if left < LEAST_USD and asked.action in (api.START, api.SAY):
        return await _without_money(asked, token, remark, desk)
    return await remarks.carry_out(_command(asked), remark, desk)


async def _without_money(asked: ApiAsked, token: ApiToken, remark: ApiRemark, desk: Desk) -> Handled:
    """Pass words on to an agent at work, whose turn has its money; nothing else may begin."""
    noted = None
    if asked.action == api.SAY:
        wish, beside = Wish(asked.kind, asked.words, NO_OPTIONS), asked.kind != FREE_TEXT
        noted = await turns.steer(wish, remark, desk, beside=beside)
    return noted or refused(on_api.spent(token.budget_usd))


def _command(asked: ApiAsked) -> Command:
    match asked.action:
        case api.START:
            options = Options(model=asked.model, base=asked.base, budget_usd=asked.budget_usd, queue=True)
            return Command(asked.kind, asked.words, options)
        case api.SAY:
            return Command(asked.kind, asked.words, NO_OPTIONS)
        case api.ANSWER:
            word = "approve" if asked.says_yes else "deny"
            return Word(word, asked.words, approval=asked.approval, scope=asked.scope)
    return Command("stop")


async def _remark(asked: ApiAsked, token: ApiToken, desk: Desk) -> ApiRemark | str:
    """Ask GitHub for the thread as it is now; or say why there is none."""
    reads = desk.github.installation(asked.installation)
    try:
        view = await reads.repo(asked.repository)
        if view.id != asked.repo_id:
            return on_api.no_repository(asked.repository)
        repo = Repo(view.id, view.owner, view.name, view.private, view.default_branch)
        issue = await reads.issue(repo, asked.number)
    except NotFound:
        return on_api.no_thread(asked.repository, asked.number)
    person = Person(token.made_by_id, token.made_by)
    return ApiRemark(
        origin=Origin(DeliveryId(asked.delivery), api.EVENT, asked.action, person),
        thread=Thread(repo, asked.installation, asked.number, issue.is_pull),
        author=person,
        body=asked.words,
        created_at=asked.at,
        comment_id=None,
        via_app=None,
        thread_sha256=threads.text_digest(issue.title, issue.body),
        closed_to_us="archived" if view.archived else "locked" if issue.locked else None,
        guid=asked.delivery,
        token=token.name,
    )
