"""Keeps findings at lines that GitHub itself shows: it may show less of a diff than we read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bot.agent import diffs
from bot.github import reviews
from bot.github.types import Pull
from bot.models import Thread
from bot.sessions.reviews.earlier import Placed, Sorted
from bot.sessions.services import Services
from bot.store.sessions import Turn


async def as_shown(services: Services, turn: Turn, thread: Thread, pull: Pull, found: Sorted) -> Sorted:
    """Move findings without a shown line below; GitHub lists only the head, so after a push that means all."""
    shown: dict[str, str] = {}
    if pull.head_sha == turn.base_sha:
        shown = await reviews.patches(services.github.installation(thread.installation), thread.repo, thread.number)
    fitting = tuple(one for one in found.on_lines if _fits(one, shown))
    rest = (one for one in found.on_lines if one not in fitting)
    return replace(found, on_lines=fitting, below=tuple(sorted((*found.below, *rest), key=lambda one: one.place)))


def _fits(one: Placed, shown: Mapping[str, str]) -> bool:
    path, place = one.finding.path, one.shown
    return place is not None and diffs.of_file(path, shown.get(path, "")).shows(*place)
