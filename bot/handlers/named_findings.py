"""Finds the finding that a command names, or below whose comment it stands, and tells of what became of it."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace

from bot.commands import Command
from bot.errors import GitHubRefused
from bot.events.threads import BoxTicked, Remark
from bot.handlers.desk import Desk
from bot.live import open_findings
from bot.models import Thread, TurnKey
from bot.store import findings, sessions
from bot.store.findings import StoredFinding

_NAME = re.compile(r"\s*(?:and\s+)?`?([a-z0-9]{8}-\d{1,5}-\d{1,3})`?(?=[\s:,.]|\Z)[ \t]*[:,.]?", re.IGNORECASE)


@dataclass(frozen=True)
class OnFinding(Command):
    """A word about one finding; `prompt` is the reason."""

    finding: str | None = None
    """Its name; None: the one that the discussion is about."""


def named(text: str) -> tuple[str | None, str]:
    """Take the name of a finding from the start of a text; return also the rest."""
    match = _NAME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else (None, text)


async def meant(name: str | None, remark: Remark, desk: Desk) -> StoredFinding | None:
    """Find it in this repository: by its name, else by the discussion in which the words stand."""
    repo = remark.thread.repo.id
    if name is not None:
        return await findings.by_name(desk.store, repo, name)
    return await findings.by_comment(desk.store, repo, remark.spot.comment_id) if remark.spot else None


async def redraw(one: StoredFinding, desk: Desk) -> None:
    """Write the list of findings again in which it stands."""
    turn = await sessions.turn(desk.store, TurnKey(one.session_id, one.turn))
    if (newest := await open_findings.newest_review(desk.store, turn)) is not None:
        await desk.redraw(newest.key)


async def tell(one: StoredFinding, words: str, remark: Remark, desk: Desk) -> None:
    """Answer in the discussion of the finding, or where the command stands; the list shows a tick by itself."""
    if one.comment_id is not None:
        marker, thread = f"<!-- forgehand:reply={remark.source} -->", of_pull(one, remark)
        with contextlib.suppress(GitHubRefused):  # the discussion was deleted
            await desk.outbound.reply(thread, one.comment_id, f"{marker}\n{words}", marker)
    elif not isinstance(remark, BoxTicked):
        await desk.reply(remark, words)


def of_pull(one: StoredFinding, remark: Remark) -> Thread:
    return replace(remark.thread, number=one.number, is_pull=True)
