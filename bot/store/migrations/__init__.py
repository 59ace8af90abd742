"""The migrations in their order: one source for every database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class MigrationFile:
    name: str
    sql: str


def known(folder: Path = FOLDER) -> list[MigrationFile]:
    return [
        MigrationFile(one.stem, one.read_text(encoding="utf-8"))
        for one in sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    ]
