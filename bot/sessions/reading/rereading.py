"""What a further review of a pull request is given beside the first one's: what changed since, and what was said."""

from __future__ import annotations

import asyncio

from bot.agent import diffs
from bot.agent.material import Diff
from bot.git.cache import Comparison
from bot.models import Outcome
from bot.sessions import starting_point
from bot.sessions.services import Services
from bot.store import findings, sessions
from bot.store.sessions import Turn
from bot.words import on_reviews


async def given(services: Services, turn: Turn, change: Comparison, whole: Diff) -> tuple[Diff, list[tuple[str, str]]]:
    """The diff to look at, and further data with its name."""
    extras = []
    if said := await findings.still_open(services.store, turn.repo_id, turn.number):
        extras.append(("your earlier findings, which are still open", on_reviews.listed(said)))
    last = await last_reviewed(services, turn)
    if last is None or last == change.head:
        return whole, extras
    since = await services.cache.difference(turn.repo_id, last, change.head, max_bytes=len(change.patch) + 1)
    if since is None:
        return whole, extras
    text = await asyncio.to_thread(_of_the_pull, since.patch, set(change.paths))
    if not text:  # nothing that belongs to the pull request itself
        return whole, extras
    extras.append(("the whole diff of the pull request, for the context", whole.text))
    return Diff(text, f"{last[:12]} as you reviewed it to {change.head[:12]}", since.cut, whole.unread), extras


async def own_findings(services: Services, turn: Turn) -> list[tuple[str, str]]:
    """For work and questions on a pull request that was reviewed: "fix your findings" means these."""
    session = await sessions.session(services.store, turn.key.session)
    number = turn.number if starting_point.is_on_pull(turn, session) else session.pull_number
    if not turn.traits.reads_findings or number is None:
        return []
    said = await findings.still_open(services.store, turn.repo_id, number)
    return (
        [("your own findings in reviews of the pull request, which are still open", on_reviews.listed(said))]
        if said
        else []
    )


async def last_reviewed(services: Services, turn: Turn) -> str | None:
    """The commit that the latest review of the pull request was about."""
    turns = await sessions.turns_of(services.store, turn.key.session)
    earlier = [one for one in turns if one.n < turn.n and one.traits.judges and one.number == turn.number]
    return next((one.base_sha for one in reversed(earlier) if one.outcome is Outcome.REVIEWED), None)


async def is_repetition(services: Services, turn: Turn, sha: str) -> bool:
    """Nobody asked for it in words, and this commit was reviewed already."""
    return turn.is_for_a_push and await last_reviewed(services, turn) == sha


def _of_the_pull(patch: bytes, paths: set[str]) -> str:
    """Without what came in by merging the base."""
    parts = diffs.parse(patch.decode("utf-8", "replace"))
    return "\n".join(part.text for part in parts if paths & set(part.names))
