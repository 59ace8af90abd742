"""The open findings of a pull request in the live comment of its newest review, with boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.kinds.review import HandedOver
from bot.live import questions, sections
from bot.live.questions import TickBox
from bot.models import Outcome, TurnState
from bot.store import findings, sessions
from bot.store.base import Store
from bot.store.findings import StoredFinding
from bot.store.sessions import Turn
from bot.text.markup import shown
from bot.words import on_reviews

MOST_BOXED = 30
MOST_WORDS = 160


@dataclass(frozen=True)
class Reviewed:
    """The findings of a pull request, the worst first."""

    open: Sequence[StoredFinding]
    dismissed: Sequence[StoredFinding]
    pull_url: str


async def of_turn(store: Store, turn: Turn) -> Reviewed | None:
    """Return them if the turn is the newest review of its pull request; older comments have no boxes."""
    if not turn.traits.judges or turn.outcome is not Outcome.REVIEWED or turn.state is not TurnState.DONE:
        return None
    newest = await newest_review(store, turn)
    if newest is None or newest.key != turn.key:
        return None
    found = await findings.of_pull(store, turn.repo_id, turn.number)
    worst_first = sorted(found, key=lambda one: one.severity.rank)
    return Reviewed(
        open=[one for one in worst_first if one.state == findings.OPEN],
        dismissed=[one for one in worst_first if one.state == findings.DISMISSED],
        pull_url=turn.part(HandedOver).pull_url,
    )


async def newest_review(store: Store, turn: Turn) -> Turn | None:
    """Return the newest review of the turn's pull request that has ended, in the turn's session."""
    ended = reviews_of(await sessions.turns_of(store, turn.key.session), turn.number)
    return ended[-1] if ended else None


def reviews_of(turns: Sequence[Turn], number: int) -> list[Turn]:
    return [one for one in turns if one.traits.judges and one.number == number and one.outcome is Outcome.REVIEWED]


def boxes(reviewed: Reviewed | None) -> list[TickBox]:
    if reviewed is None:
        return []
    offered = _fix_all(reviewed)
    for one in reviewed.open[:MOST_BOXED]:
        offered += _of_one(one)
    return offered + [_take_back(one) for one in reviewed.dismissed[:MOST_BOXED]]


def section(reviewed: Reviewed | None, command: str) -> str:
    if reviewed is None or not (reviewed.open or reviewed.dismissed):
        return ""
    parts = []
    if reviewed.open:
        parts.append(f"**Open findings: {on_reviews.tally(one.severity for one in reviewed.open)}**")
        parts.append(questions.rendered(_fix_all(reviewed), command))
    for one in reviewed.open[:MOST_BOXED]:
        parts += [_row(one, reviewed.pull_url), questions.rendered(_of_one(one), command)]
    if (more := len(reviewed.open) - MOST_BOXED) > 0:
        parts.append(f"… and {more} more: `{command} findings` lists them.")
    if reviewed.dismissed:
        parts.append("**No bugs, people said:**")
    for one in reviewed.dismissed[:MOST_BOXED]:
        parts += [_row(one, reviewed.pull_url), questions.rendered([_take_back(one)], command)]
    return "\n\n".join(filter(None, parts))


def _row(one: StoredFinding, pull_url: str) -> str:
    place = f"{shown(one.path, 120)}, line {one.line}"
    if pull_url and one.comment_id is not None:
        place += f" ([comment]({pull_url}#discussion_r{one.comment_id}))"
    return f"**{one.severity.capitalize()}** · {place}: {sections.line(one.body, MOST_WORDS)}"


def _fix_all(reviewed: Reviewed) -> list[TickBox]:
    many = len(reviewed.open)
    return [TickBox(f"Fix all {many}", "fix findings")] if many > 1 else []


def _of_one(one: StoredFinding) -> list[TickBox]:
    return [TickBox("Fix this", f"fix findings {one.id}"), TickBox("Not a bug", f"not a bug {one.id}")]


def _take_back(one: StoredFinding) -> TickBox:
    return TickBox("It is a bug", f"is a bug {one.id}")
