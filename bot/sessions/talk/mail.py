"""Words of people for the agent at work: given to it in their order, or left to the next turn when it is too late."""

from __future__ import annotations

import contextlib

from bot.agent import prompt
from bot.errors import GitHubRefused
from bot.sessions.pulls import answering
from bot.sessions.reading import enclosures, trust
from bot.sessions.services import Services
from bot.store import messages, sessions
from bot.store.messages import Message
from bot.store.sessions import Turn
from sandbox.execution import ExecutionEnvironment

LOOK_SECONDS = 2.0


async def deliver(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Beside the run, until the agent takes nothing more."""
    while True:
        for message in await messages.waiting(services.store, turn.key):
            if not await _is_allowed(services, turn, message):
                await messages.refuse(services.store, message)
                services.board.touch(turn.key)
            elif not await _give(services, turn, message, environment):
                return
        await services.signals.wait(turn.key, LOOK_SECONDS)


async def _is_allowed(services: Services, turn: Turn, message: Message) -> bool:
    """Asked again now: its author may have lost access since it was said."""
    thread = (await sessions.session(services.store, turn.key.session)).thread
    reads = services.github.installation(thread.installation)
    return await trust.may_write(reads, thread.repo, message.author, message.request.requester_id)


async def _give(services: Services, turn: Turn, message: Message, environment: ExecutionEnvironment) -> bool:
    """The reaction comes before the row: repeated after a crash, each of them is done once."""
    spot = message.request.spot
    number = await answering.number_of(services, turn, spot) if spot else 0
    words = prompt.interjection(message.author, message.text, spot, number)
    words = services.redactor.redact(await enclosures.added(services, turn, message, environment, words))
    if not await environment.steer(turn.key.n, f"said-{message.source}", words):
        return False
    new = message.request
    if new.source_comment is not None:
        on_diff = spot is not None
        with contextlib.suppress(GitHubRefused):  # gone or locked: the agent has it all the same
            await services.outbound.react(new.thread, new.source_comment, "rocket", on_review_comment=on_diff)
    await messages.delivered(services.store, message)
    services.board.touch(turn.key)
    return True


async def pass_on(services: Services, turn: Turn) -> None:
    """What the agent never had is the next turn, unless somebody stopped what it was meant for."""
    for message in await messages.waiting(services.store, turn.key):
        if turn.stop_requested:
            await messages.drop(services.store, message)
        elif not await _is_allowed(services, turn, message):
            await messages.refuse(services.store, message)
        elif key := await messages.move(services.store, message):
            services.board.touch(key)
