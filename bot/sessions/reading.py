"""Gathers what the agent may read of a thread: whose words are trusted is asked of GitHub, not taken from payloads."""

from __future__ import annotations

import secrets
from datetime import datetime

from bot import events
from bot.errors import NotFound
from bot.github.client import Installation
from bot.github.types import Comment, Issue
from bot.models import Person, Repo
from bot.prompt import Material, Prompt, Said
from bot.prompt import compose as compose_prompt
from bot.repo_config import RepoConfig
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn

MOST_COMMENTS = 200
MOST_AUTHORS = 30
"""Beyond these, nobody is asked about any more: their words are data."""


async def compose(services: Services, turn: Turn, config: RepoConfig) -> Prompt:
    session = await sessions.session(services.store, turn.key.session)
    reads = services.github.installation(session.installation_id)
    repo = session.thread.repo
    issue = await reads.issue(repo, turn.number)
    comments = await reads.comments(repo, turn.number, MOST_COMMENTS)
    trust = _Trust(reads, repo)
    me = (await services.github.identity()).bot_id
    asked_at = turn.asked_at or turn.created_at
    remarks = [
        await _said(asked_at, comment, trust)
        for comment in comments
        if comment.author.id != me and _precedes(comment, turn, asked_at)
    ]
    opening = Said(
        author=issue.author.login,
        trusted=await trust.of(issue),
        body=issue.body,
        at=issue.created_at,
        changed_since=turn.thread_sha256 not in (None, events.standing(issue.title, issue.body)),
    )
    material = Material(
        kind=turn.kind,
        repo=repo.full_name,
        number=turn.number,
        is_pull=issue.is_pull,
        requester=turn.requester,
        request=turn.prompt,
        title=issue.title,
        opening=opening,
        remarks=remarks,
        extras=_extras(turn),
        public=not repo.private,
        read_outsiders=config.read_outsiders,
    )
    return compose_prompt(material, delimiter=secrets.token_hex(8))


def _extras(turn: Turn) -> list[tuple[str, str]]:
    """The place in the diff where it was asked: the words there mean these lines."""
    if turn.spot is None:
        return []
    spot = turn.spot
    lines = f"lines {spot.start_line} to {spot.line}" if spot.start_line else f"line {spot.line}"
    return [(f"the lines of the diff that the request is about, {lines} of {spot.path}", spot.hunk)]


def _precedes(comment: Comment, turn: Turn, asked_at: float) -> bool:
    """Written before the command: what comes after it is said to the agent while it works, or is the next turn.

    GitHub tells whole seconds only; within one, the numbers of comments tell the order."""
    if turn.source_comment is not None and turn.spot is None and comment.id >= turn.source_comment:
        return False
    return _epoch(comment.created_at) <= asked_at


async def _said(asked_at: float, comment: Comment, trust: _Trust) -> Said:
    edited = comment.updated_at != comment.created_at
    return Said(
        author=comment.author.login,
        trusted=await trust.of(comment),
        body=comment.body,
        at=comment.created_at,
        changed_since=edited and _epoch(comment.updated_at) >= asked_at,  # GitHub tells whole seconds
    )


def _epoch(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


class _Trust:
    """Who may write here, asked once for each author."""

    def __init__(self, reads: Installation, repo: Repo) -> None:
        self._reads = reads
        self._repo = repo
        self._known: dict[int, bool] = {}

    async def of(self, text: Issue | Comment) -> bool:
        """Of its author's own hand: an App that writes in somebody's name may pass on anybody's words."""
        person = text.author
        if not person.is_human or text.via_app:
            return False
        if person.id not in self._known:
            self._known[person.id] = len(self._known) < MOST_AUTHORS and await self._ask(person)
        return self._known[person.id]

    async def _ask(self, person: Person) -> bool:
        try:
            answered_id, permission = await self._reads.permission(self._repo, person.login)
        except NotFound:
            return False
        return answered_id == person.id and permission.may_write
