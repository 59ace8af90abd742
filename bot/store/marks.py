"""By what the disks of kept environments are known as the newest, as `sandbox.e2b.marks` wants it kept."""

from __future__ import annotations

from bot.store.base import Store
from bot.store.rows import Database, many, run


class EnvironmentMarks:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def known(self, environment_id: str) -> frozenset[str]:
        sql = "SELECT mark FROM environment_marks WHERE environment_id = :id"
        return frozenset(row["mark"] for row in await self._store.read(lambda db: many(db, sql, id=environment_id)))

    async def add(self, environment_id: str, mark: str) -> None:
        await self._store.write(lambda db: _add_mark(db, environment_id, mark))

    async def settle(self, environment_id: str, mark: str, instead_of: frozenset[str]) -> None:
        """Only those that were known before: another process may have added one meanwhile."""

        def work(db: Database) -> None:
            for old in instead_of:
                sql = "DELETE FROM environment_marks WHERE environment_id = :id AND mark = :mark"
                run(db, sql, id=environment_id, mark=old)
            _add_mark(db, environment_id, mark)

        await self._store.write(work)

    async def forget(self, environment_id: str) -> None:
        sql = "DELETE FROM environment_marks WHERE environment_id = :id"
        await self._store.write(lambda db: run(db, sql, id=environment_id))


def _add_mark(db: Database, environment_id: str, mark: str) -> None:
    sql = """
    INSERT INTO environment_marks (environment_id, mark) VALUES (:id, :mark)
    ON CONFLICT (environment_id, mark) DO NOTHING
    """
    run(db, sql, id=environment_id, mark=mark)
