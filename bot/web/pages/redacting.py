"""Redacts what strangers see a second time: since it was stored, more secrets may be known."""

from __future__ import annotations

from dataclasses import replace

from bot.outbound.redact import Redactor
from bot.store.sessions import Turn
from bot.web.pages.conversation import ConversationEntry


def entry(redactor: Redactor, one: ConversationEntry) -> ConversationEntry:
    redact = redactor.redact
    lines = redactor.redact_lines([text for _, text in one.diff])
    diff = [(kind, text) for (kind, _), text in zip(one.diff, lines, strict=True)]
    return replace(one, title=redact(one.title), text=redact(one.text), result=redact(one.result), diff=diff)


def turn(redactor: Redactor, one: Turn) -> Turn:
    """Redact the words that people wrote; nobody has done that before."""
    return replace(one, prompt=redactor.redact(one.prompt), detail=redactor.redact(one.detail or ""))
