"""A token that admits a second model: each at its own price, and no third one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.models import TokenUsage
from bot.simulation.anthropic import Say, Script
from bot.store import spend
from tests.world.gateway import MODEL, Rig, kind, rigged

FALLBACK = "claude-haiku-5-5"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path / "data") as found:
        yield found


async def test_the_fallback_is_reserved_and_paid_at_its_own_price(rig: Rig) -> None:
    rig.model.default(Script([], after=Say("it", usage=TokenUsage(1000, 100, 0, 0))))
    token, key = await rig.token(fallback=FALLBACK)
    assert kind(await rig.ask(token, model="claude-opus-5-5")) == (403, "permission_error")
    for name in (MODEL, FALLBACK, f"{FALLBACK}-20260701"):
        assert (await rig.ask(token, model=name)).status_code == 200
    await rig.settled(key)
    rows = await rig.store.many("SELECT model, reserved_usd, cost_usd FROM spend ORDER BY at, cost_usd DESC, id")
    assert [row["model"] for row in rows] == [MODEL, FALLBACK, FALLBACK]
    assert rows[1]["reserved_usd"] < rows[0]["reserved_usd"] / 15
    assert dict(await spend.by_model(rig.store, key)) == pytest.approx({MODEL: 0.003, FALLBACK: 0.0003})


async def test_without_a_fallback_only_the_turns_own_model_passes(rig: Rig) -> None:
    token, _ = await rig.token()
    assert kind(await rig.ask(token, model=FALLBACK)) == (403, "permission_error")
    assert rig.model.requests == []
