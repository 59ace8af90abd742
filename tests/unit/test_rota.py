"""Which threads are taken up next: each account and each repository its share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bot.handlers import intake
from bot.handlers.intake import Rota
from bot.store.waiting import WaitingThread


def threads(account: int, repo: int, numbers: Iterable[int]) -> list[WaitingThread]:
    return [WaitingThread(account, repo, number, None, float(number)) for number in numbers]


def offered(*waiting: list[WaitingThread]) -> Rota:
    found = Rota()
    found.offer([one for some in waiting for one in some])
    return found


def test_a_repository_takes_no_more_than_its_share_and_its_account_neither() -> None:
    flood = [threads(1, repo, range(100)) for repo in range(5)]
    taken = offered(*flood, threads(2, 9, range(2))).take(0.0)
    counts = Counter(repo for repo, _, _ in taken)
    assert max(counts[repo] for repo in range(5)) == intake.OF_A_REPOSITORY
    assert sum(counts[repo] for repo in range(5)) == intake.OF_AN_ACCOUNT
    assert counts[9] == 2


def test_all_together_are_no_more_than_may_be_open_at_github() -> None:
    assert len(offered(*(threads(one, one, range(9)) for one in range(100))).take(0.0)) == intake.AT_ONCE


def test_one_that_is_done_makes_room_and_one_under_way_is_not_begun_twice() -> None:
    waiting = threads(1, 1, range(6))
    one = offered(waiting)
    first = one.take(0.0)
    assert len(first) == intake.OF_A_REPOSITORY and one.take(0.0) == []
    one.offer(waiting)
    assert one.take(0.0) == []
    one.done(first[0], 0.0)
    assert one.take(0.0) == [waiting[intake.OF_A_REPOSITORY].id]


def test_one_that_must_wait_is_passed_over_until_then() -> None:
    waiting = threads(1, 1, range(2))
    one = offered(waiting[:1])
    [thread] = one.take(0.0)
    one.done(thread, 5.0)
    assert (one.paused, one.next_due(1.0)) == (1, 5.0)
    one.offer(waiting)
    assert one.take(4.9) == [waiting[1].id]
    assert one.take(5.0) == [waiting[0].id]
    assert (one.paused, one.next_due(5.0)) == (0, None)
