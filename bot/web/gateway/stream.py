"""Counts what an answer costs while it passes: by its bytes until the stream states the usage."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Annotated

import msgspec

from bot.models import TokenUsage
from bot.sessions.money import budget
from bot.sessions.money.budget import BYTES_PER_TOKEN, WINDOW_TOKENS, Consumption

MAX_EVENT_BYTES = 8 << 20

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] | None


class OversizedEvent(Exception):
    """An event of the stream is larger than any answer can be."""


class _CacheCreation(msgspec.Struct):
    ephemeral_1h_input_tokens: Count = 0


class _ServerTools(msgspec.Struct):
    web_search_requests: Count = 0


class _Tokens(msgspec.Struct):
    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0
    cache_creation: _CacheCreation | None = None


class _Usage(_Tokens):
    server_tool_use: _ServerTools | None = None
    inference_geo: str | None = None
    iterations: list[_Tokens] | None = None
    """Passes inside one request; the top level may hold only the last one."""


class _Message(msgspec.Struct):
    usage: _Usage | None = None


class _Block(msgspec.Struct):
    type: str = ""
    data: str | None = None


class _Delta(msgspec.Struct):
    stop_reason: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    """All of the thinking, encrypted; the visible text may be only a summary."""
    estimated_tokens: Count = 0


class _Event(msgspec.Struct):
    type: str = ""
    message: _Message | None = None
    usage: _Usage | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None


_events: msgspec.json.Decoder[_Event] = msgspec.json.Decoder(_Event)
_wholes: msgspec.json.Decoder[_Message] = msgspec.json.Decoder(_Message)


class Meter:
    """Feed it every byte of an answer; `consumption` is an estimate until the answer is finished."""

    def __init__(self, *, most_output: int = WINDOW_TOKENS, in_the_us: bool = False, cached_long: bool = False) -> None:
        """Take what the request asked for, as the default for what the answer does not state."""
        self._most_output = most_output
        self._in_the_us = in_the_us
        self._cached_long = cached_long
        self.began = False  # the provider has stated what the input costs
        self.finished = False  # the provider has sent its last count
        self.price_changes = 0  # the number of events that changed the cost, apart from output
        self._usage = _Usage()
        self._bytes = 0
        self._thought = 0  # visible bytes of the current thinking
        self._searches = 0
        self._rest: list[bytes] = []
        self._rest_size = 0

    def feed(self, chunk: bytes) -> None:
        """Take bytes of an event stream, cut anywhere."""
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            for line in b"".join([*self._rest, head]).splitlines():
                self._line(line)
            self._rest, self._rest_size = [], 0
        if tail:
            self._rest.append(tail)
            self._rest_size += len(tail)
        if self._rest_size > MAX_EVENT_BYTES:
            raise OversizedEvent

    def whole(self, body: bytes) -> None:
        """Take an answer that was not streamed."""
        try:
            message = _wholes.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if message.usage is not None:
            self._usage = message.usage
            self.began = self.finished = _states_input(message.usage)

    @property
    def output_tokens(self) -> int:
        told = self._usage.output_tokens or 0
        if self.finished:
            return told
        seen = -(-(self._bytes + self._thought) // BYTES_PER_TOKEN)
        return max(told, min(seen, self._most_output))

    def at_most(self, output_tokens: int) -> Consumption:
        """Return the consumption if the answer grows to so many tokens."""
        used = self.consumption
        return replace(used, usage=replace(used.usage, output_tokens=max(used.usage.output_tokens, output_tokens)))

    @property
    def consumption(self) -> Consumption:
        usage = _summed(self._usage)
        if not self.finished:
            prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
            more = budget.searched(prompt, self._searches) - prompt
            usage = replace(
                usage,
                input_tokens=usage.input_tokens + more,
                output_tokens=max(usage.output_tokens, self.output_tokens),
            )
        tools = self._usage.server_tool_use
        creation, place = self._usage.cache_creation, self._usage.inference_geo
        written = usage.cache_write_tokens if self._cached_long else 0
        return Consumption(
            usage,
            cache_write_long=(creation.ephemeral_1h_input_tokens or 0) if creation else written,
            web_searches=max((tools.web_search_requests or 0) if tools else 0, 0 if self.finished else self._searches),
            in_the_us=self._in_the_us if place is None else place == "us",
        )

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        try:
            event = _events.decode(line[5:])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if event.delta is not None:
            self._delta(event.delta)
        if (block := event.content_block) is not None:
            self._bytes += _decoded(block.data)
            if block.type == "web_search_tool_result":
                self._searches += 1
                self.price_changes += 1
        if event.type == "message_start" and event.message and event.message.usage:
            self._usage, self.began = event.message.usage, _states_input(event.message.usage)
            self.price_changes += 1
        elif event.type == "message_delta" and event.usage:
            self._usage = _merged(self._usage, event.usage)
            self.began = _states_input(self._usage)
            self.finished = self.began and (event.delta is None or event.delta.stop_reason is not None)

    def _delta(self, delta: _Delta) -> None:
        self._bytes += _size(delta.text) + _size(delta.partial_json)
        self._thought += _size(delta.thinking) + (delta.estimated_tokens or 0) * BYTES_PER_TOKEN
        if delta.signature:
            self._bytes += max(self._thought, _decoded(delta.signature))
            self._thought = 0


def _states_input(usage: _Usage) -> bool:
    """Tell whether it says what the input costs: no request has none, so the estimate counts instead of zeros."""
    found = _summed(usage)
    return found.input_tokens + found.cache_read_tokens + found.cache_write_tokens > 0


def _size(text: str | None) -> int:
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _decoded(base64: str | None) -> int:
    return len(base64) * 3 // 4 if base64 else 0


def _merged(start: _Usage, end: _Usage) -> _Usage:
    """Prefer the last count, and keep the first one's value for kinds that the last leaves out."""
    return _Usage(**{name: getattr(end, name) or getattr(start, name) for name in _Usage.__struct_fields__})


def _summed(usage: _Usage) -> TokenUsage:
    """Take the larger count of each kind: the top level's, or that of all passes together."""
    passes = sum(map(_plain, usage.iterations or ()), TokenUsage())
    return TokenUsage(*map(max, astuple(_plain(usage)), astuple(passes)))


def _plain(tokens: _Tokens) -> TokenUsage:
    return TokenUsage(
        tokens.input_tokens or 0,
        tokens.output_tokens or 0,
        tokens.cache_read_input_tokens or 0,
        tokens.cache_creation_input_tokens or 0,
    )
