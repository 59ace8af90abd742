"""What `doctor` says of a database server and its replicas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.checkup import Level, server
from bot.engine.database import MOST_CONNECTIONS
from bot.store.replicas import DatabaseServer, Replica

SERVER = DatabaseServer("15.6", 1000.0, 0.001, 97, 12, 7, is_pooled=False)
FIRST = Replica("a1", "home@one", "one", "0.1.0", 900.0, 3, 990.0, True)
SECOND = replace(FIRST, id="b2", home="home@two", host="two", leads=False)


def test_connections_are_counted_for_all_replicas() -> None:
    assert server.of_server(SERVER, 3).level is Level.GOOD
    short = server.of_server(SERVER, 4)
    assert short.level is Level.WARNING
    assert f"max_connections to at least {4 * (7 + MOST_CONNECTIONS) + 13} for 4 replicas" in short.fix
    assert "one replica" in server.of_server(replace(SERVER, most_connections=20), 0).fix


def test_a_server_far_away_is_a_warning() -> None:
    assert server.of_server(replace(SERVER, round_trip_seconds=0.08), 2).level is Level.WARNING


@pytest.mark.parametrize(("ahead", "words"), [(300.0, "300.0 s ahead of"), (-300.0, "300.0 s behind")])
def test_a_clock_that_differs_is_a_warning(ahead: float, words: str) -> None:
    found = server.of_clock(ahead)
    assert found.level is Level.WARNING
    assert words in found.words
    assert server.of_clock(0.2).level is Level.GOOD


def test_replicas_that_live_are_named() -> None:
    [found] = server.of_replicas([FIRST, SECOND], [])
    assert found.words == "2 live: one (a1, leads), two (b2)."
    assert server.of_replicas([], [])[0].level is Level.GOOD


def test_only_a_beat_that_stands_still_is_silence() -> None:
    moved, new = replace(FIRST, beat=4), replace(SECOND, id="c3")
    assert server.silent([FIRST, SECOND], [moved, SECOND, new]) == [SECOND]


def test_silence_mixed_versions_and_a_missing_leader_come_with_advice() -> None:
    older = replace(SECOND, version="0.0.9")
    found = {one.name: one for one in server.of_replicas([replace(FIRST, leads=False), older], [older])}
    assert found["beat"].words == "two (b2) gives no sign of life."
    assert "0.0.9 (1), 0.1.0 (1)" in found["versions"].words
    assert found["leader"].level is Level.WARNING
    assert all(one.fix for one in found.values() if one.level is not Level.GOOD)
