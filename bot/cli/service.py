"""Asks the running service for something, by way of the store, and waits for its answer."""

from __future__ import annotations

import asyncio

from bot.settings import Address

ANSWER_SECONDS = 10.0


async def ask(where: Address, kind: str, body: dict[str, str]) -> tuple[bool, str]:
    """Leave a request for the running service and wait for its answer."""
    from bot.store import operations
    from bot.store.base import Store

    store = await Store.open(where, migrate=False)
    try:
        request_id = await operations.leave_request(store, kind, body)
        async with asyncio.timeout(ANSWER_SECONDS):
            while (answer := await operations.request_answer(store, request_id)) is None:  # noqa: ASYNC110 - from elsewhere
                await asyncio.sleep(0.2)
        return answer
    except TimeoutError:
        return False, "Forgehand does not seem to run: nobody answered. The request waits for the next start."
    finally:
        await store.close()
