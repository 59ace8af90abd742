"""Looks for what must not be published in the new contents of changed files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from bot.git.changes import Change
from bot.git.quarantine import Quarantine
from bot.outbound.redact import Redactor

PIECE = 256 << 10
OVERLAP = 32 << 10


async def paths_with_secrets(quarantine: Quarantine, changes: Sequence[Change], redactor: Redactor) -> list[str]:
    """Paths whose content, or whose own name, holds something that the redactor would take out.

    In a thread and in pieces: the redactor's views of a text take a hundred times its size, and a second a megabyte.
    """
    found = [change.path for change in changes if redactor.spans(change.path)]
    async for change, content in quarantine.blobs(changes):
        if await asyncio.to_thread(_holds_secret, content, redactor):
            found.append(change.path)
    return found


def _holds_secret(content: bytes, redactor: Redactor) -> bool:
    return any(redactor.spans(piece) for piece in _pieces(content))


def _pieces(content: bytes) -> Iterator[str]:
    """They overlap by more than the longest secret, so that none hides on a border. UTF-16 is text with NULs in it."""
    plain = content.replace(b"\0", b"")
    for start in range(0, max(1, len(plain)), PIECE):
        yield plain[max(0, start - OVERLAP) : start + PIECE].decode("utf-8", "replace")
