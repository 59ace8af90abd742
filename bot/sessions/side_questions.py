"""Brings people's questions to an agent at work, and its answers to the thread, without a change to its work."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from bot.agent import prompt
from bot.errors import GitHubRefused
from bot.live import sections
from bot.models import Thread
from bot.outbound import neutralise
from bot.sessions.services import Services
from bot.store import conversation, spend
from bot.store.conversation import StoredMessage
from bot.store.sessions import Turn
from bot.store.spend import ModelCost
from bot.words import on_money
from sandbox.agents.events import SideAnswered
from sandbox.execution import ExecutionEnvironment

MOST_ANSWER = 24_000
SHORTENED = "*(shortened)*"


async def look(services: Services, turn: Turn, environment: ExecutionEnvironment, asked: set[str]) -> bool:
    """Ask the next question, one at a time, and post the answers that have come. False: the agent takes no more.
    `asked` remembers what this process has asked.

    A question without an answer waits for the end of the run, and becomes a turn then."""
    state = await services.board.folds.of(turn.key)
    for question in await conversation.questions(services.store, turn.key):
        name = _request_id(turn, question)
        if (answer := state.answers.get(name)) is None:
            if name in asked:
                return True
            asked.add(name)
            words = prompt.side_question(question.question, question.author, question.text, question.request.spot)
            return await environment.ask(turn.key.n, name, services.redactor.redact(words))
        if (await _cost(services, turn, question)).open:  # the gateway has not settled it yet
            return True
        await _put(services, turn, question, answer)
    return True


async def conclude(services: Services, turn: Turn) -> None:
    """Post the answers that came right before the end of the run."""
    state = await services.board.folds.of(turn.key)
    for question in await conversation.questions(services.store, turn.key):
        if answer := state.answers.get(_request_id(turn, question)):
            await _put(services, turn, question, answer)


async def _cost(services: Services, turn: Turn, question: StoredMessage) -> ModelCost:
    return await spend.of_question(services.store, turn.key, question.question)


def _request_id(turn: Turn, question: StoredMessage) -> str:
    return f"ask-{question.question}-{turn.attempt}"


async def _put(services: Services, turn: Turn, question: StoredMessage, answer: SideAnswered) -> None:
    """Post one answer (its marker finds it again); the comment comes before the row."""
    if not (answer.ok and answer.text.strip()):
        return
    marker = f"<!-- forgehand:answer={question.question} -->"
    cost = await _cost(services, turn, question)
    asked = f"> **{neutralise.line(question.author)}**: {sections.line(question.text, 200)}"
    said = sections.agents_words(answer.text[: 2 * MOST_ANSWER], MOST_ANSWER, SHORTENED)
    spent = f" · {on_money.spent(cost.usd, cost.unconfirmed_usd)}" if cost.counted_usd else ""
    foot = f"<sub>Answered beside turn {turn.key.n}, whose work goes on as before{spent}</sub>"
    await _post(services, question, "\n\n".join((marker, asked, said, foot)), marker)
    await conversation.answered(services.store, question, answer.text)
    services.board.touch(turn.key)


async def _post(services: Services, question: StoredMessage, body: str, marker: str) -> None:
    request = question.request
    with contextlib.suppress(GitHubRefused):  # a locked thread, or a deleted discussion: the page shows the answer
        if request.spot is not None:
            thread: Thread = replace(request.thread, is_pull=True)
            await services.outbound.reply(thread, request.spot.comment_id, body, marker)
        else:
            await services.outbound.comment(request.thread, body, marker)
