"""Long work on the event loop in portions, between which everybody else has their turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")
PORTION_SECONDS = 0.01


async def in_portions(items: Iterable[T]) -> AsyncIterator[T]:
    """The items as they are: each must be short work by itself."""
    began = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - began > PORTION_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()
