"""Keeps long work from holding the event loop: in portions between which others have their turn, or in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import TypeVar

T = TypeVar("T")
PORTION_SECONDS = 0.01
LARGE_BODY = 1 << 20
"""Bytes that take some ten milliseconds to hash or to decode: 25 MB take a tenth of a second and more."""
LONG_TEXT = 2_000
"""Characters of which the slowest of our readers takes some ten milliseconds."""


async def in_portions(items: Iterable[T]) -> AsyncIterator[T]:
    """The items as they are: each must be short work by itself."""
    began = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - began > PORTION_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()


async def beside(work: Callable[[], T], *, size: int, most: int) -> T:
    """Does work in a thread where it is on more than `most`."""
    return await asyncio.to_thread(work) if size > most else work()


async def made_of(text: str, make: Callable[[str], T]) -> T:
    return await beside(partial(make, text), size=len(text), most=LONG_TEXT)
