"""The meter reads the same whatever way the stream is cut, and is not fooled by what it does not know."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.models import TokenUsage
from bot.sessions.money.budget import SEARCH_TOKENS
from bot.simulation.anthropic import Call, Say, wire
from bot.web.gateway.stream import MAX_EVENT_BYTES, Meter, OversizedEvent


def stream(answer: Say | Call) -> bytes:
    message = wire.message(answer, id_="msg_1", model="claude-sonnet-5-5", request_bytes=0)
    return b"".join(wire.event_bytes(name, data) for name, data in message.events())


def event(**data: Any) -> bytes:
    return f"event: {data['type']}\r\ndata:{json.dumps(data)}\r\n\r\n".encode()


WHOLE = stream(Call("Bash", {"command": "echo é" * 40}, text="héllo " * 30, usage=TokenUsage(7, 11, 13, 17)))


@given(st.lists(st.integers(0, len(WHOLE)), max_size=12))
def test_any_cut_gives_the_same_count(cuts: list[int]) -> None:
    meter = Meter()
    edges = [0, *sorted(cuts), len(WHOLE)]
    for start, end in itertools.pairwise(edges):
        meter.feed(WHOLE[start:end])
    assert meter.finished
    assert meter.consumption.usage == TokenUsage(7, 11, 13, 17)


def test_before_the_last_count_the_bytes_count() -> None:
    meter = Meter()
    meter.feed(stream(Say("x" * 300, usage=TokenUsage(5, 999))).rpartition(b"event: message_delta")[0])
    assert meter.began
    assert not meter.finished
    assert meter.consumption.usage == TokenUsage(5, 100)


def test_hidden_thinking_counts_by_the_providers_estimate() -> None:
    meter = Meter()
    meter.feed(
        event(type="content_block_delta", delta={"type": "thinking_delta", "thinking": "", "estimated_tokens": 50})
    )
    assert meter.consumption.usage.output_tokens == 50


def test_an_answer_that_does_not_state_its_input_is_not_counted_as_free() -> None:
    start = event(type="message_start", message={"usage": {"input_tokens": 0, "output_tokens": 1}})
    for first in (b"", event(type="message_start", message={}), start):
        meter = Meter()
        meter.feed(first + event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9}))
        assert not meter.began and not meter.finished and meter.consumption.usage.output_tokens == 9
        meter.feed(event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"cache_read_input_tokens": 3}))
        assert meter.finished, "from the end of the stream, as compatible servers do"
    whole = Meter()
    whole.whole(b'{"usage": {}}')
    assert not whole.finished


def test_what_is_thought_counts_by_all_of_it_and_not_by_its_summary() -> None:
    def said(**delta: Any) -> bytes:
        return event(type="content_block_delta", delta=delta)

    meter = Meter()
    meter.feed(said(thinking="x" * 300) + said(signature="A" * 4_000))
    assert meter.output_tokens == 1_000
    meter.feed(said(thinking="x" * 6_000) + said(signature="A" * 4_000))
    assert meter.output_tokens == 3_000, "what is shown whole is not counted twice"
    meter.feed(event(type="content_block_start", content_block={"type": "redacted_thinking", "data": "A" * 400}))
    assert meter.output_tokens == 3_100


def test_before_the_last_count_searches_count_with_all_that_is_read_again() -> None:
    meter = Meter()
    meter.feed(event(type="message_start", message={"usage": {"input_tokens": 500, "cache_read_input_tokens": 500}}))
    for _ in range(2):
        meter.feed(event(type="content_block_start", content_block={"type": "web_search_tool_result", "content": []}))
    found = meter.consumption
    assert found.web_searches == 2
    assert found.usage == TokenUsage(500 + 2 * 1_000 + 3 * SEARCH_TOKENS, 0, 500)
    meter.feed(event(type="message_delta", usage={"output_tokens": 9, "server_tool_use": {"web_search_requests": 2}}))
    assert (meter.consumption.web_searches, meter.consumption.usage) == (2, TokenUsage(500, 9, 500))


def test_passes_inside_one_request_are_summed() -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 4}}
    usage |= {"iterations": [{"input_tokens": 10, "output_tokens": 5}, {"input_tokens": 30, "output_tokens": 2}]}
    usage |= {"server_tool_use": {"web_search_requests": 2}, "inference_geo": "us"}
    meter = Meter()
    meter.whole(json.dumps({"type": "message", "usage": usage}).encode())
    assert meter.consumption.usage == TokenUsage(40, 7)
    assert (meter.consumption.web_searches, meter.consumption.cache_write_long) == (2, 4)
    assert meter.consumption.in_the_us


@pytest.mark.acceptance("D04")
@pytest.mark.parametrize(
    "line",
    [
        b"data: {\n",
        b"data: []\n",
        b"data: \xff\xfe\n",
        b"nonsense\n",
        b'data: {"type":"message_start","message":{"usage":{"input_tokens":-5}}}\n',
        b'data: {"type":"message_start","message":{"usage":{"input_tokens":1e400}}}\n',
        b'data: {"type":"message_delta","usage":{"output_tokens":"many"}}\n',
        b'data: {"type":"message_delta","usage":{"output_tokens":99999999999}}\n',
        b'data: {"type":"content_block_delta","delta":{"text":null}}\n',
        b'data: {"type":"unheard_of"}\n',
    ],
)
def test_what_it_cannot_read_changes_nothing(line: bytes) -> None:
    meter = Meter()
    meter.feed(event(type="message_start", message={"usage": {"input_tokens": 3, "output_tokens": 1}}))
    meter.feed(line)
    assert meter.consumption.usage == TokenUsage(3, 1)


def test_an_endless_event_is_cut() -> None:
    meter = Meter()
    with pytest.raises(OversizedEvent):
        for _ in range(MAX_EVENT_BYTES // 65_536 + 1):
            meter.feed(b"x" * 65_536)
