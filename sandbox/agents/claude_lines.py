"""Types the lines of Claude Code's stream-json output that we use, and shortens lines that are too long to store."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from sandbox.agents.base import shorten, storable

MAX_REPAIRS = 64
MAX_DIGITS = 18


class ClaudeText(msgspec.Struct, tag="text", omit_defaults=True):
    text: str = ""


class ClaudeToolUse(msgspec.Struct, tag="tool_use", omit_defaults=True):
    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}


class ToolResult(msgspec.Struct, tag="tool_result", omit_defaults=True):
    tool_use_id: str = ""
    content: str | list[Any] | None = None
    is_error: bool | None = None


class Thinking(msgspec.Struct, tag="thinking", omit_defaults=True):
    pass


class RedactedThinking(msgspec.Struct, tag="redacted_thinking", omit_defaults=True):
    pass


class Image(msgspec.Struct, tag="image", omit_defaults=True):
    pass


Block = ClaudeText | ClaudeToolUse | ToolResult | Thinking | RedactedThinking | Image


class ClaudeUsage(msgspec.Struct, omit_defaults=True):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class ClaudeMessage(msgspec.Struct, omit_defaults=True):
    content: str | list[Block] = ""
    model: str = ""
    usage: ClaudeUsage | None = None


class TaskRef(msgspec.Struct, omit_defaults=True):
    id: str = ""


class TaskResult(msgspec.Struct, omit_defaults=True):
    task: TaskRef | None = None


class CompactMetadata(msgspec.Struct, omit_defaults=True):
    pre_tokens: int = 0
    post_tokens: int = 0


class System(msgspec.Struct, tag="system", omit_defaults=True):
    subtype: str = ""
    session_id: str = ""
    model: str = ""
    claude_code_version: str = ""
    cwd: str = ""
    attempt: int = 0
    retry_delay_ms: float = 0.0
    error_status: int | None = None
    error: str = ""
    trigger: str = ""
    original_model: str = ""
    fallback_model: str = ""
    compact_metadata: CompactMetadata = msgspec.field(default_factory=CompactMetadata)


class Assistant(msgspec.Struct, tag="assistant", omit_defaults=True):
    message: ClaudeMessage = msgspec.field(default_factory=ClaudeMessage)
    parent_tool_use_id: str | None = None
    error: str | None = None


class ClaudeUser(msgspec.Struct, tag="user", omit_defaults=True):
    message: ClaudeMessage = msgspec.field(default_factory=ClaudeMessage)
    parent_tool_use_id: str | None = None
    tool_use_result: TaskResult | str | list[Any] | None = None


class ClaudeResult(msgspec.Struct, tag="result", omit_defaults=True):
    subtype: str = ""
    is_error: bool | None = None
    result: str | None = None
    errors: list[str] = []
    terminal_reason: str | None = None
    num_turns: int = 0
    api_error_status: int | None = None
    structured_output: dict[str, Any] | None = None


class ClaudeQuestion(msgspec.Struct, omit_defaults=True):
    subtype: str = ""
    tool_name: str = ""
    input: dict[str, Any] = {}


class ControlRequest(msgspec.Struct, tag="control_request", omit_defaults=True):
    request_id: str = ""
    request: ClaudeQuestion = msgspec.field(default_factory=ClaudeQuestion)


class SideAnswer(msgspec.Struct, omit_defaults=True):
    response: str | None = None
    synthetic: bool = False


class ClaudeResponse(msgspec.Struct, omit_defaults=True):
    subtype: str = ""
    request_id: str = ""
    response: SideAnswer | None = None


class ControlResponse(msgspec.Struct, tag="control_response", omit_defaults=True):
    response: ClaudeResponse = msgspec.field(default_factory=ClaudeResponse)


class StreamEvent(msgspec.Struct, tag="stream_event", omit_defaults=True):
    pass


class ToolProgress(msgspec.Struct, tag="tool_progress", omit_defaults=True):
    pass


class Other(msgspec.Struct, omit_defaults=True):
    """A line of any other type. New types come with every release."""

    type: str


Known = System | Assistant | ClaudeUser | ClaudeResult | ControlRequest | ControlResponse | StreamEvent | ToolProgress
Line = Known | Other

_fast: msgspec.json.Decoder[Known] = msgspec.json.Decoder(Known)
_typed = msgspec.json.Decoder(Other)
_PATH = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


class UnreadableLine(Exception):
    """Not one JSON object with a type; the text says what it is instead."""


def is_strict(line: str) -> bool:
    """Decide whether a line is valid JSON: an object with a type."""
    try:
        _typed.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
    return True


def parse(line: str) -> Line:
    """Return the line's meaning without the parts that are unknown or have a wrong type."""
    if "\\u0000" not in line:
        try:
            return _fast.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass
    return meaning(loose(line))


def loose(line: str) -> dict[str, Any]:
    """Return the line's JSON object with storable strings only; a number that is too large becomes None."""

    def whole(digits: str) -> int | None:
        return int(digits) if len(digits) <= MAX_DIGITS else None

    def real(digits: str) -> float | None:
        return value if abs(value := float(digits)) < 1e18 else None

    try:
        found = _storable(json.loads(line, parse_int=whole, parse_float=real, parse_constant=lambda _: None))
    except ValueError:
        raise UnreadableLine("not JSON") from None
    except RecursionError:
        raise UnreadableLine("nested too deeply") from None
    if not isinstance(found, dict):
        raise UnreadableLine("not an object")
    return found


def meaning(document: dict[str, Any]) -> Line:
    """Remove the parts that do not fit, one by one (this changes `document`)."""
    if not isinstance(document.get("type"), str):
        raise UnreadableLine("no type")
    for _ in range(MAX_REPAIRS):
        try:
            known: Known = msgspec.convert(document, Known)
            return known
        except msgspec.ValidationError as error:
            if not _cut_out(document, str(error)):
                break
    return Other(document["type"])


def _cut_out(document: dict[str, Any], complaint: str) -> bool:
    """Remove what the complaint points at; False if that is the line itself."""
    path = _PATH.search(complaint)
    steps: list[str | int] = []
    for name, index in _STEP.findall(path.group(1) if path else ""):
        if index == "...":
            break  # inside a free-form mapping: remove all of it
        steps.append(name or int(index))
    if not steps or steps == ["type"]:
        return False
    holder: Any = document
    try:
        for step in steps[:-1]:
            holder = holder[step]
        del holder[steps[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): _storable(item) for key, item in value.items()}
    return value


STEPS = ((16_000, 1000), (4000, 200), (1000, 50), (300, 20), (120, 10))
"""Longest string and longest list or mapping, tried in this order."""
RESULT_CAP = 256 << 10
"""A result and a question may always be this long, because half a structured answer, or half the input of a call that
a person allows, is of no use."""
LONG = 1 << 20
MOST_PARTS = 500_000
"""Commas and brackets in a line longer than `LONG`. Millions of tiny values take seconds to parse and a gigabyte to
hold, and no agent writes them. Long texts and images have few."""
WHOLE = (ClaudeResult, ControlRequest, ControlResponse)


def slim(line: bytes, cap: int) -> str:
    """Return the line itself if it is short and strict JSON, "" if it is unreadable, else a shorter form."""
    if len(line) > LONG and sum(map(line.count, (b",", b"[", b"{"))) > MOST_PARTS:
        return ""
    text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
    strict = is_strict(text)
    if strict and len(text) <= cap:
        return text
    try:
        parsed = parse(text)
        whole = text if strict else _encode(loose(text))
    except UnreadableLine:
        return ""
    if len(whole) <= cap:
        return whole
    return _reduced(parsed, max(cap, RESULT_CAP) if isinstance(parsed, WHOLE) else cap)


def _reduced(parsed: Line, cap: int) -> str:
    """Keep only the fields that we know, which drops copies of files, images and outputs; then shorten the rest."""
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
