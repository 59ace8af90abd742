"""The lines of Claude Code's stream-json output that mean something to us, as types; read fast, or with repairs."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from sandbox.agents.text import storable

MAX_REPAIRS = 64
MAX_DIGITS = 18


class Text(msgspec.Struct, tag="text", omit_defaults=True):
    text: str = ""


class ToolUse(msgspec.Struct, tag="tool_use", omit_defaults=True):
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


Block = Text | ToolUse | ToolResult | Thinking | RedactedThinking | Image


class Message(msgspec.Struct, omit_defaults=True):
    content: str | list[Block] = ""


class TaskRef(msgspec.Struct, omit_defaults=True):
    id: str = ""


class TaskResult(msgspec.Struct, omit_defaults=True):
    task: TaskRef | None = None


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


class Assistant(msgspec.Struct, tag="assistant", omit_defaults=True):
    message: Message = msgspec.field(default_factory=Message)
    parent_tool_use_id: str | None = None
    error: str | None = None


class User(msgspec.Struct, tag="user", omit_defaults=True):
    message: Message = msgspec.field(default_factory=Message)
    parent_tool_use_id: str | None = None
    tool_use_result: TaskResult | str | list[Any] | None = None


class Result(msgspec.Struct, tag="result", omit_defaults=True):
    subtype: str = ""
    is_error: bool | None = None
    result: str | None = None
    errors: list[str] = []
    terminal_reason: str | None = None
    num_turns: int = 0
    api_error_status: int | None = None
    structured_output: dict[str, Any] | None = None


class Question(msgspec.Struct, omit_defaults=True):
    subtype: str = ""
    tool_name: str = ""
    input: dict[str, Any] = {}


class ControlRequest(msgspec.Struct, tag="control_request", omit_defaults=True):
    request_id: str = ""
    request: Question = msgspec.field(default_factory=Question)


class StreamEvent(msgspec.Struct, tag="stream_event", omit_defaults=True):
    pass


class ToolProgress(msgspec.Struct, tag="tool_progress", omit_defaults=True):
    pass


class Other(msgspec.Struct, omit_defaults=True):
    """Any other type: new ones come with every release."""

    type: str


Known = System | Assistant | User | Result | ControlRequest | StreamEvent | ToolProgress
Line = Known | Other

_fast: msgspec.json.Decoder[Known] = msgspec.json.Decoder(Known)
_typed = msgspec.json.Decoder(Other)
_PATH = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


class UnreadableLine(Exception):
    """Not one JSON object with a type; the text says what it is instead."""


def is_strict(line: str) -> bool:
    """Valid JSON, and an object with a type."""
    try:
        _typed.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
    return True


def parse(line: str) -> Line:
    """The line's meaning; what is missing, unknown or of a wrong type in it is left out."""
    if "\\u0000" not in line:
        try:
            return _fast.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass
    return meaning(loose(line))


def loose(line: str) -> dict[str, Any]:
    """The JSON object of a line, every string in it storable and every number of a common size."""
    try:
        found = json.loads(line, parse_int=_whole, parse_float=_real, parse_constant=lambda _: None)
        found = _storable(found)
    except ValueError:
        raise UnreadableLine("not JSON") from None
    except RecursionError:
        raise UnreadableLine("nested too deeply") from None
    if not isinstance(found, dict):
        raise UnreadableLine("not an object")
    return found


def meaning(document: dict[str, Any]) -> Line:
    """Takes away, piece by piece, what does not fit (changes `document`)."""
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
    """Remove what the complaint points at; False when it is the line itself."""
    path = _PATH.search(complaint)
    steps: list[str | int] = []
    for name, index in _STEP.findall(path.group(1) if path else ""):
        if index == "...":
            break  # inside a free-form mapping: the whole of it goes
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


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_DIGITS else None


def _real(digits: str) -> float | None:
    value = float(digits)
    return value if abs(value) < 1e18 else None


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): _storable(item) for key, item in value.items()}
    return value
