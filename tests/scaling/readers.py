"""Every pure function of ours that reads text of others, as a function of that text alone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from bot import commands, survey
from bot.agent import diffs, findings, folder_rules, material
from bot.errors import BadRepoConfig, CommandError
from bot.git import large_files, submodules
from bot.git.errors import BadName
from bot.knowhow import KnowHowFile, NamedCommand, asking, packing
from bot.live import questions
from bot.outbound import neutralise, patches
from bot.outbound import prose as truncate
from bot.outbound.redact import Redactor
from bot.proposal import descriptions, push_policy, titles
from bot.proposal.titles import TitleSources
from bot.registries import DIALECTS
from bot.registries.shape import IndexPage, RegistryRefusal, RegistryRequest
from bot.registries.signing import LinkSigner
from bot.repo_config.yaml import read_entries
from bot.sessions import folders
from bot.text import blocks, markup
from bot.text.markup import shown
from bot.text.visible import as_written, visible
from bot.web.gateway import model_request
from bot.web.gateway.clients import GatewayRefusal
from bot.web.mcp import messages
from bot.web.mcp.event_stream import EventReader
from bot.web.pages import conversation, hunks, wording
from bot.web.pages.prose import prose, rendered
from sandbox.agents import base as agent_text
from sandbox.agents.claude import ClaudeDecoder
from sandbox.agents.claude_tools import edit
from sandbox.following import LineCutter
from sandbox.runner.folder_rules import touches
from tests.scaling.growth import Reader
from tests.unit.parsed import parse

SECRETS = ("correct horse battery staple", "eyJhbGciOiJIUzI1NiJ9.c2VjcmV0", "s3cr3t-value-of-a-token")
REDACTOR = Redactor(SECRETS)
MODEL = "claude-sonnet-5-5"
OURS = {"done": "It is done.", "link": "Closes #1", "verified": "All pass."}
SHOWN = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,99 +1,99 @@\n a"


def _parsed(body: str) -> object:
    with contextlib.suppress(CommandError):
        return parse(body)
    return None


def _entries(text: str) -> object:
    with contextlib.suppress(BadRepoConfig):
        return read_entries(text)
    return None


def _index(kind: str, content_type: str, text: str) -> bytes:
    dialect = DIALECTS[kind]("https://packages.example/simple/")
    page = IndexPage(dialect.address, content_type, "http://127.0.0.1:9/gateway/packages/x/", LinkSigner(b"key"))
    with contextlib.suppress(RegistryRefusal):
        return dialect.rewrite(text.encode("utf-8", "surrogatepass"), page)
    return b""


def _asked_of_registries(text: str) -> None:
    for kind in DIALECTS.values():
        with contextlib.suppress(RegistryRefusal):
            kind("https://packages.example/").target(RegistryRequest("GET", text), LinkSigner(b"key"))


def _streamed(text: str) -> str:
    """As it comes from a process: in pieces."""
    stream = REDACTOR.stream()
    return "".join(stream.feed(text[at : at + 4096]) for at in range(0, len(text), 4096)) + stream.end()


def _decoded(text: str) -> object:
    """The text as what the agent says, as the result of a tool, and raw in the place of a line."""
    decoder = ClaudeDecoder()
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}
    returned = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": text}]}}
    return [event for line in (json.dumps(said), json.dumps(returned), text) for event in decoder.feed(line)]


def _edited(text: str) -> object:
    half = len(text) // 2
    return edit("Edit", {"file_path": "a", "old_string": text[:half], "new_string": text[half:]}, "/")


def _cut(text: str) -> object:
    cutter, raw = LineCutter(0), text.encode("utf-8", "replace")
    return [line for at in range(0, len(raw), 1024) for line in cutter.feed(raw[at : at + 1024])]


def _asked(text: str) -> object:
    """A request at the model: the text as what is said, and in the place of the whole."""
    body = {
        "model": MODEL,
        "max_tokens": 1,
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
    }
    for raw in (json.dumps(body).encode(), text.encode("utf-8", "replace")):
        with contextlib.suppress(GatewayRefusal):
            model_request.read(raw, allowed=[MODEL])
    return None


def _events(text: str) -> object:
    reader, raw = EventReader(), text.encode("utf-8", "replace")
    return [data for at in range(0, len(raw), 512) for data in reader.feed(b"data:" * (at == 0) + raw[at : at + 512])]


def _described(text: str) -> object:
    tool = {"name": "a", "description": text, "inputSchema": {"type": "object", "properties": {text: {"title": text}}}}
    return messages.tools("tracker", [tool, {"name": text}], ["a"])


def _called(text: str) -> object:
    content = [{"type": "text", "text": text}, {"type": "image", "mimeType": "image/png", "data": text}]
    return messages.without(json.dumps(messages.outcome({"content": content})).encode(), SECRETS)


def _review(text: str) -> object:
    finding: dict[str, Any] = {"path": text, "line": 1, "body": text, "severity": text, "confidence": text}
    return findings.read({"summary": text, "verdict": text, "comments": [finding]})


def _submodule(text: str) -> object:
    """The text as a whole list of `.gitmodules`, as one entry of it, and as the address of that."""
    raw = text.encode("utf-8", "replace")
    for listing in (raw, b"submodule." + raw + b".path\n" + raw + b"\0"):
        submodules.named(listing)
    with contextlib.suppress(BadName):
        submodules.repository(text, "octo-org/shop", "https://github.com")
    return None


def _surveyed(name: str, before: str = "") -> Reader:
    return lambda text: survey.candidates([name], {name: before + text})


def _packed(path: str, before: str = "") -> Reader:
    return lambda text: packing.pack("x", [KnowHowFile(path, (before + text).encode("utf-8", "replace"))])


def _written_out(text: str) -> object:
    with contextlib.suppress(CommandError):
        return asking.written_out(f"/x {text}", [NamedCommand("x", "", "repository", text)], "/claude")
    return None


READERS: Mapping[str, Reader] = {
    "skill": _packed(".claude/skills/x/SKILL.md"),
    "skill, its head": _packed(".claude/skills/x/SKILL.md", "---\n"),
    "command of a repository": _written_out,
    "rules of a folder": lambda text: folder_rules.read("a/CLAUDE.md", text.encode("utf-8", "replace")),
    "folders of paths": lambda text: folders.homes([text], {*folders.CommitFolders([text])}),
    "folders in words": lambda text: folders.named_in(text, {"a/b"}, {"a"}),
    "folders in a call": lambda text: touches("a/b", {"tool_input": {"command": text}, "cwd": "/work"}, "/work"),
    "patterns of paths": lambda text: push_policy.matches("a/" * 40 + "b", text),
    "paths for a pattern": lambda text: push_policy.matches(text, "**/a/**/*b*/**/c"),
    "survey of a workflow": _surveyed(".github/workflows/ci.yml", "jobs: {a: {steps: [{run: '"),
    "survey of a workflow, as it is": _surveyed(".github/workflows/ci.yml"),
    "survey of a Makefile": _surveyed("Makefile", "test:\n"),
    "survey of a README": _surveyed("README.md", "```\n"),
    "survey of pyproject": _surveyed("pyproject.toml"),
    "survey of tox": _surveyed("tox.ini", "[testenv]\ncommands ="),
    "survey of nox": _surveyed("noxfile.py", "session.run("),
    "survey of package.json": _surveyed("package.json", '{"scripts": {"test": "'),
    "submodules": _submodule,
    "pointer of LFS": lambda text: large_files.parse(text.encode("utf-8", "replace")),
    "command parser": lambda text: _parsed(f"/claude {text}"),
    "command parser, command below": lambda text: _parsed(f"{text}\n/claude fix it"),
    "command misaddressed": lambda text: commands.misaddressed(text, app_slug="forge"),
    "command named": lambda text: commands.named(text, app_slug="forge"),
    "hidden text of data": visible,
    "hidden text of an instruction": as_written,
    "characters": blocks.shown,
    "characters spelled out": blocks.spelled_out,
    "neutraliser, words of others": neutralise.inert,
    "neutraliser, quoted": neutralise.quoted,
    "neutraliser, within a line": neutralise.line,
    "neutraliser, whole page": neutralise.whole,
    "neutraliser, code": neutralise.block,
    "neutraliser, title": neutralise.whole_plain,
    "cut to GitHub's limit": lambda text: truncate.truncate(text, max(100, len(text) * 3 // 4)),
    "cut of a title": truncate.title,
    "redactor": REDACTOR.redact,
    "redactor of a stream": _streamed,
    "words in backticks": shown,
    "words as code": lambda text: markup.code(text, "text"),
    "page prose": prose,
    "page prose, however long": rendered,
    "page wording": lambda text: wording.ticked(text) + wording.linked(Markup.escape(text)),
    "page of an edit": lambda text: conversation.changes({"old_string": text[::2], "new_string": text[1::2]}),
    "pull request template": lambda text: descriptions.fill_template(text, OURS),
    "pull request template, a line that waits": lambda text: descriptions.fill_template(
        f"# Issue\nFixes #{text}!", OURS
    ),
    "diff": diffs.parse,
    "diff, redacted": lambda text: patches.redacted(REDACTOR, SHOWN + text),
    "diff, for the page": lambda text: hunks.shown(SHOWN + text, []),
    "diff, behind a header": lambda text: diffs.parse(SHOWN + text),
    "suggestions": lambda text: diffs.suggestions_for(
        SHOWN + text, {one.path or "": one for one in diffs.parse(SHOWN)}
    ),
    "repository's config": _entries,
    "stream of events of an MCP server": _events,
    "tools of an MCP server": _described,
    "result of an MCP tool": _called,
    "index of npm": lambda text: _index("npm", "application/json", text),
    "index of PyPI as HTML": lambda text: _index("pypi", "text/html", text),
    "index of PyPI as JSON": lambda text: _index("pypi", "application/json", text),
    "index of Cargo": lambda text: _index("cargo", "application/json", text),
    "path at a registry": _asked_of_registries,
    "stream decoder": _decoded,
    "stream decoder, an edit": _edited,
    "stream's lines": _cut,
    "what a program printed": agent_text.clean,
    "request at the model": _asked,
    "review": _review,
    "answers to discussions": material.answers_to_discussions,
    "ticked boxes": lambda text: questions.newly("", text),
    "title of a pull request": lambda text: titles.title(TitleSources(*titles.parted(text), text, text), 72),
}
