from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.agents.base import AgentRun
from sandbox.agents.claude import Claude
from sandbox.primitives import Layout

LAYOUT = Layout(
    home="/home/agent",
    work="/work",
    out="/run/out",
    runner="/opt/runner",
    agent="/opt/claude",
    python="python3",
    git="git",
)
RUN = AgentRun(
    turn=3,
    prompt="--version",
    model="claude-sonnet-5-5",
    token="fht_secret",
    agent_session_id="a-b-c",
    resume=False,
    max_turns=40,
    budget_usd=2.5,
    timeout_seconds=60,
    instructions="Be brief.",
    allowed_tools=("Read", "Bash(echo *)"),
    denied_tools=("WebFetch",),
    schema={"type": "object"},
)


def value(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_flags() -> None:
    argv = Claude().argv(RUN, LAYOUT)
    assert argv[:2] == ["/opt/claude", "-p"]
    assert value(argv, "--setting-sources") == ""
    assert "--strict-mcp-config" in argv
    assert "--verbose" in argv
    assert [value(argv, flag) for flag in ("--input-format", "--output-format")] == ["stream-json", "stream-json"]
    assert value(argv, "--permission-prompt-tool") == "stdio"
    assert value(argv, "--permission-mode") == "bypassPermissions"
    assert value(argv, "--model") == "claude-sonnet-5-5"
    assert value(argv, "--max-turns") == "40"
    assert value(argv, "--max-budget-usd") == "2.5000"
    assert value(argv, "--system-prompt-snapshot") == "off"
    assert value(argv, "--session-id") == "a-b-c"
    assert value(argv, "--append-system-prompt-file") == "/run/out/turn-3/instructions.md"
    assert value(argv, "--json-schema") == '{"type": "object"}'
    assert json.loads(value(argv, "--settings")) == {
        "attribution": {"commit": "", "pr": ""},
        "includeCoAuthoredBy": False,
        "disableSkillShellExecution": True,
        "enabledPlugins": {"cc-plugin-plugin-authoring@builtin": False},
    }
    allowed = argv.index("--allowedTools")
    assert argv[allowed + 1 : allowed + 4] == ["Read", "Bash(echo *)", "--disallowedTools"]
    assert argv[-1] == "WebFetch"
    assert "Bash(git push *)" in argv
    assert "--resume" not in argv


def test_neither_prompt_nor_token_is_an_argument_or_shown() -> None:
    argv = Claude().argv(RUN, LAYOUT)
    assert "--version" not in argv
    assert not any("fht_secret" in argument for argument in argv)
    assert "fht_secret" not in repr(RUN)


def test_what_is_not_given_is_left_out() -> None:
    run = replace(RUN, resume=True, max_turns=None, instructions="", schema=None, allowed_tools=(), budget_usd=0)
    argv = Claude().argv(run, LAYOUT)
    assert value(argv, "--resume") == "a-b-c"
    assert value(argv, "--max-budget-usd") == "0.0100"
    assert "--max-budget-usd" not in Claude().argv(replace(run, budget_usd=None), LAYOUT)
    for flag in ("--session-id", "--max-turns", "--append-system-prompt-file", "--json-schema", "--allowedTools"):
        assert flag not in argv


@pytest.mark.parametrize(("permission", "mode"), [("auto", "bypassPermissions"), ("ask", "default"), ("plan", "plan")])
def test_permission_modes(permission: str, mode: str) -> None:
    assert value(Claude().argv(replace(RUN, permission=permission), LAYOUT), "--permission-mode") == mode


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, model="--dangerously"),
        replace(RUN, agent_session_id="-x"),
        replace(RUN, allowed_tools=("--mcp-config",)),
        replace(RUN, denied_tools=("",)),
    ],
)
def test_no_value_can_be_taken_for_a_flag(run: AgentRun) -> None:
    with pytest.raises(ValueError, match="cannot be an argument"):
        Claude().argv(run, LAYOUT)


def test_environment() -> None:
    environment = Claude().environment(RUN, LAYOUT)
    assert environment["ANTHROPIC_API_KEY"] == "fht_secret"
    for name in ("DISABLE_UPDATES", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"):
        assert environment[name] == "1"
    assert environment["CLAUDE_CODE_ENABLE_TODO_TOOLS"] == "1"
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"
    assert environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "32000"


@settings(deadline=None)
@given(st.text(st.characters()))
def test_a_message_is_one_line_and_keeps_its_words(words: str) -> None:
    line = Claude().message(words)
    assert line.count(b"\n") == 1
    document = json.loads(line)
    assert document["client_composed"] is True
    assert document["message"] == {"role": "user", "content": words}


def test_answers_to_questions() -> None:
    agent = Claude()
    assert json.loads(agent.allow("r"))["response"] == {
        "subtype": "success",
        "request_id": "r",
        "response": {"behavior": "allow"},
    }
    assert json.loads(agent.allow("r", {"a": 1}))["response"]["response"] == {
        "behavior": "allow",
        "updatedInput": {"a": 1},
    }
    assert json.loads(agent.deny("r", "No.", interrupt=True))["response"]["response"] == {
        "behavior": "deny",
        "message": "No.",
        "interrupt": True,
    }


def test_transcript_path() -> None:
    assert Claude().transcript_path(LAYOUT, "id") == "/home/agent/.claude/projects/-work/id.jsonl"
    with pytest.raises(ValueError, match="no path"):
        Claude().transcript_path(LAYOUT, "../../x")
