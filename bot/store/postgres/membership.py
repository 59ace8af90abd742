"""A replica's place in a shared database: a lock, a row, and its beats."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import psycopg
from psycopg.rows import dict_row

from bot.store.data_directory import Occupied
from bot.store.postgres import faults
from bot.store.postgres.connections import SERVICE, WATCH, WRITERS, connect
from bot.store.postgres.wire import NoticeWire
from bot.store.replicas import Joining, Replaced, Replica

CONNECT_SECONDS = 2
"""A beat must not wait long for a server that will not answer: the next one may find it."""
ALONE = "A command has the database to itself, such as a move or a restore. Start again when it has ended."
_BEAT = """
WITH ours AS (UPDATE replicas SET beat = beat + 1, beat_at = extract(epoch FROM now()) WHERE id = %s)
SELECT id, home, host, version, started_at, beat, beat_at, leads FROM replicas
"""
_JOIN = """
INSERT INTO replicas (id, home, host, version, started_at, beat, beat_at, leads)
VALUES (%s, %s, %s, %s, extract(epoch FROM now()), 0, extract(epoch FROM now()), 0)
"""


class PostgresMembership:
    """The lock keeps moves and restores away; it ends with its connection, and the next beat takes it again."""

    def __init__(self, url: str, joining: Joining) -> None:
        self.id = uuid.uuid4().hex[:12]
        self._url = url
        self._home = joining.home
        self._on_replaced = joining.on_replaced
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-beats")
        """Its own: a beat waits for nothing else that blocks."""
        self._wire = NoticeWire(url, self.id, joining.hear)

    def join(self) -> None:
        """Take a row; a former process of our data directory has ended, because we hold the lock on it."""
        try:
            connection = self._connected()
        except Replaced:
            raise Occupied(ALONE) from None
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (WRITERS,))
            connection.execute("DELETE FROM replicas WHERE home = %s", (self._home,))
            connection.execute(_JOIN, (self.id, self._home, socket.gethostname(), version("forgehand")))
        self._wire.start()

    async def beat(self) -> list[Replica]:
        """Who has nothing to write learns only here that it was given up."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._beat)
        except Replaced:
            self._on_replaced()
            raise

    def _beat(self) -> list[Replica]:
        try:
            connection = self._connected()
            with WATCH.over(connection), connection.cursor(row_factory=dict_row) as cursor:
                found = [Replica.of(row) for row in cursor.execute(_BEAT, (self.id,))]
        except psycopg.Error as error:
            self._drop()
            raise faults.translate(error) from None
        if all(one.id != self.id for one in found):
            raise Replaced
        return found

    @property
    def reconnects(self) -> int:
        return max(0, self._wire.connects - 1)

    def send(self, notices: list[str]) -> None:
        self._wire.send(notices)

    def leave(self) -> None:
        """Give the row back, so that others need not wait for our beats to be missed."""
        self._thread.shutdown(wait=True)
        try:
            with contextlib.suppress(psycopg.Error, Replaced):
                self._connected().execute("DELETE FROM replicas WHERE id = %s", (self.id,))
        finally:
            self._wire.close()
            self._drop()

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            connection = self._connection = connect(self._url, seconds=CONNECT_SECONDS)
            if connection.execute("SELECT pg_try_advisory_lock_shared(%s)", (SERVICE,)).fetchone() != (True,):
                self._drop()
                raise Replaced
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
