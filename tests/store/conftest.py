"""Fixtures: a store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.store.base import Address, Store


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Store]:
    opened = await Store.open(address)
    yield opened
    await opened.close()
