"""The end of `forgehand setup`: runs the service until it has answered the first comment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bot.cli import console, start

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.deliveries import LedgerLine

LOOK_SECONDS = 0.5
EVENTS = frozenset(("issue_comment", "issues", "pull_request", "pull_request_review", "pull_request_review_comment"))


async def seen(values: Mapping[str, str], stop: asyncio.Event) -> bool:
    """Return whether a comment was answered; False if somebody stopped the wait."""
    from bot import app
    from bot.store.base import Store

    chosen = await start.chosen(values, poll=False)
    async with app.running(chosen) as service, Store.reading(chosen.database) as store:
        began = store.now()
        console.say(
            f"Forgehand runs on {service.url}. Comment `{chosen.command} help` on an issue of a repository that"
        )
        console.say("has the App. Ctrl-C skips this.")
        waiting = asyncio.create_task(_answered(store, began))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (waiting, stopping):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            one = await waiting
            at = f"{chosen.github.url}/{one.repo}/issues/{one.number}"
            console.say(f"Answered: {one.sender} at {at}. Everything works.")
            return True
        return False


async def _answered(store: Store, since: float) -> LedgerLine:
    """Say what arrives and was not answered, and wait for the first one that was."""
    from bot.store import deliveries
    from bot.store.sought import Sought
    from bot.words import replies

    told: set[str] = set()
    while True:
        for one in reversed(await deliveries.listing(store, Sought(since=since, without=replies.NOISE, limit=100))):
            if one.event not in EVENTS or one.state == "received" or one.guid in told:
                continue
            if one.state == "acted":
                return one
            told.add(one.guid)
            console.say(f"Arrived, but {one.state}: {one.repo or ''}#{one.number} by {one.sender}: {one.reason or ''}")
        await asyncio.sleep(LOOK_SECONDS)
