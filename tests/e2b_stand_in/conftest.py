"""A running stand-in, with the real SDK pointed at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from e2b import AsyncSandbox

from tests.e2b_stand_in import E2BStandIn

Until = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]


@pytest.fixture
async def e2b(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[E2BStandIn]:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho a tool of the host\n", encoding="utf-8")
    tool.chmod(0o755)
    async with E2BStandIn.running(tmp_path / "e2b", extra_binds=[(tool, "/opt/tool")]) as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
async def box(e2b: E2BStandIn) -> AsyncSandbox:
    return await AsyncSandbox.create("claude", timeout=600, retries=0)


async def until(check: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await check():
            await asyncio.sleep(0.01)
