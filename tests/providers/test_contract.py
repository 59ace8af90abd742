"""What an agent gets and what it costs is the same behind each provider."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.models import TokenUsage
from bot.sessions.money import budget
from bot.sessions.money.budget import Consumption, Prices
from bot.simulation.anthropic import Call, Cut, Fail, Say, Script
from tests.providers.foreign import ForeignModel
from tests.providers.standing import NAMES, Standing, gateway_to, standing
from tests.world.gateway import COUNT, MESSAGES, MODEL, Rig, body, headers

USAGE = TokenUsage(1_000, 300, 20_000, 5_000)
CLI = {
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,"
    "advanced-tool-use-2025-11-20,effort-2025-11-24,per-turn-control-2026-07-01,task-budgets-2026-03-13",
    "x-amzn-bedrock-performanceconfig-latency": "optimized",
}
"""What the real client sends (2.1.326), and a header that would cost money at Amazon."""
MORE = {
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "medium", "task_budget": {"type": "tokens", "total": 90_000}},
    "thinking": {"type": "adaptive"},
    "tools": [{"name": "Bash", "input_schema": {"type": "object"}, "defer_loading": True}],
}


@pytest.fixture(params=NAMES)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Standing]:
    async with standing(request.param) as found:
        yield found


@pytest.fixture
async def rig(stand: Standing, tmp_path: Path) -> AsyncIterator[Rig]:
    async with gateway_to(stand, tmp_path) as found:
        yield found


async def streamed(rig: Rig, token: str, **more: Any) -> list[dict[str, Any]]:
    sent = body("hi", stream=True, **more)
    async with rig.client.stream("POST", MESSAGES, headers={**headers(token), **CLI}, json=sent) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        text = (await response.aread()).decode()
    events = [one.split("\n") for one in text.strip().split("\n\n")]
    found = [json.loads(data.removeprefix("data: ")) for _, data in events]
    assert [name for name, _ in events] == [f"event: {one['type']}" for one in found]
    return found


async def test_a_stream_with_a_tool_and_its_price(stand: Standing, rig: Rig) -> None:
    rig.model.default(Script([Call("Bash", {"command": "echo ü 'ß'\n" * 30}, text="I look. ✅", usage=USAGE)]))
    token, key = await rig.token()
    events = await streamed(rig, token, **MORE)
    assert events[0]["message"]["usage"]["cache_read_input_tokens"] == USAGE.cache_read_tokens
    assert [one["type"] for one in events][-2:] == ["message_delta", "message_stop"]
    deltas = [one["delta"] for one in events if one["type"] == "content_block_delta"]
    assert "".join(one.get("text", "") for one in deltas) == "I look. ✅"
    written = "".join(one.get("partial_json", "") for one in deltas)
    assert json.loads(written) == {"command": "echo ü 'ß'\n" * 30}
    cost = await rig.settled(key)
    price = budget.cost(Prices().of(MODEL), Consumption(USAGE))
    assert cost.counted_usd == pytest.approx(price * stand.factor)
    assert cost.unconfirmed_usd == 0
    assert "x-amzn-bedrock-performanceconfig-latency" not in rig.model.requests[-1].headers or not isinstance(
        rig.model, ForeignModel
    )


async def test_a_whole_answer_and_a_count(stand: Standing, rig: Rig) -> None:
    rig.model.default(Script([Say("Done.", usage=USAGE)]))
    token, key = await rig.token()
    answer = await rig.ask(token)
    assert answer.json()["content"] == [{"type": "text", "text": "Done."}]
    counted = await rig.client.post(
        COUNT, headers=headers(token), json={"model": MODEL, "messages": body("x")["messages"]}
    )
    assert counted.json()["input_tokens"] > 0, counted.text
    cost = await rig.settled(key)
    assert cost.counted_usd == pytest.approx(budget.cost(Prices().of(MODEL), Consumption(USAGE)) * stand.factor)


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error"), (500, "api_error")])
async def test_errors_that_pass_are_those_that_the_client_knows(
    stand: Standing, rig: Rig, status: int, kind: str
) -> None:
    rig.model.default(Script([Fail(status, {"retry-after": "7"}, times=1), Say("Done.")]))
    token, key = await rig.token()
    refused = await rig.ask(token)
    assert (refused.status_code, refused.json()["error"]["type"]) == (status, kind)
    assert refused.headers["retry-after"] == "7"
    assert "x-should-retry" not in refused.headers
    assert (await rig.settled(key)).counted_usd == 0
    assert (await rig.ask(token)).status_code == 200


async def test_a_request_that_is_wrong_or_too_long_is_refused_in_the_providers_words(rig: Rig) -> None:
    rig.model.default(Script([Fail(400, message="Input is too long for requested model.")]))
    token, key = await rig.token()
    refused = await rig.ask(token)
    error = refused.json()["error"]
    assert (refused.status_code, error["type"]) == (400, "invalid_request_error")
    assert "Input is too long for requested model." in error["message"]
    assert (await rig.settled(key)).counted_usd == 0


@pytest.mark.parametrize("cut", [Cut(), Cut(error="overloaded_error")], ids=["torn", "error"])
async def test_a_stream_that_breaks_off_ends_with_an_error_and_stays_unconfirmed(
    stand: Standing, rig: Rig, cut: Cut
) -> None:
    rig.model.default(Script([cut, Say("word " * 200, usage=USAGE)]))
    token, key = await rig.token()
    events = await streamed(rig, token, max_tokens=4_000)
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "error")
    assert events[-1]["error"]["type"] == ("overloaded_error" if cut.error else "api_error")
    cost = await rig.settled(key)
    seen = budget.cost(Prices().of(MODEL), Consumption(TokenUsage(1_000, 0, 20_000, 5_000))) * stand.factor
    assert cost.counted_usd - cost.unconfirmed_usd >= seen
    assert cost.unconfirmed_usd > 0


async def test_the_agent_sees_nothing_of_the_credential(stand: Standing, rig: Rig) -> None:
    token, _ = await rig.token()
    rig.model.default(Script([Fail(403, message=f"key {stand.secrets[-1]} of 123456789012 may not")]))
    refused = await rig.ask(token)
    assert refused.status_code == 403
    assert refused.headers["x-should-retry"] == "false"
    hidden = stand.secrets if stand.name == "anthropic" else [*stand.secrets, "123456789012"]
    assert not [one for one in hidden if one in refused.text]
    assert not {"authorization", "x-amzn-requestid", "x-amzn-errortype"} & refused.headers.keys()


async def test_a_model_without_a_price_is_refused(rig: Rig) -> None:
    token, _ = await rig.token(model="claude-nobody-knows")
    refused = await rig.ask(token, model="claude-nobody-knows")
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
    assert not rig.model.requests
