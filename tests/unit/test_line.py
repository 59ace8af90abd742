"""The place that a waiting comment shows is the place in the order that admission keeps."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from bot.live.page import QueuePlace
from bot.models import TurnState
from bot.sessions import admission
from bot.sessions.admission import choose
from bot.settings import Limits
from bot.store.sessions import Turn
from tests.unit.test_admission import turn

TURNS = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), max_size=15)


def places(queued: list[Turn], running: list[Turn], limits: Limits) -> dict[tuple[str, int], int]:
    standing = [replace(one, state=TurnState.QUEUED) for one in queued]
    standing += [replace(one, state=TurnState.RUNNING) for one in running]
    found = {one.key: admission.place(one.key, standing, [], limits, 0.0) for one in queued}
    return {(key.session, key.n): place.number for key, place in found.items() if place}


@given(TURNS, st.lists(st.tuples(st.integers(7, 9), st.integers(1, 3)), max_size=4, unique_by=lambda one: one[0]))
def test_who_is_first_in_line_is_whom_admission_takes_next(
    queued: list[tuple[int, int]], running: list[tuple[int, int]]
) -> None:
    waiting = [turn(at, thread, repo, repo) for at, (thread, repo) in enumerate(queued)]
    under_way = [turn(100 + at, thread, repo, repo) for at, (thread, repo) in enumerate(running)]
    limits = Limits(max_sessions=len(under_way) + 3, repo_sessions=2)
    shown = places(waiting, under_way, limits)
    assert sorted(shown.values()) == list(range(1, len(waiting) + 1))
    taken = [shown[one.session_id, one.n] for one in choose(waiting, under_way, limits)]
    assert taken == list(range(1, len(taken) + 1))


def test_an_installation_with_one_turn_comes_before_the_tenth_of_another() -> None:
    busy = [turn(at, thread=at, repo=at, installation=1) for at in range(1, 11)]
    late = turn(50, 99, repo=99, installation=2)
    assert places([*busy, late], [], Limits())[late.session_id, late.n] == 2


def test_every_round_is_within_the_limits_of_a_repository() -> None:
    waiting = [turn(at, thread=at) for at in range(6)]
    waves = list(admission.waves(waiting, [], Limits(repo_sessions=2)))
    assert [len(one) for one in waves] == [2, 2, 2]
    assert list(chain.from_iterable(waves)) == waiting


def test_an_estimate_goes_by_what_ended_turns_took() -> None:
    running = replace(turn(1, 1), state=TurnState.RUNNING, started_at=100.0)
    waiting = replace(turn(2, 2, repo=2), state=TurnState.QUEUED)
    one = Limits(max_sessions=1)
    place = admission.place(waiting.key, [running, waiting], [300.0] * 5, one, now=200.0)
    assert place == QueuePlace(1, running=1, estimate=200.0, known=5)
    unknown = admission.place(waiting.key, [running, waiting], [300.0], one, now=200.0)
    assert unknown is not None and unknown.estimate is None
