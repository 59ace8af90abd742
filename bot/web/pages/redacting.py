"""Redacts what strangers see a second time: since it was stored, more secrets may be known."""

from __future__ import annotations

from dataclasses import replace

from bot.outbound.redact import Redactor
from bot.store.sessions import Turn
from bot.web.pages.conversation import ConversationEntry, EntryContent
from bot.web.pages.edits import EditCall


def entry(redactor: Redactor, one: ConversationEntry, content: EntryContent) -> tuple[ConversationEntry, EntryContent]:
    redact, diff = redactor.redact, _diff(redactor, content.diff)
    body = EntryContent(redact(content.text), redact(content.result), diff)
    return replace(one, title=redact(one.title), about=redact(one.about), content=None), body


def call(redactor: Redactor, one: EditCall) -> EditCall:
    return replace(one, path=redactor.redact(one.path), diff=_diff(redactor, one.diff))


def _diff(redactor: Redactor, diff: list[tuple[str, str]]) -> list[tuple[str, str]]:
    lines = redactor.redact_lines([text for _, text in diff])
    return [(kind, text) for (kind, _), text in zip(diff, lines, strict=True)]


def turn(redactor: Redactor, one: Turn) -> Turn:
    """Redact the words that people wrote; nobody has done that before."""
    return replace(one, prompt=redactor.redact(one.prompt), detail=redactor.redact(one.detail or ""))
