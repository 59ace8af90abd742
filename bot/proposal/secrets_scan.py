"""Looks for what must not be published in the new contents of changed files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from bot.git.inspection import Change
from bot.git.quarantine import Quarantine
from bot.outbound.redact import Redactor

PIECE = 256 << 10
OVERLAP = 32 << 10
MOST_BEFORE = 50 << 20


async def paths_with_secrets(quarantine: Quarantine, changes: Sequence[Change], redactor: Redactor) -> list[str]:
    """Paths whose content, or whose own name, holds something that the redactor would take out and that was not there:
    a test's key that has long been in the repository must not hold each change of its file.

    In a thread and in pieces: the redactor's views of a text take a hundred times its size, and a second a megabyte.
    """
    found = [change.path for change in changes if change.status == "A" and redactor.spans(change.path)]
    moved = {change.old_sha for change in changes if change.is_deleted}
    async for change, content in quarantine.blobs([one for one in changes if one.sha not in moved]):
        secrets = await asyncio.to_thread(_secrets, content, redactor)
        if secrets and not await _were_there(quarantine, change, secrets):
            found.append(change.path)
    return found


def _secrets(content: bytes, redactor: Redactor) -> set[str]:
    return {piece[start:end] for piece in _pieces(content) for start, end in redactor.spans(piece)}


async def _were_there(quarantine: Quarantine, change: Change, secrets: set[str]) -> bool:
    """Letter by letter, in the file that stood in the same place."""
    before = await quarantine.blob(change.old_sha, max_bytes=MOST_BEFORE) if change.had_blob else None
    text = _plain(before or b"").decode("utf-8", "replace")
    return all(secret in text for secret in secrets)


def _pieces(content: bytes) -> Iterator[str]:
    """They overlap by more than the longest secret, so that none hides on a border. UTF-16 is text with NULs in it."""
    plain = _plain(content)
    for start in range(0, max(1, len(plain)), PIECE):
        yield plain[max(0, start - OVERLAP) : start + PIECE].decode("utf-8", "replace")


def _plain(content: bytes) -> bytes:
    return content.replace(b"\0", b"")
