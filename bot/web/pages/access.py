"""Asks GitHub who may see or change what, by the person's number, and remembers each answer for a minute."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable

from bot.errors import GitHubRefused, NotAllowed, NotFound, TransientError
from bot.github.client import GitHubApp
from bot.models import InstallationId, Permission, Repo, RepoId
from bot.web.pages.visitors import Visitor

HOLDS_SECONDS = 60.0
EACH_SECONDS, LONGEST_SECONDS = 3.6, 1800.0
"""With many viewers, each answer holds longer, so that together they ask a thousand times an hour at most."""
HIDES_SECONDS = 600.0
"""A list skips hidden repositories for so long, so that reloads do not use up GitHub's rate limit."""
MOST_REMEMBERED = 50_000
AT_ONCE = 8
TRIES = 4
NO_MEMBERS = (
    "The App may not read who owns {account}: grant it the organisation permission “Members: read” on its settings "
    "page and accept that for {account}, or use `forgehand keys set`."
)

Place = tuple[Repo, InstallationId]
Where = tuple[str, int]  # a repository or an account, by number


class VisitorAccess:
    """Allows only what GitHub confirms, and raises TransientError while GitHub does not answer."""

    def __init__(self, github: GitHubApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._github = github
        self._clock = clock
        self._known: defaultdict[Where, dict[int, tuple[float, Permission]]] = defaultdict(dict)
        self._asking: dict[tuple[int, Where], asyncio.Lock] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._doubts: Counter[int | None] = Counter()

    async def permission(self, visitor: Visitor, place: Place, *, fresh: bool = False) -> Permission:
        """`fresh` asks now, before a change."""
        where = ("repo", place[0].id)
        return await self._remembered(visitor.id, where, lambda: self._ask(visitor, place), fresh=fresh)

    async def may_read(self, visitor: Visitor, place: Place) -> bool:
        return await self.permission(visitor, place) is not Permission.NONE

    async def permissions(self, visitor: Visitor, places: Iterable[Place]) -> dict[RepoId, Permission]:
        """Ask once about each repository."""
        different = {place[0].id: place for place in places}
        answers = await asyncio.gather(*(self.permission(visitor, place) for place in different.values()))
        return dict(zip(different, answers, strict=True))

    def hidden_from(self, visitor: Visitor, reaches: Callable[[Permission], bool]) -> set[RepoId]:
        """List what GitHub recently hid from this person, without asking again."""
        oldest = self._clock() - HIDES_SECONDS
        return {
            RepoId(number)
            for (kind, number), answers in self._known.items()
            if kind == "repo" and (known := answers.get(visitor.id)) and known[0] >= oldest and not reaches(known[1])
        }

    async def is_admin(self, visitor: Visitor, installation: InstallationId, *, fresh: bool = False) -> bool:
        """Check that the visitor is this account or owns this organisation; raise NotAllowed if GitHub may not say."""
        where, ask = ("account", installation), lambda: self._ask_account(visitor, installation)
        found = await self._remembered(visitor.id, where, ask, fresh=fresh)
        return found is Permission.ADMIN

    def doubt(self, person: int | None) -> None:
        """Forget what is known about this person (None: about everyone)."""
        if len(self._doubts) >= MOST_REMEMBERED:
            self._doubts, person = Counter({None: self._doubts.total()}), None
        self._doubts[person] += 1
        for where in list(self._known):
            if person is None:
                del self._known[where]
            else:
                self._known[where].pop(person, None)

    def doubts(self, person: int) -> int:
        """Return a number that changes whenever something about the person is in doubt."""
        return self._doubts[None] + self._doubts[person]

    async def _remembered(
        self, person: int, where: Where, ask: Callable[[], Awaitable[Permission]], *, fresh: bool
    ) -> Permission:
        began = self._clock()
        async with self._asking.setdefault((person, where), asyncio.Lock()):
            known = self._known[where].get(person)
            holds = max(HOLDS_SECONDS, min(len(self._known[where]) * EACH_SECONDS, LONGEST_SECONDS))
            if known is not None and (known[0] >= began if fresh else 0 <= self._clock() - known[0] < holds):
                return known[1]
            self._known[where].pop(person, None)
            self._forget_old(where)
            for _ in range(TRIES):
                asked_at, doubts = self._clock(), self.doubts(person)
                async with self._room:
                    answer = await ask()
                if doubts == self.doubts(person):  # an answer from before a doubt does not count
                    self._known[where][person] = (asked_at, answer)
                    return answer
            raise TransientError("The person's access kept changing while Forgehand asked GitHub about it.")

    def _forget_old(self, where: Where) -> None:
        oldest = self._clock() - LONGEST_SECONDS
        self._known[where] = {person: known for person, known in self._known[where].items() if known[0] >= oldest}
        if sum(map(len, self._known.values())) >= MOST_REMEMBERED:
            self._known.clear()
        if len(self._asking) >= MOST_REMEMBERED:
            self._asking = {key: lock for key, lock in self._asking.items() if lock.locked()}

    async def _ask(self, visitor: Visitor, place: Place) -> Permission:
        repo, installation = place
        try:
            account_id, permission = await self._github.installation(installation).permission(repo, visitor.login)
        except GitHubRefused:
            return Permission.NONE
        return permission if account_id == visitor.id else Permission.NONE

    async def _ask_account(self, visitor: Visitor, installation: InstallationId) -> Permission:
        """Compare owners. GitHub's list of a person's installations proves nothing, because every reader gets it."""
        try:
            view = await self._github.installed(installation)
        except NotFound:
            return Permission.NONE
        account, owns = view.account, False
        if view.is_suspended:
            return Permission.NONE
        if account.type == "User":
            owns = account.id == visitor.id
        elif account.type == "Organization":
            try:
                owns = await self._github.installation(installation).owns(account.login, visitor.login, visitor.id)
            except GitHubRefused:
                raise NotAllowed(NO_MEMBERS.format(account=account.login)) from None
        return Permission.ADMIN if owns else Permission.NONE
