"""The migrations in their order: one source for every database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.errors import StoreError

FOLDER = Path(__file__).parent
ALONE = "-- Every replica must be stopped."
"""The first line of a migration that the statements of the version before could not live with."""


@dataclass(frozen=True)
class MigrationFile:
    name: str
    sql: str

    @property
    def only_adds(self) -> bool:
        """Tell whether services of the version before may run beside it."""
        return not self.sql.startswith(ALONE)


def known(folder: Path = FOLDER) -> list[MigrationFile]:
    return [
        MigrationFile(one.stem, one.read_text(encoding="utf-8"))
        for one in sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    ]


def waiting(applied: set[str], where: object, folder: Path = FOLDER) -> bool:
    """Tell whether migrations wait; StoreError if a newer version has applied some that we do not know."""
    ours = {one.name for one in known(folder)}
    if newer := sorted(applied - ours):
        raise StoreError(
            f"{where} was written by a newer Forgehand (schema {newer[-1]}; this one knows {max(ours)}). Install that "
            "version again, or restore a backup from before the upgrade."
        )
    return ours != applied
