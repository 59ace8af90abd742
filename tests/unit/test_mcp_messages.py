"""What of MCP passes in both directions, and how the config opens it. Pure."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from bot import repo_config
from bot.errors import BadRepoConfig
from bot.repo_config.mcp import McpOpening
from bot.web.mcp import messages
from bot.web.mcp.event_stream import EventReader
from bot.web.mcp.messages import McpRefused, Nonsense
from sandbox.agents.base import AgentRun, ToolServers
from sandbox.agents.claude import Claude
from sandbox.primitives import Layout

STREAM = (
    b': hi\n\nevent: message\r\nid: 1\r\ndata: {"a":\r\ndata: 1}\r\n\r\ndata:\n\ndata: [2]\r\rretry: 5\n\ndata: half'
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_however_they_come(size: int) -> None:
    reader = EventReader()
    found = [data for at in range(0, len(STREAM), size) for data in reader.feed(STREAM[at : at + size])]
    assert found == [b'{"a":\n1}', b"[2]"]


def test_only_data_passes_from_a_result() -> None:
    picture = base64.b64encode(b"picture").decode()
    found = messages.outcome(
        {
            "_meta": {"x": 1},
            "content": [
                {"type": "text", "text": "a", "annotations": {"audience": ["user"]}},
                {"type": "image", "data": picture, "mimeType": "image/png"},
                {"type": "image", "data": "no base64", "mimeType": "image/png"},
                {"type": "resource_link", "uri": "file:///etc/passwd", "name": "n"},
                {"type": "resource", "resource": {"uri": "x", "text": "b"}},
                {"type": "other"},
                "nothing",
            ],
            "isError": "yes",
        }
    )
    odd = {"type": "text", "text": "[a part of a kind that is not passed on]"}
    assert found == {
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": picture, "mimeType": "image/png"},
            odd,
            {"type": "text", "text": "[a link to file:///etc/passwd]"},
            {"type": "text", "text": "b"},
            odd,
            odd,
        ]
    }
    with pytest.raises(Nonsense):
        messages.outcome({"content": "text"})


def test_a_schema_is_bounded_and_plain() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50):
        deep = {"properties": {"a": deep}}
    listed = [
        {
            "name": "a",
            "inputSchema": {"type": "object", **deep, "title": "x\u202ey\x1b[2J"},
            "description": "\u200bw" * 9000,
        },
        {"name": "b", "inputSchema": {"type": "object", "properties": {f"p{n}": {"d": "x" * 999} for n in range(99)}}},
        {"name": "a", "description": "a second one"},
        {"name": "c", "inputSchema": {"type": "string"}},
        {"name": "never opened"},
    ]
    a, b, c = messages.tools("s", listed, ["a", "b", "c", "not there"])
    assert a["inputSchema"]["title"] == "xy" and len(str(a["inputSchema"])) < 1000 and len(a["description"]) < 2100
    assert b["inputSchema"] == c["inputSchema"] == {"type": "object"} and "too long to be listed" in b["description"]


def test_an_answer_is_one_to_our_request() -> None:
    ours = {"jsonrpc": "2.0", "id": 3}
    assert messages.answered({**ours, "result": {"a": 1}}, 3) == {"a": 1}
    assert messages.answered({"jsonrpc": "2.0", "method": "ping", "id": 3}, 3) is None
    for error in (
        {**ours, "error": {"message": "no\nway"}},
        {"jsonrpc": "2.0", "id": None, "error": {"message": "no way"}},
    ):
        with pytest.raises(McpRefused, match="no way"):
            messages.answered(error, 3)
    nonsense: Any
    for nonsense in ([], {}, ours, {**ours, "id": "3", "result": {}}, {**ours, "id": True, "result": {}}):
        with pytest.raises(Nonsense):
            messages.answered(nonsense, 1 if nonsense == {**ours, "id": True, "result": {}} else 3)


def test_secrets_are_hidden_in_every_form_that_json_gives_them() -> None:
    secret = 'pass"word\\é'
    body = messages.without(json.dumps({"result": f"it is {secret}!", "other": "a"}).encode(), [secret, "a"])
    assert b"[redacted]!" in body and b"pass" not in body and b'"other": "a"' in body


MISTAKES = {
    "mcp: [a]": "must hold servers",
    "mcp: {A: {tools: [a]}}": "must name servers",
    "mcp: {a: {}}": "must hold servers",
    "mcp: {a: {tools: []}}": "must name 1 to 100 tools",
    "mcp: {a: {tools: ['*']}}": "there is no `*`",
    "mcp: {a: {tools: [x], permission: no}}": "ask or allow",
    "mcp: {a: {tools: [x], command: y}}": "must hold servers",
    'mcp: {a: {command: "a\\nb"}}': "one line",
    'mcp: {a: {command: "run ${HOME}"}}': "as `$NAME`",
    "mcp: {a: {command: ''}}": "one line",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_the_config_is_a_sentence(text: str) -> None:
    with pytest.raises(BadRepoConfig, match="`mcp`") as refused:
        repo_config.parse(text)
    assert MISTAKES[text] in str(refused.value)


def test_the_config_opens_tools_by_name() -> None:
    config = repo_config.parse(
        "mcp:\n  a: {tools: x, permission: ask}\n  b: {tools: [y, z, y]}\n  c: {command: run me}\n"
    )
    assert config.mcp == (
        McpOpening("a", ("x",), "ask"),
        McpOpening("b", ("y", "z")),
        McpOpening("c", command="run me"),
    )
    assert repo_config.load(repo_config.dump(config)) == config


def test_no_token_stands_in_the_arguments_of_the_agents_program() -> None:
    layout = Layout(home="/h", work="/w", out="/o", runner="/r", agent="/claude", python="/p", git="/g")
    run = AgentRun(
        turn=1,
        prompt="p",
        model="m",
        token="fht_secret",
        agent_session_id="s",
        resume=False,
        max_turns=None,
        budget_usd=None,
        timeout_seconds=1.0,
        instructions="",
        servers=ToolServers(("tracker",), {"docs": "run"}, ("mcp__tracker__a",)),
    )
    argv, environment = " ".join(Claude().argv(run, layout)), Claude().environment(run, layout)
    assert "fht_secret" not in argv and "--strict-mcp-config" in argv and '"ask": ["mcp__tracker__a"]' in argv
    assert environment["FORGEHAND_MCP_TOKEN"] == "fht_secret"
