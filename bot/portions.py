"""Keeps long work from holding the event loop: in portions between which others have their turn, or in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
PORTION_SECONDS = 0.01
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


async def made_of(text: str, make: Callable[[str], T]) -> T:
    """What a pure function makes of a text; a long one is read in a thread."""
    return await asyncio.to_thread(make, text) if len(text) > LONG_TEXT else make(text)
