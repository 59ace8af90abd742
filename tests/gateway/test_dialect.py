"""What of the provider's API is open to agents: a list of names, and what becomes of all others."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.web.gateway import Dialect
from bot.web.gateway.dialect import BETAS
from tests.world.gateway import MESSAGES, Rig, body, headers, kind, rigged

pytestmark = [pytest.mark.review("security-2"), pytest.mark.review("suspected-7")]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path / "data") as found:
        yield found


async def betas(rig: Rig, *values: str) -> str | None:
    token, _ = await rig.token()
    sent = [*headers(token).items(), *(("anthropic-beta", value) for value in values)]
    assert (await rig.client.post(MESSAGES, headers=sent, json=body("hi"))).status_code == 200
    return rig.model.requests[-1].headers.get("anthropic-beta")


async def test_betas_that_are_known_go_on_and_others_are_left_out(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    known = sorted(BETAS)
    assert await betas(rig, ",".join(known)) == ",".join(known)
    assert rig.app.state.gateway.left_out == {}
    mixed = ("cache-keepalive-2026-09-03, effort-2025-11-24", "message-threads-2026-08-12,effort-2025-11-24")
    for _ in range(2):
        assert await betas(rig, *mixed) == "effort-2025-11-24"
    assert await betas(rig, "fast-mode-2026-02-01") is None
    assert rig.app.state.gateway.left_out == {"beta": 5}
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 3, "each once"
    assert all("FORGEHAND_GATEWAY_ALLOW" in line for line in told)


async def test_of_an_address_only_what_the_agent_asks_goes_on(rig: Rig) -> None:
    token, _ = await rig.token()
    for query in ("beta=true", "speed=fast&beta=true&beta=false"):
        answer = await rig.client.post(f"{MESSAGES}?{query}", headers=headers(token), json=body("hi"))
        assert answer.status_code == 200
        assert rig.model.requests[-1].query == "beta=true"
    assert rig.app.state.gateway.left_out == {"query": 2}


async def test_whoever_makes_up_betas_fills_no_log(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    await betas(rig, ",".join(f"made-up-{n}" for n in range(200)))
    assert rig.app.state.gateway.left_out == {"beta": 200}
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 50


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"thread_id": "t"}, "thread_id"),
        ({"service_tier": "auto"}, "service_tier"),
        ({"cache_control": {"type": "ephemeral"}}, "cache_control"),
        ({"context_management": {"edits": [{"type": "compact_20260112"}]}}, "compact_20260112"),
        ({"context_management": {"edits": [{"type": ["x"]}]}}, "x"),
        ({"context_management": {"edits": "all"}}, "context_management"),
        ({"context_management": {"edits": [], "more": 1}}, "context_management"),
        ({"output_config": {"effort": "low", "task_budget": {"type": "dollars", "total": 1}}}, "task_budget"),
        ({"output_config": {"task_budget": {"type": "tokens", "total": 1, "model": "best"}}}, "task_budget"),
        ({"x\n[y](z)": 1}, "x??y??z?"),
    ],
)
async def test_a_field_that_nobody_knows_is_refused_with_what_to_do(
    rig: Rig, change: dict[str, Any], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    token, key = await rig.token()
    answer = await rig.ask(token, **change)
    assert kind(answer) == (400, "invalid_request_error")
    assert "Extra inputs are not permitted" in answer.json()["error"]["message"]
    assert named in answer.json()["error"]["message"]
    assert "FORGEHAND_GATEWAY_ALLOW" in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert rig.model.requests == []
    assert rig.refusals == {"field": 1}
    assert [record for record in caplog.records if record.levelno == logging.ERROR and named in record.getMessage()]
    assert (await rig.settled(key)).counted_usd == 0


async def test_what_the_operator_names_goes_on(tmp_path: Path) -> None:
    admitted = Dialect(frozenset({"thread_id", "message-threads-2026-08-12", "compact_20260112", "verbosity"}))
    async with rigged(tmp_path / "data", dialect=admitted) as rig:
        assert await betas(rig, "message-threads-2026-08-12") == "message-threads-2026-08-12"
        token, _ = await rig.token()
        more: dict[str, Any] = {"thread_id": "t", "context_management": {"edits": [{"type": "compact_20260112"}]}}
        assert (await rig.ask(token, **more, output_config={"verbosity": 1})).status_code == 200
        assert rig.model.requests[-1].body["thread_id"] == "t"
        assert kind(await rig.ask(token, other=1)) == (400, "invalid_request_error")


async def test_fields_whose_price_nobody_names_are_left_out_where_that_changes_nothing_else(rig: Rig) -> None:
    token, _ = await rig.token()
    asked = await rig.ask(token, safeguards=[{"type": "dangerous_tool_use"}], fallbacks=[{"model": "claude-opus-4-1"}])
    assert asked.status_code == 200
    assert rig.model.requests[-1].body == body("hi")
    assert rig.app.state.gateway.left_out == {"field": 2}


async def test_headers_of_the_provider_that_nobody_knows_stay_behind(rig: Rig) -> None:
    token, _ = await rig.token()
    sent = {**headers(token), "anthropic-cache-keepalive": "1", "anthropic-dangerous-direct-browser-access": "true"}
    assert (await rig.client.post(MESSAGES, headers=sent, json=body("hi"))).status_code == 200
    got = rig.model.requests[-1].headers
    assert "anthropic-cache-keepalive" not in got
    assert got["anthropic-dangerous-direct-browser-access"] == "true"
