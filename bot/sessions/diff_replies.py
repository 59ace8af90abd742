"""Answers the discussions of a diff that a turn was asked about, and resolves what is settled."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from bot.agent import material
from bot.agent.material import DiscussionAnswer
from bot.errors import GitHubRefused
from bot.github import reviews
from bot.kinds.parts import OnFork, Places
from bot.models import Outcome, Spot, Thread
from bot.outbound import neutralise
from bot.sessions.services import Services
from bot.store import findings, messages, sessions
from bot.store.sessions import Session, Turn
from bot.words import on_forks, outcomes

log = logging.getLogger(__name__)

MOST = 1_500
SAID_EVERYWHERE = (Outcome.PUSHED, Outcome.PULL_REQUEST, Outcome.ANSWERED)
"""Other ends are said once, in the live comment, and not at each of a review's lines."""


async def in_diff(services: Services, turn: Turn) -> None:
    """Once for each, found again by its marker; a discussion that was deleted or locked is left alone."""
    spots = await asked_at(services, turn)
    thread = _pull(turn, await sessions.session(services.store, turn.key.session))
    said = material.answers(turn.agent_result or "")
    settled = []
    for number, spot in enumerate(spots, 1):
        answer = said.get(number)
        if len(spots) == 1 or answer is not None or _is_said_everywhere(turn):
            await _reply(services, turn, thread, spot, _words(turn, answer, alone=len(spots) == 1))
        if turn.outcome is Outcome.PUSHED and material.is_settled(
            spot, answer, [str(file["path"]) for file in turn.files_changed or ()]
        ):
            settled.append(spot.comment_id)
    await resolve(services, thread, settled)
    await findings.answered(services.store, thread.repo.id, settled)


async def number_of(services: Services, turn: Turn, spot: Spot) -> int:
    known = material.distinct([*await asked_at(services, turn), spot])
    return next((at for at, one in enumerate(known, 1) if one.comment_id == spot.comment_id), 0)


async def resolve(services: Services, thread: Thread, comment_ids: Collection[int]) -> None:
    """The discussions that began with these comments. One that cannot be resolved stays: that a person can do."""
    if not comment_ids:
        return
    reads = services.github.installation(thread.installation)
    try:
        for one in await reviews.discussions(reads, thread.repo, thread.number):
            if one.comment_id in comment_ids and not one.resolved:
                await services.outbound.resolve(thread, one.id)
    except GitHubRefused as refused:
        log.warning("discussions could not be resolved", extra={"error": str(refused)})


async def asked_at(services: Services, turn: Turn) -> list[Spot]:
    """Lists those it began with, then those at which words were written for the agent while it worked."""
    return material.distinct([*turn.part(Places).asked, *await messages.spots(services.store, turn.key)])


def _pull(turn: Turn, session: Session) -> Thread:
    """Finds whose diff it is: a turn asked for on an issue may have heard words on its pull request."""
    on_issue = turn.number == session.number and not session.is_pull
    number = session.pull_number if on_issue and session.pull_number is not None else turn.number
    return replace(session.thread, number=number, is_pull=True)


def _words(turn: Turn, answer: DiscussionAnswer | None, *, alone: bool) -> str:
    if answer is not None and answer.words:
        return neutralise.inert(answer.words[:MOST])
    if not alone:
        return ""
    said = neutralise.inert((turn.agent_result or "")[:MOST])
    if _is_said_everywhere(turn):
        return "\n\n".join(part for part in (turn.detail, said) if part)
    return turn.detail or said


def _is_said_everywhere(turn: Turn) -> bool:
    return turn.outcome in SAID_EVERYWHERE or _on_fork(turn) is not None


def _on_fork(turn: Turn) -> str | None:
    """Heads the end of work on a fork, which is no review where it says so."""
    if turn.part(OnFork).fork is None or not turn.traits.changes or turn.outcome is None:
        return None
    return on_forks.headline(turn.outcome)


async def _reply(services: Services, turn: Turn, thread: Thread, spot: Spot, words: str) -> None:
    marker = f"<!-- forgehand:done={turn.key.session}-{turn.key.n}-{spot.comment_id} -->"
    ended = outcomes.ended_in_diff(turn.outcome or Outcome.FAILED, turn.commit_sha, _on_fork(turn))
    body = f"{marker}\n{ended}\n\n{words}".rstrip()
    try:
        await services.outbound.reply(thread, spot.comment_id, body, marker)
    except GitHubRefused:
        return
