"""Redacts a patch line by line, so that it keeps its form; each side of it is read as a whole."""

from __future__ import annotations

import re

from bot.agent import diffs
from bot.outbound.redact import END_PEM, REDACTED, Redactor

_KEY_LINE = re.compile(r"\s*[A-Za-z0-9+/=]{16,}\s*")
LITERAL = "GIT binary patch"
"""Compressed content follows, which must stay as it is."""
BINARY = (LITERAL, "Binary files ")


def redacted(redactor: Redactor, patch: str) -> str:
    return "\n".join(_file(redactor, part.text.split("\n")) for part in diffs.parse(patch))


def is_binary(lines: list[str]) -> bool:
    return any(line.startswith(BINARY) for line in lines)


def _without_ends_of_keys(lines: list[str]) -> list[str]:
    """Remove the end of a private key whose beginning the patch does not show."""
    for at, line in enumerate(lines):
        if END_PEM.search(line):
            lines[at] = REDACTED
            before = at - 1
            while before >= 0 and _KEY_LINE.fullmatch(lines[before]):
                lines[before], before = REDACTED, before - 1
    return lines


def _file(redactor: Redactor, lines: list[str]) -> str:
    begin = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    head, body = lines[:begin], lines[begin:]
    named = next((at for at, line in enumerate(head) if line.startswith(LITERAL)), begin)
    clean = [*(redactor.redact(line) for line in head[:named]), *head[named:]]
    made = list(body)
    for side in ("-", "+"):
        places = [at for at, line in enumerate(body) if line[:1] in (" ", side)]
        texts = _without_ends_of_keys(redactor.redact_lines([body[at][1:] for at in places]))
        for at, text in zip(places, texts, strict=True):
            if text != body[at][1:]:
                made[at] = body[at][:1] + text
    others = [at for at, line in enumerate(body) if line[:1] not in (" ", "-", "+")]
    for at in others:
        made[at] = redactor.redact(body[at])
    return "\n".join([*clean, *made])
