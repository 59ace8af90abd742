"""Decides what a public link shows: nothing unless the store, GitHub and the account's owner all still allow it."""

from __future__ import annotations

import asyncio
import secrets
import time
import weakref
from collections.abc import Callable

from bot import account_settings
from bot.errors import GitHubRefused, Hidden, UserError
from bot.github.client import GitHubApp
from bot.kinds.shape import SecretFound
from bot.models import RepoId
from bot.store import accounts, sessions, shares
from bot.store.base import Store
from bot.store.operations import DAY
from bot.store.sessions import Session
from bot.store.shares import Share
from bot.web.pages import visited
from bot.web.pages.access import VisitorAccess
from bot.web.pages.visitors import Visitor

DAYS = (1, 7, 30)
HOLDS_SECONDS = 60.0
TOKEN_BYTES = 32
LONGEST_TOKEN = 60
NOT_ALLOWED = "The owner of {account} does not allow public links to sessions of {what} repositories."

HELD_BEFORE = "Work of this session was held because of what looks like a secret, so it cannot be shared."


class RateLimit:
    """Lets `per_minute` requests through, and as many at once."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._left, self._at = float(per_minute), clock()

    def take(self) -> bool:
        now = self._clock()
        self._left = min(self._per_minute, self._left + (now - self._at) * self._per_minute / 60)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class ShareAccess:
    """Asks GitHub whether a repository is private, and remembers the answer for a minute."""

    def __init__(self, store: Store, github: GitHubApp, access: VisitorAccess) -> None:
        self.store = store
        self._github = github
        self._access = access
        self._private: dict[RepoId, tuple[float, bool]] = {}
        self._asking: weakref.WeakValueDictionary[RepoId, asyncio.Lock] = weakref.WeakValueDictionary()

    async def found(self, token: str) -> Share:
        """Find the link of a token, which costs one look into the store."""
        share = await shares.by_token(self.store, token) if 40 <= len(token) <= LONGEST_TOKEN else None
        if share is None:
            raise Hidden("no such link")
        return share

    async def opened(self, share: Share) -> Session:
        """Find what a link leads to, also by GitHub's answers; raise Hidden for every reason to show nothing."""
        session = await sessions.session(self.store, share.session_id)
        await self._require_no_secret(session)
        private = await self.is_private(session)
        if not await self.allows(session, private=private) or (private and not share.of_private):
            raise Hidden("not allowed any more")
        maker = Visitor(share.made_by_id, share.made_by, 0.0, "", "")
        if not (await self._access.permission(maker, visited.place_of(session))).may_write:
            raise Hidden("its maker may not make it any more")
        return session

    async def _require_no_secret(self, session: Session) -> None:
        turns = await sessions.turns_of(self.store, session.id)
        if any(one.part(SecretFound).by for one in turns):
            raise Hidden("its work was held because of a secret")

    async def allows(self, session: Session, *, private: bool) -> bool:
        choices = await accounts.settings_of(self.store, session.installation_id)
        return account_settings.may_share(choices, private=private)

    async def is_private(self, session: Session, *, fresh: bool = False) -> bool:
        """Ask GitHub, because no event that we rely on says when a repository becomes private."""
        if not fresh and (known := self._known(session.repo_id)) is not None:
            return known
        async with self._asking.setdefault(session.repo_id, asyncio.Lock()):
            if not fresh and (known := self._known(session.repo_id)) is not None:  # somebody else has asked
                return known
            at = self.store.now()
            try:
                view = await self._github.installation(session.installation_id).repo(session.repo.full_name)
            except GitHubRefused:
                raise Hidden("GitHub does not show the repository") from None
            if view.id != session.repo_id:
                raise Hidden("another repository has this name")
            self._private = {id_: one for id_, one in self._private.items() if at - one[0] < HOLDS_SECONDS}
            self._private[session.repo_id] = at, view.private
            return view.private

    def _known(self, repo: RepoId) -> bool | None:
        at, private = self._private.get(repo, (0.0, True))
        return private if 0 <= self.store.now() - at < HOLDS_SECONDS else None

    async def make(self, session: Session, visitor: Visitor, days: int, *, confirmed: bool) -> tuple[str, Share]:
        """Make a link in the place of an earlier one, and return its token, which nobody can read again."""
        try:
            await self._require_no_secret(session)
        except Hidden:
            raise UserError(HELD_BEFORE) from None
        private = await self.is_private(session, fresh=True)
        if not await self.allows(session, private=private):
            what = "private" if private else "these"
            raise UserError(NOT_ALLOWED.format(account=session.owner, what=what))
        if private and not confirmed:
            raise UserError("The repository is private: confirm that everyone who has the link may see this session.")
        now, token = self.store.now(), secrets.token_urlsafe(TOKEN_BYTES)
        share = Share(session.id, visitor.login, visitor.id, private, now, now + days * DAY)
        repository = f"{'private ' if private else ''}{session.repo.full_name}"
        await shares.put(self.store, share, token, f"for {days} days, {repository}")
        return token, share
