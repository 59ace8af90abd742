"""Reads messages for the agent's stdin: in the order of file names, each id once, acknowledged when stdin took them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class InboxMessage(NamedTuple):
    id: str
    line: bytes
    quiet: bool = False
    """No final line of the agent follows it."""


class Inbox:
    """Messages in `inbox/*.json` ({"id", "line", "quiet"}); `delivered/ID` says that the agent got one."""

    def __init__(self, folder: Path) -> None:
        self._inbox = folder / "inbox"
        self._delivered = folder / "delivered"
        self._inbox.mkdir(exist_ok=True)
        self._delivered.mkdir(exist_ok=True)
        self._read: set[str] = set()
        self._taken = {path.name for path in self._delivered.iterdir()}

    def waiting(self) -> bool:
        return any(True for _ in self._unread())

    def take(self) -> InboxMessage | None:
        for path in self._unread():
            self._read.add(path.name)
            message = _parse(path)
            if message and message.id in self._taken:
                self.acknowledge(message)  # again, because the first acknowledgement may have failed
            elif message:
                self._taken.add(message.id)
                return message
        return None

    def acknowledge(self, message: InboxMessage) -> None:
        with contextlib.suppress(OSError):  # if the disk is full, the host asks again
            (self._delivered / message.id).touch()

    def _unread(self) -> Iterator[Path]:
        yield from sorted(
            path for path in self._inbox.glob("*.json") if path.name not in self._read and not path.name.startswith(".")
        )


def _parse(path: Path) -> InboxMessage | None:
    """Read a message; None if the file does not come from the host, which writes only whole files."""
    try:
        found = json.loads(path.read_bytes())
        name, line = found["id"], found["line"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(name, str) or not isinstance(line, str) or Path(name).name != name:
        return None
    return InboxMessage(name, line.encode("utf-8").rstrip(b"\n") + b"\n", found.get("quiet") is True)
