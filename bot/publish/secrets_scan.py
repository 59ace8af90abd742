"""Looks for what must not be published in the new contents of changed files."""

from __future__ import annotations

from collections.abc import Sequence

from bot.git.changes import Change
from bot.git.quarantine import Quarantine
from bot.outbound.redact import Redactor


async def paths_with_secrets(quarantine: Quarantine, changes: Sequence[Change], redactor: Redactor) -> list[str]:
    """Paths whose content, or whose own name, holds something that the redactor would take out."""
    found = [change.path for change in changes if redactor.spans(change.path)]
    async for change, content in quarantine.blobs(changes):
        if redactor.spans(content.decode("utf-8", "replace")):
            found.append(change.path)
    return found
