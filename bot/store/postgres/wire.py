"""Carries notices between replicas by LISTEN and NOTIFY. They may be lost: the store holds the truth."""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import psycopg

from bot.store.postgres import faults
from bot.store.postgres.connections import WATCH, connect

CHANNEL = "forgehand"
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 0.2, 5.0
MOST_WAITING = 10_000
"""More notices than this are dropped while the server is away: it will be asked for all news anyway."""
MOST_BYTES = 6_000
"""PostgreSQL takes 8,000 in one notice."""


class NoticeWire:
    """One connection, served by one thread."""

    def __init__(self, url: str, sender: str, hear: Callable[[list[str] | None], None]) -> None:
        self._url = url
        self._sender = sender
        self._hear = hear
        self._lock = threading.Lock()
        self._waiting: dict[str, None] = {}
        self.connects = 0
        self._closed = threading.Event()
        self._bell, self._rope = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._rope, False)
        self._thread = threading.Thread(target=self._run, name="store-notices", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, notices: list[str]) -> None:
        with self._lock:
            was_empty = not self._waiting
            if len(self._waiting) < MOST_WAITING:
                self._waiting.update(dict.fromkeys(notices))
        if was_empty:
            self._ring()

    def close(self) -> None:
        """Send what waits, if the server takes it at once; blocks."""
        self._closed.set()
        self._ring()
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._bell)
        os.close(self._rope)

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # it has rung long enough
            os.write(self._rope, b"!")

    def _run(self) -> None:
        rest = FIRST_REST_SECONDS
        while not self._closed.is_set():
            try:
                with closing(connect(self._url)) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self.connects += 1
                    self._hear(None)
                    rest = FIRST_REST_SECONDS
                    self._carry(connection)
            except psycopg.Error:
                self._closed.wait(rest)
                rest = min(2 * rest, LONGEST_REST_SECONDS)

    def _carry(self, connection: psycopg.Connection[Any]) -> None:
        poller = select.poll()
        poller.register(connection.fileno(), select.POLLIN)
        poller.register(self._bell, select.POLLIN)
        while True:
            self._send_waiting(connection)
            if self._closed.is_set():
                return
            self._pass_on(connection)
            poller.poll()
            with suppress(BlockingIOError):
                os.read(self._bell, 4096)

    def _send_waiting(self, connection: psycopg.Connection[Any]) -> None:
        with self._lock:
            waiting, self._waiting = list(self._waiting), {}
        if not waiting:
            return
        payloads = [json.dumps([self._sender, *part]) for part in _portions(waiting)]
        try:
            with WATCH.over(connection):
                connection.execute("SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) payload", (CHANNEL, payloads))
        except psycopg.Error as error:
            if faults.is_lost(error):  # perhaps it was sent: that does no harm
                with self._lock:
                    self._waiting = dict.fromkeys(waiting) | self._waiting
            raise

    def _pass_on(self, connection: psycopg.Connection[Any]) -> None:
        heard: list[str] = []
        for one in connection.notifies(timeout=0):
            sender, *notices = _parts(one.payload)
            heard += notices if sender != self._sender else ()
        if heard:
            self._hear(heard)


def _parts(payload: str) -> list[str]:
    """Whoever may connect to the database can send anything here: what is not from a replica says nothing."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return [""]
    return found if isinstance(found, list) and found and all(isinstance(one, str) for one in found) else [""]


def _portions(notices: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    size = 0
    for one in notices:
        own = len(json.dumps(one)) + 2
        size += own
        if size > MOST_BYTES and found[-1]:
            found.append([])
            size = own
        found[-1].append(one)
    return found
