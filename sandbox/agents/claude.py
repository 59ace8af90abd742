"""Claude Code as an agent: its command line, environment and stdin messages. Nobody else knows its flags."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from typing import Any

from sandbox.agents.base import AgentRun, Decoder, context_folder, instructions_path
from sandbox.agents.claude_lines import slim
from sandbox.agents.claude_stream import ClaudeDecoder
from sandbox.agents.events import SPAWNING
from sandbox.primitives import Layout

PERMISSION_MODES = {"auto": "bypassPermissions", "ask": "default", "plan": "plan"}
UNFIT_TOOLS = (
    "EnterWorktree",  # the work must stay in the one work tree that is collected
    "ExitWorktree",
    "CronCreate",  # nothing runs after the turn
    "CronDelete",
    "CronList",
    "ScheduleWakeup",
    "Workflow",  # starts dozens of agents that we cannot count
    "ListAgents",  # there are no other sessions and no background agents
    "SendMessage",
    "Skill",  # the program's own are switched off, and the repository's are not read
    "ReportFindings",  # reviews use our schema
    "Bash(git push *)",  # the host pushes; inside there is neither a remote nor a credential
)
SETTINGS: dict[str, Any] = {"attribution": {"commit": "", "pr": ""}, "includeCoAuthoredBy": False}
LEAST_BUDGET_USD = 0.01


class Claude:
    gateway_variable = "ANTHROPIC_BASE_URL"
    gateway_path = "/gateway/anthropic"
    final_type = "result"

    def argv(self, run: AgentRun, layout: Layout) -> list[str]:
        """Build the command line. The prompt comes on stdin."""
        flags = [layout.agent, "-p"]
        flags += ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        # A rule that asks holds in every mode: the host decides on each sub-agent even if everything else is allowed.
        asks = {"permissions": {"ask": sorted(SPAWNING)}} if run.subagents is not None else {}
        flags += ["--setting-sources", "", "--strict-mcp-config", "--settings", json.dumps({**SETTINGS, **asks})]
        flags += ["--permission-prompt-tool", "stdio", "--permission-mode", PERMISSION_MODES[run.permission]]
        flags += ["--model", _plain(run.model)]
        if run.budget_usd is not None:
            flags += ["--max-budget-usd", f"{max(run.budget_usd, LEAST_BUDGET_USD):.4f}"]
        flags += ["--system-prompt-snapshot", "off"]  # a resumed session must not keep the old rules
        flags += ["--resume" if run.resume else "--session-id", _plain(run.agent_session_id)]
        if run.max_turns is not None:
            flags += ["--max-turns", str(run.max_turns)]
        if run.instructions:
            flags += ["--append-system-prompt-file", instructions_path(layout, run.turn, run.attempt)]
        if run.beside:
            flags += ["--add-dir", context_folder(layout, run.turn, run.attempt)]
        if run.schema is not None:
            flags += ["--json-schema", json.dumps(run.schema)]
        if run.allowed_tools:
            flags += ["--allowedTools", *map(_plain, run.allowed_tools)]
        unfit: tuple[str, ...] = UNFIT_TOOLS
        if run.subagents is not None and run.subagents.most < 1:
            unfit += tuple(sorted(SPAWNING))
        return [*flags, "--disallowedTools", *map(_plain, (*unfit, *run.denied_tools))]

    def environment(self, run: AgentRun, layout: Layout) -> dict[str, str]:
        at_once = run.subagents.at_once if run.subagents is not None else 0
        return {
            **({"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": str(at_once)} if at_once else {}),
            "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH": "1",  # a sub-agent starts none
            "CLAUDE_CODE_DISABLE_WORKFLOWS": "1",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
            "HOME": layout.home,
            "ANTHROPIC_API_KEY": run.token,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": run.model,  # for small side questions too: the token allows one model
            "DISABLE_UPDATES": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
            "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",  # the rules come from the base branch, in our own file
            "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",  # they would quote branch and commit subjects unchecked
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # notes to itself that nobody has seen
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000",
            "PYTHONDONTWRITEBYTECODE": "1",  # bytecode beside the code would count as work unless a rule ignores it
            "IS_SANDBOX": "1",  # without it, bypassPermissions is refused if the environment's user is root
        }

    def message(self, text: str) -> bytes:
        # `client_composed`: the program looks for no slash commands and no @files in a person's words.
        return _line({"type": "user", "message": {"role": "user", "content": text}, "client_composed": True})

    def allow(self, request_id: str, tool_input: dict[str, Any] | None = None) -> bytes:
        changed = {} if tool_input is None else {"updatedInput": tool_input}
        return _response(request_id, {"behavior": "allow", **changed})

    def deny(self, request_id: str, reason: str, *, interrupt: bool = False) -> bytes:
        interrupting = {"interrupt": True} if interrupt else {}
        return _response(request_id, {"behavior": "deny", "message": reason, **interrupting})

    def decoder(self) -> Decoder:
        return ClaudeDecoder()

    def slim(self, line: bytes, cap: int) -> str:
        return slim(line, cap)

    def transcript_path(self, layout: Layout, agent_session_id: str) -> str:
        if "/" in agent_session_id:
            raise ValueError("a session id is no path")
        folder = re.sub(r"[^A-Za-z0-9]", "-", layout.work)
        return posixpath.join(layout.home, ".claude/projects", folder, f"{_plain(agent_session_id)}.jsonl")

    def own_paths(self, layout: Layout) -> Sequence[str]:
        return [posixpath.join(layout.home, name) for name in (".claude", ".claude.json")]


def _response(request_id: str, answer: dict[str, Any]) -> bytes:
    response = {"subtype": "success", "request_id": request_id, "response": answer}
    return _line({"type": "control_response", "response": response})


def _line(document: dict[str, Any]) -> bytes:
    """Encode in ASCII, so that any text stays one line and half a surrogate pair does no harm."""
    return json.dumps(document).encode() + b"\n"


def _plain(value: str) -> str:
    """Return the value if the agent's program cannot take it for a flag."""
    if not value or value.startswith("-") or "\0" in value:
        raise ValueError(f"{value!r} cannot be an argument of the agent")
    return value
