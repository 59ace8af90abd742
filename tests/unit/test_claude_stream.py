from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.agents.claude import ClaudeDecoder
from sandbox.agents.claude_lines import RESULT_CAP, slim
from sandbox.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentSaid,
    PermissionAsked,
    Retrying,
    SessionStarted,
    Todo,
    TodoChanged,
    ToolCalled,
    ToolReturned,
    Unreadable,
)

STREAMS = Path(__file__).parent.parent / "data" / "streams"
RECORDED = sorted(path.name for path in STREAMS.glob("*.jsonl"))
CAP = 2000


def recorded(name: str) -> Iterator[bytes]:
    for line in (STREAMS / name).read_bytes().splitlines():
        document = json.loads(line)
        if "dir" not in document:
            yield line
        elif document["dir"] == "out" and "msg" in document:
            yield json.dumps(document["msg"]).encode()


def decode(name: str) -> list[AgentEvent]:
    decoder = ClaudeDecoder()
    return [event for line in recorded(name) for event in decoder.feed(line)]


def feed(line: str | bytes | dict[str, Any]) -> list[Any]:
    return ClaudeDecoder().feed(json.dumps(line) if isinstance(line, dict) else line)


def only(events: list[AgentEvent], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def shape(event: AgentEvent) -> tuple[object, ...]:
    """What must stay when texts are shortened."""
    if isinstance(event, ToolCalled):
        return (ToolCalled, event.id, event.name, event.parent)
    if isinstance(event, ToolReturned):
        return (ToolReturned, event.id, event.ok)
    if isinstance(event, TodoChanged):
        return (TodoChanged, event.items)
    if isinstance(event, AgentEnded):
        return (AgentEnded, event.ok, event.reason, event.turns, event.api_status, event.structured)
    return (type(event),)


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_line_is_understood(name: str) -> None:
    assert not only(decode(name), Unreadable)


@pytest.mark.parametrize("name", RECORDED)
def test_slimmed_lines_are_short_and_decode_to_the_same_events(name: str) -> None:
    whole, small = ClaudeDecoder(), ClaudeDecoder()
    for line in recorded(name):
        slimmed = slim(line, CAP)
        kind = json.loads(slimmed)["type"]
        assert len(slimmed) <= (RESULT_CAP if kind in ("result", "control_request") else CAP)
        assert [shape(event) for event in whole.feed(line)] == [shape(event) for event in small.feed(slimmed)]


def test_a_whole_run() -> None:
    events = decode("fix-test.jsonl")
    assert only(events, SessionStarted) == [
        SessionStarted("29b1e92b-2ab5-4033-8259-9f91f2da202b", "claude-opus-5-5", "2.1.326")
    ]
    assert [(call.name, call.title) for call in only(events, ToolCalled)] == [
        ("Bash", "python -m pytest -q 2>&1 | tail -n 25"),
        ("Read", "cartlib/pricing.py"),
        ("Read", "tests/test_pricing.py"),
        ("Edit", "cartlib/pricing.py"),
        ("Bash", "python -m pytest -q 2>&1 | tail -n 5 && git diff --stat"),
    ]
    assert [back.ok for back in only(events, ToolReturned)] == [True] * 5
    (ended,) = only(events, AgentEnded)
    assert (ended.ok, ended.reason, ended.turns) == (True, "completed", 6)
    assert ended.text.startswith("Fixed. `total()` treated")


@pytest.mark.parametrize(
    ("name", "ok", "reason", "status"),
    [
        ("max-turns.jsonl", False, "max_turns", None),
        ("max-budget.jsonl", False, "budget_exhausted", None),
        ("no-credit.jsonl", False, "api_error", 400),
        ("invalid-api-key.jsonl", False, "api_error", 401),
        ("overloaded-forever.jsonl", False, "api_error", 529),
        ("killed-sigint.wire.jsonl", False, "aborted", None),
        ("permission-stdio-deny-interrupt.wire.jsonl", False, "aborted", None),
        ("resume-unknown.jsonl", False, "error_during_execution", None),
        ("json-schema-fails.jsonl", True, "completed", None),
    ],
)
def test_how_runs_end(name: str, ok: bool, reason: str, status: int | None) -> None:
    last = only(decode(name), AgentEnded)[-1]
    assert (last.ok, last.reason, last.api_status) == (ok, reason, status)


@pytest.mark.parametrize("name", ["killed-sigterm.wire.jsonl", "killed-sigkill.wire.jsonl"])
def test_a_killed_run_has_no_end(name: str) -> None:
    assert not only(decode(name), AgentEnded)


def test_background_work_ends_more_than_once() -> None:
    assert [(end.ok, end.text) for end in only(decode("subagents.jsonl"), AgentEnded)] == [
        (True, "Both were started; I wait for them."),
        (True, ""),
        (True, "The first helper reported."),
    ]


def test_structured_output_and_errors_in_words() -> None:
    (ended,) = only(decode("json-schema.jsonl"), AgentEnded)
    assert ended.structured["risk"] == "low"
    assert only(decode("max-turns.jsonl"), AgentEnded)[0].errors == ("Reached maximum number of turns (3)",)


def test_task_tools_make_one_list() -> None:
    changes = only(decode("long.jsonl"), TodoChanged)
    assert changes[0].items == (Todo("Survey the code base", "pending"),)
    assert [item.text for item in changes[-1].items][:2] == ["Survey the code base", "Add the currency module"]
    assert Counter(item.state for item in changes[-1].items) == {"completed": 5}


def test_todo_write_gives_the_whole_list() -> None:
    changes = only(decode("todowrite.jsonl"), TodoChanged)
    assert len(changes) == 2
    assert {item.state for item in changes[-1].items} == {"completed"}


def test_tasks_are_matched_by_results_in_any_order() -> None:
    decoder = ClaudeDecoder()
    for call, subject in (("a", "first"), ("b", "second")):
        block = {"type": "tool_use", "id": call, "name": "TaskCreate", "input": {"subject": subject}}
        decoder.feed(json.dumps({"type": "assistant", "message": {"content": [block]}}))
    for call, number in (("b", 2), ("a", 1)):
        block = {"type": "tool_result", "tool_use_id": call, "content": f"Task #{number} created successfully: x"}
        events = decoder.feed(json.dumps({"type": "user", "message": {"content": [block]}}))
    assert events[-1] == TodoChanged((Todo("second", "pending"), Todo("first", "pending")))
    update = {"type": "tool_use", "id": "c", "name": "TaskUpdate", "input": {"taskId": "2", "status": "in_progress"}}
    decoder.feed(json.dumps({"type": "assistant", "message": {"content": [update]}}))
    refused = {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "no"}
    assert only(decoder.feed(json.dumps({"type": "user", "message": {"content": [refused]}})), TodoChanged) == []


def test_permission_questions() -> None:
    asked = only(decode("permission-stdio.wire.jsonl"), PermissionAsked)
    assert [(one.tool, one.title) for one in asked] == [
        ("Bash", "mkdir -p build && touch build/x && rm -r build && echo cleaned"),
        ("Bash", "git push origin HEAD:main"),
    ]
    assert asked[1].request_id == "4a7a325d-cf1c-4194-a314-bf6b9a37472b"
    assert only(decode("question-stdio.wire.jsonl"), PermissionAsked)[0].title == "Which database should I use?"


def test_retries() -> None:
    assert only(decode("retry.jsonl"), Retrying)[0] == Retrying(1, 529, "overloaded", 0.604)
    assert only(decode("retry.jsonl"), Retrying)[-1].status is None


def test_sub_agents_are_told_apart() -> None:
    parents = {call.parent for call in only(decode("subagents-foreground.jsonl"), ToolCalled)}
    assert None in parents
    assert len(parents) > 1


@pytest.mark.acceptance("D01")
@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "npm warn something",
        '{"type":"assistant"',
        '{"type":"x"}{"type":"y"}',
        "[1]",
        "null",
        "7",
        '"text"',
        "{}",
        '{"type":7}',
        b"\xff\xfe\x00",
        "[" * 100_000,
        '{"type":"assistant","a":' + "[" * 100_000,
    ],
)
def test_what_is_no_line_of_the_protocol_is_counted(line: str | bytes) -> None:
    (event,) = feed(line)
    assert isinstance(event, Unreadable)
    assert slim(line if isinstance(line, bytes) else line.encode(), CAP) == ""


@pytest.mark.acceptance("D01")
def test_bom_and_crlf_are_no_obstacle() -> None:
    assert feed(b'\xef\xbb\xbf{"type":"tool_progress"}\r\n') == [AgentNoted("tool_progress")]


@pytest.mark.acceptance("D03")
def test_broken_text_is_replaced() -> None:
    line = rb'{"type":"assistant","message":{"content":[{"type":"text","text":"a\ud800b\u0000c' + b'\xff"}]}}'
    (said,) = feed(line)
    assert said == AgentSaid("a\ufffdb\ufffdc\ufffd")
    json.loads(slim(line, CAP)).__repr__().encode()
    (called,) = feed(
        r'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"i","name":"Bash",'
        r'"input":{"command":"x\u0000y","\ud83d":["\u0000"]}}]}}'
    )
    assert called.input == {"command": "x\ufffdy", "\ufffd": ["\ufffd"]}


@pytest.mark.acceptance("D04")
@pytest.mark.parametrize(
    ("line", "event"),
    [
        ({"type": "brand_new", "x": 1}, AgentNoted("brand_new")),
        ({"type": "system"}, AgentNoted("system/")),
        ({"type": "system", "subtype": "init"}, SessionStarted("", "", "")),
        ({"type": "system", "subtype": "init", "session_id": 7, "model": None}, SessionStarted("", "", "")),
        ({"type": "assistant"}, AgentNoted("assistant")),
        ({"type": "assistant", "message": 7}, AgentNoted("assistant")),
        ({"type": "assistant", "message": {"content": [{"type": "new_block"}, 7, None]}}, AgentNoted("assistant")),
        ({"type": "assistant", "message": {"content": [7, {"type": "text", "text": "hi"}]}}, AgentSaid("hi")),
        ({"type": "user", "message": {"content": "replayed"}}, AgentNoted("user")),
        (
            {
                "type": "user",
                "tool_use_result": 7,
                "message": {"content": [{"type": "tool_result", "tool_use_id": "i", "content": 9}]},
            },
            ToolReturned("i", True, ""),
        ),
        (
            {"type": "control_request", "request": {"subtype": "hook_callback"}},
            AgentNoted("control_request/hook_callback"),
        ),
        ({"type": "result"}, AgentEnded(False, "unknown", "")),
        (
            {"type": "result", "subtype": "success", "result": "ok", "num_turns": -4, "errors": 3},
            AgentEnded(True, "completed", "ok"),
        ),
    ],
)
def test_missing_unknown_and_mistyped_parts_are_left_out(line: dict[str, Any], event: AgentEvent) -> None:
    assert feed(line) == [event]


@pytest.mark.acceptance("D04")
def test_numbers_of_any_size() -> None:
    huge = "9" * 5000
    line = (
        '{"type":"result","is_error":false,"subtype":"success","total_cost_usd":NaN,"x":1e999,"num_turns":' + huge + "}"
    )
    assert feed(line) == [AgentEnded(True, "completed", "")]
    assert feed('{"type":"result","is_error":false,"num_turns":1000000000000000}')[0] == AgentEnded(
        True, "unknown", "", turns=10**9
    )
    (retry,) = feed('{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":-Infinity}')
    assert retry == Retrying(1, None, "", 0.0)


@pytest.mark.acceptance("D05")
def test_terminal_codes_do_not_reach_people() -> None:
    block = {
        "type": "tool_result",
        "tool_use_id": "i",
        "content": "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07\x07 10%\r100%",
    }
    (back,) = feed({"type": "user", "message": {"content": [block]}})
    assert back.summary == "100%"
    call = {
        "type": "tool_use",
        "id": "i",
        "name": "Bash",
        "input": {"command": "echo \u202egnp.exe\u2066 \x1b]0;t\x07\n second"},
    }
    (called,) = feed({"type": "assistant", "message": {"content": [call]}})
    assert called.title == "echo gnp.exe second"


@pytest.mark.acceptance("D02")
def test_a_line_of_many_megabytes_becomes_small() -> None:
    block = {"type": "tool_result", "tool_use_id": "i", "content": "The file was updated. " + "x" * 100_000}
    line = {
        "type": "user",
        "message": {"content": [block]},
        "tool_use_result": {"originalFile": "y" * 12_000_000, "task": {"id": "4"}},
    }
    slimmed = slim(json.dumps(line).encode(), 16 << 10)
    assert len(slimmed) <= 16 << 10
    assert json.loads(slimmed)["tool_use_result"] == {"task": {"id": "4"}}
    (back,) = feed(slimmed)
    assert (back.id, back.summary[:21]) == ("i", "The file was updated.")


def test_a_structured_answer_stays_whole() -> None:
    comments = [{"path": f"src/{one}.py", "line": one, "body": "words " * 50} for one in range(200)]
    line = {"type": "result", "is_error": False, "structured_output": {"verdict": "comment", "comments": comments}}
    (ended,) = feed(slim(json.dumps(line).encode(), CAP))
    assert ended.structured == line["structured_output"]


KEYS = st.sampled_from(["type", "id", "name", "input", "text", "content", "task", "todos", "status"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(), inner, max_size=5),
    max_leaves=12,
)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "image", "?"])},
    optional={
        "id": values,
        "name": st.sampled_from(["Bash", "TodoWrite", "TaskCreate", "TaskUpdate"]) | values,
        "input": values,
        "text": values,
        "content": values,
        "tool_use_id": values,
        "is_error": values,
    },
)
documents = st.fixed_dictionaries(
    {"type": st.sampled_from(["system", "assistant", "user", "result", "control_request", "stream_event", "?"])},
    optional={
        "subtype": st.sampled_from(["init", "api_retry", "success"]) | values,
        "message": st.fixed_dictionaries({}, optional={"content": st.lists(blocks, max_size=4) | values}) | values,
        "request": st.fixed_dictionaries({"subtype": st.just("can_use_tool")}, optional={"input": values}) | values,
        "tool_use_result": values,
        "errors": values,
        "result": values,
        "num_turns": values,
        "is_error": values,
        "structured_output": values,
        "retry_delay_ms": values,
        "attempt": values,
        "error_status": values,
        "cwd": values,
    },
)


@settings(deadline=None)
@given(st.lists(documents.map(json.dumps) | st.text() | st.binary(), max_size=8))
def test_nothing_makes_the_decoder_raise(lines: list[str | bytes]) -> None:
    decoder = ClaudeDecoder()
    for line in lines:
        for event in decoder.feed(line):
            repr(event).encode()


@settings(deadline=None)
@given(documents, st.integers(1024, 4096))
def test_slim_is_valid_json_of_the_same_events(document: dict[str, Any], cap: int) -> None:
    line = json.dumps(document).encode()
    slimmed = slim(line, cap)
    json.loads(slimmed, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert len(slimmed) <= (RESULT_CAP if document["type"] in ("result", "control_request") else cap)
    assert [shape(event) for event in feed(slimmed)] == [shape(event) for event in feed(line)]


@settings(deadline=None)
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_slim_of_anything_is_a_line_or_nothing(data: bytes) -> None:
    slimmed = slim(data, 1024)
    assert slimmed == "" or json.loads(slimmed)["type"] is not None
