"""Which waiting turn may run next."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bot.models import InstallationId, RepoId, SessionId
from bot.sessions.admission import choose, without_fresh_pushes
from bot.settings import Limits
from bot.store.sessions import Turn
from tests.unit.turns import TURN


def turn(at: float, thread: int, repo: int = 1, installation: int = 1) -> Turn:
    return replace(
        TURN,
        session_id=SessionId(f"s{thread:07}"),
        n=int(at) + 1,
        thread_id=f"{repo}#{thread}",
        repo_id=RepoId(repo),
        installation_id=InstallationId(installation),
        created_at=at,
    )


def test_a_later_turn_of_a_thread_never_overtakes_and_waits_for_the_running_one() -> None:
    first, second = turn(1, 1), turn(2, 1)
    assert choose([first, second], [], Limits()) == [first]
    assert choose([second], [first], Limits()) == []


def test_a_repository_and_the_whole_have_their_limits() -> None:
    waiting = [turn(at, thread=at) for at in range(6)]
    assert len(choose(waiting, [], Limits(repo_sessions=4))) == 4
    assert len(choose(waiting, [turn(9, 9, repo=2)], Limits(max_sessions=3))) == 2


def test_an_installation_with_much_to_do_does_not_starve_the_others() -> None:
    busy = [turn(at, thread=at, installation=1) for at in range(10)]
    late = turn(50, 99, repo=7, installation=2)
    assert late in choose([*busy, late], [], Limits(max_sessions=2))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), max_size=20),
    st.lists(st.tuples(st.integers(7, 12), st.integers(1, 3)), max_size=5, unique_by=lambda one: one[0]),
    st.integers(1, 8),
    st.integers(1, 4),
)
def test_limits_hold_whatever_waits(
    queued: list[tuple[int, int]], running: list[tuple[int, int]], most: int, per_repo: int
) -> None:
    waiting = [turn(at, thread, repo, repo % 2) for at, (thread, repo) in enumerate(queued)]
    under_way = [turn(100 + at, thread, repo, repo % 2) for at, (thread, repo) in enumerate(running)]
    chosen = choose(waiting, under_way, Limits(max_sessions=most, repo_sessions=per_repo))
    assert len(chosen) <= max(0, most - len(under_way))
    assert len({one.thread_id for one in chosen}) == len(chosen)
    for repo in {one.repo_id for one in chosen}:
        before = sum(one.repo_id == repo for one in under_way)
        assert before + sum(one.repo_id == repo for one in chosen) <= per_repo
    for one in chosen:
        assert not any(other.thread_id == one.thread_id and other.created_at < one.created_at for other in waiting)


def test_what_a_push_asks_for_waits_a_while_unless_a_person_stands_behind_it() -> None:
    pushed = replace(TURN, source="push:5:3:abc", thread_id="a", created_at=100.0)
    asked = replace(TURN, source="comment:1", thread_id="b", created_at=100.0)
    assert without_fresh_pushes([pushed, asked], 101.0, 15) == [asked]
    assert without_fresh_pushes([pushed, asked], 115.0, 15) == [pushed, asked]
    assert without_fresh_pushes([pushed, replace(asked, thread_id="a")], 101.0, 15) == [
        pushed,
        replace(asked, thread_id="a"),
    ]
    assert without_fresh_pushes([pushed], 50.0, 15) == [pushed], "a clock that was set back keeps nobody waiting"
