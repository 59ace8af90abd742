"""The stand-in for Anthropic's API behaves as the real one does, so that what works against it works."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from bot.models import TokenUsage
from bot.simulation.anthropic import Call, Calls, Cut, Fail, ModelRequest, Say, Script, SimulatedAnthropic, Slow, Wait

KEY = "sk-ant-api03-scripted"
TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]


@pytest.fixture
async def model() -> AsyncIterator[SimulatedAnthropic]:
    async with SimulatedAnthropic.running(KEY, oauth_token="sk-ant-oat01-scripted") as running:
        yield running


@pytest.fixture
async def client(model: SimulatedAnthropic) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    async with httpx.AsyncClient(base_url=model.url, headers=headers, verify=False) as running:
        yield running


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def asked(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5-5", "max_tokens": 9, "tools": TOOLS, "messages": list(messages), **more}


async def events(client: httpx.AsyncClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.post("/v1/messages", json={**body, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = [block.splitlines() for block in answer.text.strip().split("\n\n")]
    assert all(block[0] == f"event: {json.loads(block[1][6:])['type']}" for block in blocks)
    return [json.loads(block[1][6:]) for block in blocks]


async def test_an_answer_streams_in_the_order_of_the_real_api(
    model: SimulatedAnthropic, client: httpx.AsyncClient
) -> None:
    calls = [Call("Read", {"file_path": "a"}), Call("Bash", {"command": "ls " + "x" * 60})]
    model.default(Script([Calls(calls, text="Two at once.", usage=TokenUsage(1, 2, 3, 4))]))
    seen = await events(client, asked(user("go")))
    assert [event["type"] for event in seen if event["type"] != "content_block_delta"] == [
        *("message_start", "content_block_start", "content_block_stop", "ping"),
        *("content_block_start", "content_block_stop") * 2,
        *("message_delta", "message_stop"),
    ]
    assert seen[0]["message"]["usage"]["output_tokens"] == 1
    last = [event["delta"]["partial_json"] for event in seen if event.get("index") == 2 and "delta" in event]
    assert json.loads("".join(last)) == {"command": "ls " + "x" * 60}
    assert len(last) > 2
    assert seen[-2]["delta"]["stop_reason"] == "tool_use"
    assert seen[-2]["usage"]["output_tokens"] == 2
    assert seen[-2]["usage"]["cache_read_input_tokens"] == 3


async def test_the_same_answer_unstreamed(model: SimulatedAnthropic, client: httpx.AsyncClient) -> None:
    model.default(Script([Call("Bash", {"command": "ls"}, text="Look.")]))
    answer = (await client.post("/v1/messages", json=asked(user("go")))).json()
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use"]
    assert (answer["stop_reason"], answer["role"]) == ("tool_use", "assistant")


async def said(client: httpx.AsyncClient, *messages: dict[str, Any], **more: Any) -> str:
    answer = await client.post("/v1/messages", json=asked(*messages, **more))
    return str(answer.json()["content"][0]["text"])


async def test_the_latest_marker_decides_and_its_answers_are_counted(
    model: SimulatedAnthropic, client: httpx.AsyncClient
) -> None:
    model.script("one", Script([Say("one 0"), Say("one 1")]))
    model.script("two", Script([Say("two 0")]))
    model.default(Script([Say("default")]))
    reply = {"role": "assistant", "content": [{"type": "text", "text": "x"}]}
    first = user("<system-reminder>\nbe good\n</system-reminder>", "go [[scenario:one]]")
    assert await said(client, first) == "one 0"
    assert await said(client, first, reply, {"role": "user", "content": "and then"}) == "one 1"
    assert await said(client, first, reply, user("[[scenario:two]]")) == "two 0"
    assert await said(client, first, reply, user("x"), reply, user("x")) == "There is nothing more to do."
    assert await said(client, user("[[scenario:unknown]]")) == "default"
    assert await said(client, first, tools=[]) == "Work on the repository"
    assert model.requests[0].prompt == "go [[scenario:one]]"


async def test_a_step_may_look_at_what_its_tools_returned(model: SimulatedAnthropic, client: httpx.AsyncClient) -> None:
    def thief(request: ModelRequest) -> Say:
        return Say(f"stolen: {request.tool_results[-1].text} of {request.tool_names}")

    model.default(Script([Call("Bash", {"command": "env"}), thief]))
    call = (await client.post("/v1/messages", json=asked(user("go")))).json()
    result = {"type": "tool_result", "tool_use_id": call["content"][0]["id"], "content": "SECRET=1"}
    history = [user("go"), {"role": "assistant", "content": call["content"]}]
    assert await said(client, *history, {"role": "user", "content": [result]}) == "stolen: SECRET=1 of ['Bash']"
    unanswered = await client.post("/v1/messages", json=asked(*history, user("never mind")))
    assert unanswered.status_code == 400


@pytest.mark.parametrize(
    ("headers", "change", "status", "kind"),
    [
        ({"x-api-key": "sk-ant-other"}, {}, 401, "authentication_error"),
        ({"x-api-key": ""}, {}, 401, "authentication_error"),
        ({"x-api-key": "", "authorization": "Bearer sk-ant-oat01-scripted"}, {}, 401, "authentication_error"),
        ({"anthropic-version": ""}, {}, 400, "invalid_request_error"),
        ({}, {"max_tokens": None}, 400, "invalid_request_error"),
        ({}, {"model": "gpt-9"}, 404, "not_found_error"),
        ({}, {"messages": []}, 400, "invalid_request_error"),
    ],
)
async def test_what_the_real_one_refuses(
    client: httpx.AsyncClient, headers: dict[str, str], change: dict[str, Any], status: int, kind: str
) -> None:
    body = {name: value for name, value in asked(user("go"), **change).items() if value is not None}
    answer = await client.post("/v1/messages", headers=headers, json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    assert answer.json()["type"] == "error"


async def test_an_oauth_token_needs_its_beta(client: httpx.AsyncClient) -> None:
    headers = {"x-api-key": "", "authorization": "Bearer sk-ant-oat01-scripted", "anthropic-beta": "oauth-2025-04-20"}
    assert (await client.post("/v1/messages", headers=headers, json=asked(user("go")))).status_code == 200


async def test_counting_and_nothing_else(client: httpx.AsyncClient) -> None:
    body = {"model": "claude-sonnet-5-5", "messages": [user("hi")]}
    assert (await client.post("/v1/messages/count_tokens", json=body)).json()["input_tokens"] > 0
    assert (await client.get("/v1/models")).status_code == 404


async def test_failures_happen_as_often_as_the_script_says(
    model: SimulatedAnthropic, client: httpx.AsyncClient
) -> None:
    model.default(Script([Fail(529, times=2), Fail(429, {"retry-after": "3"}, times=1), Say("at last")]))
    answers = [await client.post("/v1/messages", json=asked(user("go"))) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [529, 529, 429, 200]
    assert answers[0].json()["error"]["type"] == "overloaded_error"
    assert answers[2].headers["retry-after"] == "3"
    model.default(Script([Fail(500)]))
    assert {(await client.post("/v1/messages", json=asked(user("go")))).status_code for _ in range(3)} == {500}


async def test_a_stream_can_be_torn(model: SimulatedAnthropic, client: httpx.AsyncClient) -> None:
    model.default(Script([Cut(), Cut(error="overloaded_error"), Say("whole " * 40)]))
    with pytest.raises(httpx.RemoteProtocolError):
        await client.post("/v1/messages", json=asked(user("go"), stream=True))
    assert (await events(client, asked(user("go"))))[-1]["error"]["type"] == "overloaded_error"
    assert (await events(client, asked(user("go"))))[-1] == {"type": "message_stop"}


async def test_an_answer_waits_for_its_release(model: SimulatedAnthropic, client: httpx.AsyncClient) -> None:
    model.default(Script([Wait("first"), Slow(0.001, 0.001), Say("text " * 20, hold="middle")]))
    asking = asyncio.create_task(events(client, asked(user("go"))))
    for name in ("first", "middle"):
        await model.reached(name)
        assert not asking.done()
        model.release(name)
    assert (await asking)[-1] == {"type": "message_stop"}


async def test_it_notices_a_client_that_leaves(model: SimulatedAnthropic, client: httpx.AsyncClient) -> None:
    model.default(Script([Wait("never"), Say("x")]))
    asking = asyncio.create_task(events(client, asked(user("go"))))
    await model.reached("never")
    asking.cancel()
    await model.until(lambda seen: seen.gone == 1 and len(seen.requests) == 1)
