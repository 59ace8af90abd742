"""The promise of a home of files: it holds the bytes of versions, and the store's rows say which version counts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.errors import TransientError
from bot.store.records import Record


@dataclass(frozen=True)
class StoredFile(Record):
    name: str
    version: str
    """It begins with the second of the save, so that versions are in the order of time."""
    size: int
    sha256: str


class FileHome(Protocol):
    """A version never changes, and no name has it twice. So each method may be repeated."""

    @property
    def words(self) -> str:
        """Say where the bytes are."""

    async def put(self, file: StoredFile, path: Path) -> None: ...

    async def bring(self, file: StoredFile, arriving: Path) -> bool:
        """Append the bytes to a file; False if they are not here, whatever has been appended then."""

    async def lacks(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        """Return those of the files that are not whole here."""

    async def remove(self, file: StoredFile) -> None: ...

    async def sweep(self, before: str) -> None:
        """Remove what interrupted saves left before this version: no row names it."""

    async def look(self) -> None:
        """Raise BotError if the home cannot be used now."""

    async def close(self) -> None: ...


def pieces(file: StoredFile, path: Path, most: int) -> Iterator[bytes]:
    """Read a file piece by piece; at the end, TransientError if it is no longer what was to be stored."""
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while piece := opened.read(most):
            digest.update(piece)
            yield piece
    if digest.hexdigest() != file.sha256:
        raise TransientError(f"{file.name} has changed while it was stored.", retry_after=0.0)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
