"""What checks have printed, whole: a file on the host for each time that they were run, without secrets."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from bot.models import SessionId
from bot.outbound import Redactor
from bot.store.sessions import Turn
from sandbox.agents.text import clean

PORTION = 32 << 10
"""Of text that is looked through before others get their turn."""


def folder(data_dir: Path) -> Path:
    return data_dir / "checks"


def path(data_dir: Path, turn: Turn) -> Path:
    """Another one for each time that the work of a turn is checked."""
    return folder(data_dir) / f"{turn.key.session}-{turn.key.n:06}-{int(turn.mending is not None)}.log"


def of_session(data_dir: Path, session: SessionId) -> list[Path]:
    """In their order."""
    return sorted(folder(data_dir).glob(f"{session}-*.log"))


class Output:
    """One such file. Begun anew when a killed process comes back to it."""

    def __init__(self, target: Path, redactor: Redactor) -> None:
        self._target = target
        self._redactor = redactor
        self._begun = False

    async def add(self, head: str, printed: Path, foot: str) -> None:
        """A command's output between two lines of ours; `printed` need not be there."""
        text = await asyncio.to_thread(_text, printed)
        stream = self._redactor.stream()
        parts = [f"$ {self._redactor.redact(head)}\n"]
        for at in range(0, len(text), PORTION):
            parts.append(stream.feed(text[at : at + PORTION]))
            await asyncio.sleep(0)
        parts.append(stream.end())
        end = "" if not text or text.endswith("\n") else "\n"
        await asyncio.to_thread(self._append, "".join([*parts, f"{end}[{foot}]\n\n"]))

    def _append(self, text: str) -> None:
        self._target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if self._begun else os.O_TRUNC)
        with os.fdopen(os.open(self._target, flags, 0o600), "ab") as file:
            file.write(text.encode("utf-8", "replace"))
        self._begun = True


def _text(printed: Path) -> str:
    try:
        return clean(printed.read_bytes().decode("utf-8", "replace"))
    except FileNotFoundError:
        return ""
