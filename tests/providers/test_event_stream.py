"""Amazon's framing: whatever its pieces, the events come out whole or not at all."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.web.gateway.providers import BrokenStream
from bot.web.gateway.providers.event_stream import MOST_BYTES, AmazonStream
from tests.providers.bedrock_stand_in import frame

CHUNK = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}


def chunk(**event: object) -> bytes:
    said = json.dumps(event, indent=1).encode()
    return frame(CHUNK, json.dumps({"bytes": base64.b64encode(said).decode(), "p": "abc"}).encode())


EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "n": 1},
    {"type": "content_block_delta", "delta": {"text": "é\n\ndata: x"}},
    {"type": "ping"},
]
WHOLE = b"".join(chunk(**one) for one in EVENTS)


@given(st.lists(st.integers(0, len(WHOLE)), max_size=20))
def test_events_come_out_whole_wherever_they_are_cut(cuts: list[int]) -> None:
    stream, said = AmazonStream(), b""
    edges = sorted({0, len(WHOLE), *cuts})
    for start, end in itertools.pairwise(edges):
        said += stream.feed(WHOLE[start:end])
    stream.end()
    blocks = said.decode().removesuffix("\n\n").split("\n\n")
    found = [json.loads(one.partition("\ndata: ")[2]) for one in blocks]
    assert found == EVENTS
    assert [one.partition("\n")[0] for one in blocks] == [f"event: {one['type']}" for one in EVENTS]


@settings(max_examples=300)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_wrong_byte_never_passes(at: int, by: int) -> None:
    broken = bytearray(WHOLE)
    broken[at] ^= by
    stream = AmazonStream()
    with pytest.raises(BrokenStream):
        stream.feed(bytes(broken))
        stream.end()


@pytest.mark.parametrize(
    "message",
    [
        WHOLE[:-1],
        frame(CHUNK, b"no json"),
        frame(CHUNK, json.dumps({"bytes": base64.b64encode(b'{"type": "a\\nb"}').decode()}).encode()),
        frame(CHUNK, json.dumps({"bytes": "no base64!"}).encode()),
        frame(CHUNK, b"x" * MOST_BYTES),
    ],
    ids=["torn", "no json", "odd name", "no base64", "too large"],
)
def test_what_is_no_stream_is_said_to_be_none(message: bytes) -> None:
    stream = AmazonStream()
    with pytest.raises(BrokenStream):
        stream.feed(message)
        stream.end()


def test_an_exception_is_an_error_event_and_other_events_are_nothing() -> None:
    stream = AmazonStream()
    thrown = {":message-type": "exception", ":exception-type": "throttlingException"}
    said = stream.feed(frame(thrown, b'{"message": "Too many tokens."}'))
    error = json.loads(said.decode().partition("data: ")[2])["error"]
    assert error == {"type": "rate_limit_error", "message": "Amazon Bedrock: Too many tokens."}
    assert stream.feed(frame({":message-type": "event", ":event-type": "initial-response"}, b"{}")) == b""
    coded = {":message-type": "error", ":error-code": "InternalError", ":error-message": "Oh."}
    assert b"Amazon Bedrock: Oh." in stream.feed(frame(coded, b""))


def test_no_more_than_one_message_is_held() -> None:
    stream, largest = AmazonStream(), 0
    many = b"".join(chunk(type="ping", text="x" * 5_000) for _ in range(50))
    for start in range(0, len(many), 16 << 10):
        stream.feed(many[start : start + (16 << 10)])
        largest = max(largest, len(stream._held))
    assert largest < 16 << 10
