"""Makes an over-long line of Claude Code's stream small enough to store, with the same events in it."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox.agents import claude_lines as lines
from sandbox.agents.text import shorten

STEPS = ((16_000, 1000), (4000, 200), (1000, 50), (300, 20), (120, 10))
"""Longest string and longest list or mapping, tried in this order."""
RESULT_CAP = 256 << 10
"""A result and a question may be this long in any case: half a structured answer, or half the input of a call that
a person allows, is of no use."""
LONG = 1 << 20
MOST_PARTS = 500_000
"""Commas and brackets in a line longer than that: what is made of millions of tiny values takes seconds to take apart
and a gigabyte to hold, and no agent writes it. Long texts and images have few."""
WHOLE = (lines.Result, lines.ControlRequest)


def slim(line: bytes, cap: int) -> str:
    """The line itself where it is short and strict JSON; "" where it cannot be read."""
    if len(line) > LONG and sum(map(line.count, (b",", b"[", b"{"))) > MOST_PARTS:
        return ""
    text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
    strict = lines.is_strict(text)
    if strict and len(text) <= cap:
        return text
    try:
        parsed = lines.parse(text)
        whole = text if strict else _encode(lines.loose(text))
    except lines.UnreadableLine:
        return ""
    if len(whole) <= cap:
        return whole
    return _reduced(parsed, max(cap, RESULT_CAP) if isinstance(parsed, WHOLE) else cap)


def _reduced(parsed: lines.Line, cap: int) -> str:
    """Only what we know of: that drops copies of whole files, of images and of a tool's output first."""
    known = msgspec.to_builtins(parsed)
    for longest, most in STEPS:
        reduced = _encode(_shorter(known, longest, most))
        if len(reduced) <= cap:
            return reduced
    return _encode({"type": shorten(known["type"], 120), "subtype": shorten(str(known.get("subtype", "")), 120)})


def _shorter(value: Any, longest: int, most: int) -> Any:
    if isinstance(value, str):
        return shorten(value, longest)
    if isinstance(value, list):
        return [_shorter(item, longest, most) for item in value[:most]]
    if isinstance(value, dict):
        return {shorten(key, longest): _shorter(value[key], longest, most) for key in list(value)[:most]}
    return value


def _encode(document: Any) -> str:
    return msgspec.json.encode(document).decode()
