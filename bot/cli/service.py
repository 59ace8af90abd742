"""Asks the running service for something through the store, and shows its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import typer

from bot.cli import console
from bot.settings import Address

ANSWER_SECONDS = 10.0


def show_answer(asking: Coroutine[Any, Any, tuple[bool, str]], name: str, *, as_json: bool) -> None:
    """Print the answer; `name` says in JSON whether the service did it."""
    done, answer = console.run(asking)
    if as_json:
        console.print_json({name: done, "message": answer})
    elif done:
        typer.echo(answer)
    if not done:
        console.fail(answer)


async def ask(where: Address, kind: str, body: dict[str, str]) -> tuple[bool, str]:
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
        return False, "Forgehand did not answer, so it may not be running. Your request waits until Forgehand starts."
    finally:
        await store.close()
