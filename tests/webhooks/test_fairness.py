"""A flood of one account's webhooks does not make another account wait: with the service in a process of its own."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.loop import doors_flood
from tests.loop.field import Field

MANY = 1_000
SECONDS = 1.0
BUSY_SECONDS = 10.0
"""While a small machine takes in all that comes, the slowest single answer."""


@pytest.mark.parametrize("attack", [doors_flood.answered_slowly, doors_flood.never_answered])
async def test_what_github_keeps_waiting_holds_up_no_other_account(
    tmp_path: Path, attack: Callable[[Field, int], Awaitable[None]]
) -> None:
    async with Field.open(tmp_path) as field:
        found = await field.meet("flood", lambda field: attack(field, MANY))
    assert statistics.median(found.status) < SECONDS and found.slowest_status < BUSY_SECONDS, found.status
    assert found.health.slowest < SECONDS and not found.health.refused


async def test_a_long_line_at_a_start_holds_up_no_other_account(tmp_path: Path) -> None:
    async with Field.open(tmp_path) as field:
        await doors_flood.leave_a_line(field, MANY)
        first = await field.status()
        assert field.waiting() >= MANY, "nothing was in line"
    assert first < BUSY_SECONDS


async def test_comments_that_nobody_may_write_hold_up_no_other_account(tmp_path: Path) -> None:
    async with Field.open(tmp_path) as field:
        found = await field.meet("flood", partial(doors_flood.of_an_outsider, many=MANY))
    assert statistics.median(found.status) < SECONDS and found.slowest_status < BUSY_SECONDS, found.status
    assert found.health.slowest < SECONDS and not found.health.refused
