"""Knows whose words are instruction: asked of GitHub, once for each author, and never taken from payloads."""

from __future__ import annotations

from bot.errors import GitHubRefused, NotFound
from bot.github.client import InstallationClient
from bot.github.types import Comment, Issue
from bot.models import Person, Repo

MOST_AUTHORS = 30
"""Beyond these, nobody is asked about any more: their words are data."""


async def may_write(reads: InstallationClient, repo: Repo, login: str, user_id: int) -> bool:
    """Now, by GitHub's word; a person, a repository or an installation that is gone: no, as far as we know."""
    try:
        answered_id, permission = await reads.permission(repo, login)
    except GitHubRefused:
        return False
    return answered_id == user_id and permission.may_write


class Trust:
    """Who may write in one repository."""

    def __init__(self, reads: InstallationClient, repo: Repo) -> None:
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
