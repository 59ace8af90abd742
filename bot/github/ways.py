"""Several ways to ask the same thing: one that does not answer keeps nobody from the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Way = Callable[[], Coroutine[Any, Any, T]]


async def first_answer(ways: Sequence[Way[T]], patience: float) -> T:
    """Of at least one way. The next one begins when one has failed, or none has answered for so long; the first answer
    counts, and without any the last error."""
    running: set[asyncio.Task[T]] = set()
    left = list(ways)
    error: BaseException | None = None
    try:
        while left or running:
            if left:
                running.add(asyncio.create_task(left.pop(0)()))
            wait = asyncio.wait(running, timeout=patience if left else None, return_when=asyncio.FIRST_COMPLETED)
            done, running = await wait
            for one in done:
                if (error := one.exception()) is None:
                    return one.result()
    finally:
        await _let_go(running)
    assert error is not None
    raise error


async def _let_go(running: set[asyncio.Task[T]]) -> None:
    for one in running:
        one.cancel()
    await asyncio.gather(*running, return_exceptions=True)
