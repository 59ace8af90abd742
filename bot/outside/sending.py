"""Sends bulletins: each receiver its own, one after the other, beside those of the others, again until it takes them.

A crash between a post and its note posts it again, with the same id."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from bot.errors import UserError, VaultError
from bot.loops import Loop
from bot.models import InstallationId
from bot.outside import posting, receivers
from bot.outside.client import OutsideClient
from bot.outside.posting import Links, PostingResult
from bot.settings.inside import InsideHosts
from bot.store import bulletins, outside_services
from bot.store.base import Store
from bot.store.bulletins import Bulletin
from bot.store.outside_services import Purpose
from bot.vault import Vault

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
MOST_AT_ONCE = 8
MOST_OF_ACCOUNT = 2
"""At once, so that an account with dead receivers leaves room for others."""
MOST_IN_A_ROW = 20
FIRST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 3600.0
TELL_UP_TO_SECONDS = 86_400.0

Receiver = tuple[InstallationId, str]


class BulletinSender:
    """Only the leader runs it."""

    def __init__(self, store: Store, vault: Vault, inside: InsideHosts, links: Links, may_act: Callable[[], bool]):
        self.loop = Loop("bulletins", self._look, EVERY_SECONDS)
        self._store = store
        self._vault = vault
        self._client = OutsideClient(inside)
        self._links = links
        self._may_act = may_act
        self._busy: set[Receiver] = set()
        self._urls: set[str] = set()
        self._left = False
        """Some waited for a place at the last look."""

    async def close(self) -> None:
        await self._client.close()

    async def _look(self) -> None:
        due = [one for one in await bulletins.due(self._store, self._store.now()) if one not in self._busy]
        self._left = False
        for receiver in due if self._may_act() else ():
            of_account = Counter(installation for installation, _ in self._busy)
            if len(self._busy) >= MOST_AT_ONCE or of_account[receiver[0]] >= MOST_OF_ACCOUNT:
                self._left = True
                continue
            self._busy.add(receiver)
            self.loop.begin(self._serve(receiver))

    async def _serve(self, receiver: Receiver) -> None:
        """Send what waits for a receiver, oldest first, until it is done or one fails."""
        try:
            for _ in range(MOST_IN_A_ROW):
                waiting = await bulletins.oldest(self._store, *receiver)
                if waiting is None or not self._may_act() or not await self._send(waiting):
                    return
            self._left = True
        except Exception:
            log.exception("a bulletin could not be handled", extra={"receiver": receiver[1]})
        finally:
            self._busy.discard(receiver)
            if self._left:
                self.loop.wake()

    async def _send(self, bulletin: Bulletin) -> bool:
        """Post it once and note what came of it; True if the next one may follow."""
        result = await self._posted(bulletin)
        if result is None:
            return False
        if result.works:
            await bulletins.taken(self._store, bulletin)
            return True
        await self._failed(bulletin, result)
        return False

    async def _posted(self, bulletin: Bulletin) -> PostingResult | None:
        """None if there is nothing to send or nobody to send it to, or if the address is in use at this moment."""
        known = await outside_services.of_installation(self._store, Purpose.RECEIVER, bulletin.installation_id)
        service = next((one for one in known if one.name == bulletin.receiver), None)
        facts = await bulletins.facts(self._store, bulletin.key)
        if service is None:
            await self._give_up(bulletin, "The receiver is not stored any more.")
            return None
        if facts is None:
            await self._give_up(bulletin, "What it tells of is not stored any more.", before=bulletin.at)
            return None
        try:
            target = await receivers.target(self._vault, service)
        except (UserError, VaultError) as error:
            return PostingResult(False, str(error))
        body = bulletin.body or posting.body(bulletin, facts, self._links)
        if bulletin.body is None:
            await bulletins.fix_body(self._store, bulletin, body)
        if (url := target.url.reveal()) in self._urls:
            return None
        self._urls.add(url)
        try:
            return await posting.post(self._client, target, bulletin.id, body, self._store.now())
        finally:
            self._urls.discard(url)

    async def _failed(self, bulletin: Bulletin, result: PostingResult) -> None:
        """Try it again after a pause that doubles; give up what is older than a day by then."""
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(bulletin.tries, 16), LONGEST_PAUSE_SECONDS)
        next_at = self._store.now() + max(pause, result.pause_seconds)
        await bulletins.failed(self._store, bulletin, result.words, next_at)
        if bulletin.at <= next_at - TELL_UP_TO_SECONDS:
            await self._give_up(bulletin, result.words, before=next_at - TELL_UP_TO_SECONDS)

    async def _give_up(self, bulletin: Bulletin, problem: str, **which: float) -> None:
        count = await bulletins.give_up(
            self._store, bulletin.installation_id, bulletin.receiver, problem=problem, **which
        )
        about = {"receiver": bulletin.receiver, "installation": bulletin.installation_id, "count": count}
        log.warning("bulletins are given up", extra={**about, "problem": problem})
