"""Claude Code as an agent: its command line, environment, stdin messages and stream. Nobody else knows its flags."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Sequence
from typing import Any

from sandbox.agents import claude_lines, claude_models, events
from sandbox.agents.base import (
    AgentRun,
    Decoder,
    ToolServers,
    clean,
    context_folder,
    first_lines,
    folder_rules_path,
    instructions_path,
    one_line,
    plugin_folder,
    shorten,
)
from sandbox.agents.claude_lines import slim
from sandbox.agents.claude_tools import Edit, TodoList, edit, title
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
    "ReportFindings",  # reviews use our schema
    "Bash(git push *)",  # the host pushes; inside there is neither a remote nor a credential
)
SKILL = "Skill"
"""The tool that reads a skill. The program's own skills are switched off."""
SETTINGS: dict[str, Any] = {
    "attribution": {"commit": "", "pr": ""},
    "includeCoAuthoredBy": False,
    "disableSkillShellExecution": True,  # reading a skill runs nothing: the agent runs commands, as any others
    "enabledPlugins": {"cc-plugin-plugin-authoring@builtin": False},  # a skill that no turn needs
}
LEAST_BUDGET_USD = 0.01
MCP_TIMES = {"MCP_TIMEOUT": "60000", "MCP_TOOL_TIMEOUT": "180000"}
"""Milliseconds; the gateway gives up earlier, and says why."""
MCP_VARIABLE = "FORGEHAND_MCP_TOKEN"
"""Holds the turn's token once more: the program does not fill in its own variable for the model's key."""
TOUCHING_TOOLS = "Read|Edit|Write|NotebookEdit|Bash|Glob|Grep"
HOOK_SECONDS = 10


class Claude:
    gateway_variable = "ANTHROPIC_BASE_URL"
    gateway_path = "/gateway/anthropic"
    final_type = "result"

    def argv(self, run: AgentRun, layout: Layout) -> list[str]:
        """Build the command line. The prompt comes on stdin."""
        flags = [layout.agent, "-p"]
        flags += ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        # A rule that asks holds in every mode: the host decides on each sub-agent even if everything else is allowed.
        asked = [*(sorted(SPAWNING) if run.subagents is not None else ()), *run.servers.asked]
        asks = {"permissions": {"ask": asked}} if asked else {}
        settings = {**SETTINGS, **asks, **_hooks(run, layout)}
        flags += ["--setting-sources", "", "--strict-mcp-config", "--settings", json.dumps(settings)]
        flags += _servers(run.servers)
        flags += ["--permission-prompt-tool", "stdio", "--permission-mode", PERMISSION_MODES[run.permission]]
        flags += [*_thinking(run), "--system-prompt-snapshot", "off"]  # a resumed session must not keep the old rules
        flags += ["--resume" if run.resume else "--session-id", _plain(run.agent_session_id)]
        if run.max_turns is not None:
            flags += ["--max-turns", str(run.max_turns)]
        if run.instructions:
            flags += ["--append-system-prompt-file", instructions_path(layout, run.turn, run.attempt)]
        if run.beside or run.folder_rules:
            flags += ["--add-dir", context_folder(layout, run.turn, run.attempt)]
        for plugin in run.plugins:
            flags += ["--plugin-dir", plugin_folder(layout, run, _plain(plugin.name))]
        if run.schema is not None:
            flags += ["--json-schema", json.dumps(run.schema)]
        if run.allowed_tools:
            flags += ["--allowedTools", *map(_plain, run.allowed_tools)]
        unfit: tuple[str, ...] = UNFIT_TOOLS if run.plugins else (*UNFIT_TOOLS, SKILL)
        if run.subagents is not None and run.subagents.most < 1:
            unfit += tuple(sorted(SPAWNING))
        return [*flags, "--disallowedTools", *map(_plain, (*unfit, *run.denied_tools))]

    def environment(self, run: AgentRun, layout: Layout) -> dict[str, str]:
        at_once = run.subagents.at_once if run.subagents is not None else 0
        return {
            **({"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": str(at_once)} if at_once else {}),
            **({"CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1"} if run.basic_api else {}),
            **({**MCP_TIMES, MCP_VARIABLE: run.token} if run.servers else {}),
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

    def question(self, request_id: str, text: str) -> bytes:
        asked = {"subtype": "side_question", "question": text}
        return _line({"type": "control_request", "request_id": request_id, "request": asked})

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


def _servers(servers: ToolServers) -> list[str]:
    """Describe the servers without any value: the program fills in its own variables."""
    headers = {"Authorization": f"Bearer ${{{MCP_VARIABLE}}}"}
    far = {
        name: {"type": "http", "url": f"${{ANTHROPIC_BASE_URL}}/mcp/{name}", "headers": headers}
        for name in servers.named
    }
    near = {name: {"command": "sh", "args": ["-c", words]} for name, words in servers.programs.items()}
    return ["--mcp-config", json.dumps({"mcpServers": {**near, **far}})] if servers else []


def _thinking(run: AgentRun) -> list[str]:
    """Choose who thinks, how hard, and how much of it."""
    flags = ["--model", _plain(run.model)]
    if run.fallback is not None:
        flags += ["--fallback-model", _plain(run.fallback)]
    if run.effort is not None:
        flags += ["--effort", _plain(run.effort)]
    if run.budget_usd is not None:
        flags += ["--max-budget-usd", f"{max(run.budget_usd, LEAST_BUDGET_USD):.4f}"]
    if run.task_tokens is not None:
        flags += ["--task-budget", str(run.task_tokens)]
    return flags


def _hooks(run: AgentRun, layout: Layout) -> dict[str, Any]:
    """Let the program run our script after its calls. The program itself would read rules from the work tree."""
    if not run.folder_rules:
        return {}
    script, rules = posixpath.join(layout.runner, "folder_rules.py"), folder_rules_path(layout, run.turn, run.attempt)
    command = shlex.join([layout.python, "-I", "-S", "-B", script, rules])
    hook = [{"type": "command", "command": command, "timeout": HOOK_SECONDS}]
    return {"hooks": {"PostToolUse": [{"matcher": TOUCHING_TOOLS, "hooks": hook}], "PreCompact": [{"hooks": hook}]}}


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


MAX_COUNT = 10**9
MOST_NAME = 120  # of a tool; one of an MCP server names both
MOST_LINES, MOST_TEXT = 200, 8000  # of a tool's result, on pages with room for it
MAX_OPEN_EDITS = 200
MAX_OPEN_SPAWNS = 1000
TOO_MANY_AT_ONCE = "Concurrent subagent limit reached"
REASONS = {
    "aborted_tools": "aborted",
    "aborted_streaming": "aborted",
    "success": "completed",
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget_exhausted",
}


class ClaudeDecoder:
    """Decodes one run's output. An unreadable line becomes an event, never an error."""

    def __init__(self) -> None:
        self._todos = TodoList()
        self._cwd = ""
        self._edits: dict[str, Edit] = {}
        self._spawns: set[str] = set()
        self._models = claude_models.ModelWatch()

    def feed(self, line: str | bytes) -> list[events.AgentEvent]:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        text = text.lstrip("\ufeff").strip()
        if not text:
            return [events.Unreadable("empty")]
        try:
            return self._events(claude_lines.parse(text))
        except claude_lines.UnreadableLine as unreadable:
            return [events.Unreadable(str(unreadable))]

    def _events(self, line: claude_lines.Line) -> list[events.AgentEvent]:
        match line:
            case claude_lines.Assistant():
                return self._assistant(line)
            case claude_lines.ClaudeUser():
                results = (block for block in _blocks(line.message) if isinstance(block, claude_lines.ToolResult))
                found = [event for block in results for event in self._returned(block, line.tool_use_result)]
                return found or [events.AgentNoted("user")]
            case claude_lines.System():
                return [self._system(line)]
            case claude_lines.ClaudeResult():
                return [_ended(line)]
            case claude_lines.ControlRequest():
                return [self._asked(line)]
            case claude_lines.ControlResponse():
                return [_answered(line.response)]
            case claude_lines.StreamEvent() | claude_lines.ToolProgress():
                return [events.AgentNoted(str(line.__struct_config__.tag))]
            case claude_lines.Other():
                return [events.AgentNoted(one_line(line.type, 80))]

    def _system(self, line: claude_lines.System) -> events.AgentEvent:
        if line.subtype == "init":
            self._cwd = line.cwd
            self._models.begun(line.model)
            return events.SessionStarted(
                one_line(line.session_id, 80), one_line(line.model, 80), one_line(line.claude_code_version, 40)
            )
        if line.subtype == "api_retry":
            delay = min(max(line.retry_delay_ms, 0.0) / 1000, 86_400.0)
            return events.Retrying(_count(line.attempt), line.error_status, one_line(line.error, 80), delay)
        return self._models.noted(line) or events.AgentNoted(f"system/{one_line(line.subtype, 80)}")

    def _assistant(self, line: claude_lines.Assistant) -> list[events.AgentEvent]:
        if line.error:
            return [events.AgentNoted(f"api_error/{one_line(line.error, 80)}")]  # the result repeats its words
        found: list[events.AgentEvent] = []
        for block in _blocks(line.message):
            match block:
                case claude_lines.ClaudeText() if block.text.strip():
                    found.append(events.AgentSaid(clean(block.text), line.parent_tool_use_id))
                case claude_lines.ClaudeToolUse():
                    found.append(self._called(block, line.parent_tool_use_id))
        found += self._models.answered(line)
        return found or [events.AgentNoted("assistant")]

    def _called(self, block: claude_lines.ClaudeToolUse, parent: str | None) -> events.ToolCalled:
        if parent is None or block.name != "TodoWrite":  # a sub-agent's own list is not the turn's
            self._todos.called(block.id, block.name, block.input)
        name = one_line(block.name, MOST_NAME)
        if (change := edit(name, block.input, self._cwd)) and len(self._edits) < MAX_OPEN_EDITS:
            self._edits[block.id] = change
        if name in events.SPAWNING and len(self._spawns) < MAX_OPEN_SPAWNS:
            self._spawns.add(block.id)
        return events.ToolCalled(block.id, name, title(name, block.input, self._cwd), block.input, parent)

    def _returned(self, block: claude_lines.ToolResult, detail: Any) -> list[events.AgentEvent]:
        content = block.content or ""
        text = "\n".join(map(_part_text, content)) if isinstance(content, list) else content
        ok = not block.is_error
        found: list[events.AgentEvent] = [
            events.ToolReturned(
                block.tool_use_id, ok, first_lines(text), first_lines(text, lines=MOST_LINES, limit=MOST_TEXT)
            )
        ]
        change = self._edits.pop(block.tool_use_id, None)
        if change and ok:
            found.append(events.FileChanged(*change))
        if block.tool_use_id in self._spawns:
            self._spawns.discard(block.tool_use_id)
            if not ok and text.startswith((TOO_MANY_AT_ONCE, events.NO_MORE_SUBAGENTS)):
                found.append(events.SubagentRefused(at_once=text.startswith(TOO_MANY_AT_ONCE)))
        task = detail.task if isinstance(detail, claude_lines.TaskResult) else None
        if self._todos.returned(block.tool_use_id, ok=ok, text=text, task_id=task.id if task else ""):
            found.append(events.TodoChanged(self._todos.items))
        return found

    def _asked(self, line: claude_lines.ControlRequest) -> events.AgentEvent:
        asked = line.request
        if asked.subtype != "can_use_tool":
            return events.AgentNoted(f"control_request/{one_line(asked.subtype, 80)}")
        tool = one_line(asked.tool_name, MOST_NAME)
        return events.PermissionAsked(line.request_id, tool, title(tool, asked.input, self._cwd), asked.input)


def _blocks(message: claude_lines.ClaudeMessage) -> list[claude_lines.Block]:
    return [claude_lines.ClaudeText(message.content)] if isinstance(message.content, str) else message.content


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else f"[{one_line(str(part.get('type')), 40)}]"


def _answered(response: claude_lines.ClaudeResponse) -> events.AgentEvent:
    """Read the answer to a side question; a `synthetic` one is an error in the program's words."""
    if response.subtype == "success" and (answer := response.response) is not None and answer.response is not None:
        return events.SideAnswered(response.request_id, clean(answer.response), ok=not answer.synthetic)
    if response.subtype == "error":
        return events.SideAnswered(response.request_id, "", ok=False)
    return events.AgentNoted("control_response")


def _ended(line: claude_lines.ClaudeResult) -> events.AgentEnded:
    failed = line.subtype != "success" if line.is_error is None else line.is_error
    reason = line.terminal_reason or line.subtype or "unknown"
    return events.AgentEnded(
        ok=not failed,
        reason=one_line(REASONS.get(reason, reason), 80),
        text=clean(line.result or ""),
        errors=tuple(shorten(clean(error), 2000) for error in line.errors[:20]),
        turns=_count(line.num_turns),
        api_status=line.api_error_status,
        structured=line.structured_output,
    )


def _count(number: int) -> int:
    return min(max(number, 0), MAX_COUNT)
