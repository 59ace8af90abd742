"""A real PostgreSQL server on a free port of loopback, one for each process of tests, with a fresh database for each
that asks. Without Debian's `postgresql` its tests skip; in CI they must run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

from bot.settings import Secret
from bot.simulation.postgres import LocalPostgres, programs

ZONE = ("timezone=Asia/Kathmandu",)
DURABLE = ("fsync=on", "full_page_writes=on")


class PostgresServer(LocalPostgres):
    def __init__(self, folder: Path, password: str, settings: Sequence[str]) -> None:
        super().__init__(folder, password, settings)
        self._numbers = count(1)

    @classmethod
    @contextmanager
    def started(cls, *, durable: bool = False) -> Iterator[PostgresServer]:
        """`durable`: it syncs to the disk, as it would for its users."""
        require_programs()
        with cls.running(settings=(*ZONE, *(DURABLE if durable else ()))) as server:
            yield server

    def fresh(self, template: str = "template0") -> Secret:
        """The URL of a new, empty database."""
        name = f"forgehand{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return Secret(self.url(name))


def require_programs() -> None:
    if programs() is None:
        assert "CI" not in os.environ, "install postgresql"
        pytest.skip("needs Debian's postgresql")
