"""Renders markdown roughly as GitHub does: a few harmless tags pass, other HTML is shown as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from bot.simulation.github import rendering

HARMLESS = re.compile(r"</?(?:details|summary|sub|sup|kbd|br|b|i|em|strong|code|h3)\s*/?>", re.IGNORECASE)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
TASK = re.compile(r"^\[([ xX])\] ")
MENTION = re.compile(r"(?<![\w&#/])#([1-9]\d{0,8})\b")
CODE = re.compile(r"`([^`]+)`")


class _Renderer(RendererHTML):
    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Show a suggestion as GitHub does: the old lines and the new ones."""
        if tokens[idx].info.strip() != "suggestion":
            return super().fence(tokens, idx, options, env)
        new = tokens[idx].content.removesuffix("\n").split("\n") if tokens[idx].content else []
        rows = [("del", f"-{line}") for line in env["replaced"]] + [("add", f"+{line}") for line in new]
        shown = "".join(f'<span class="{kind}">{escape(line)}\n</span>' for kind, line in rows)
        return f'<div class="suggestion"><p>Suggested change</p><pre class="diff">{shown}</pre></div>'

    def html_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _harmless(tokens[idx].content)

    def html_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _harmless(tokens[idx].content)

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return escape(f"[image: {tokens[idx].content}]")

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        content = tokens[idx].content
        task = TASK.match(content) if idx == 0 else None
        if task is None:
            return _mentions(content, env["repo"])
        checked = " checked" if task[1] != " " else ""
        env["tasks"] = number = env.get("tasks", -1) + 1
        return f'<input type="checkbox" data-task="{number}"{checked}> {_mentions(content[task.end() :], env["repo"])}'


_MARKDOWN = MarkdownIt("commonmark", {"html": True, "breaks": True}, renderer_cls=_Renderer).enable(
    ["table", "strikethrough"]
)


def to_html(text: str, repo: str, replaced: Sequence[str] = ()) -> str:
    """Render HTML that is safe in a page. `#2` links to that thread of the repository; `replaced` are the lines that a
    suggestion would replace."""
    if rendering.is_flood(text):
        return rendering.html(text)
    return str(_MARKDOWN.render(text, {"repo": repo, "replaced": replaced}))


def title(text: str) -> str:
    """Render a title: plain text, except code in backticks."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def _mentions(text: str, repo: str) -> str:
    return MENTION.sub(rf'<a href="/{escape(repo)}/issues/\1">#\1</a>', escape(text))


def _harmless(content: str) -> str:
    visible = COMMENT.sub("", content)
    parts, last = [], 0
    for tag in HARMLESS.finditer(visible):
        parts += [escape(visible[last : tag.start()]), tag[0].lower()]
        last = tag.end()
    return "".join([*parts, escape(visible[last:])])
