"""Which threads are taken up next: many side by side, and no account and no repository more than its share; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bot.store.waiting import ThreadId, WaitingThread

AT_ONCE = 64
"""Fewer than the connections to GitHub: of those that it keeps waiting, none is left over for the others."""
OF_AN_ACCOUNT = 8
OF_A_REPOSITORY = 4


class Rota:
    """`offer` what waits, in the order in which it should go; `take` what may go now; say when it is `done`."""

    def __init__(self) -> None:
        self._offered: dict[ThreadId, WaitingThread] = {}
        self._busy: dict[ThreadId, WaitingThread] = {}
        self._accounts: Counter[int | None] = Counter()
        self._repositories: Counter[int | None] = Counter()
        self._not_before: dict[ThreadId, float] = {}

    @property
    def paused(self) -> int:
        """How many wait for a moment of their own."""
        return len(self._not_before)

    def offer(self, threads: Iterable[WaitingThread]) -> None:
        """In the place of what was offered before."""
        self._offered = {one.id: one for one in threads if one.id not in self._busy}

    def take(self, now: float) -> list[ThreadId]:
        """Those that begin now."""
        self._not_before = {thread: at for thread, at in self._not_before.items() if at > now}
        taken: list[ThreadId] = []
        for thread, waiting in self._offered.items():
            if len(self._busy) >= AT_ONCE:
                break
            if thread not in self._not_before and self._has_room(waiting):
                self._begin(waiting)
                taken.append(thread)
        for thread in taken:
            del self._offered[thread]
        return taken

    def done(self, thread: ThreadId, not_before: float) -> None:
        """Until then it is not taken up again."""
        waiting = self._busy.pop(thread)
        self._accounts[waiting.installation_id] -= 1
        self._repositories[waiting.repo_id] -= 1
        self._not_before[thread] = not_before

    def next_due(self, now: float) -> float | None:
        """When the first of those that wait for a moment may go."""
        return min((at for at in self._not_before.values() if at > now), default=None)

    def _has_room(self, one: WaitingThread) -> bool:
        in_repository = one.repo_id is None or self._repositories[one.repo_id] < OF_A_REPOSITORY
        return in_repository and self._accounts[one.installation_id] < OF_AN_ACCOUNT

    def _begin(self, one: WaitingThread) -> None:
        self._busy[one.id] = one
        self._accounts[one.installation_id] += 1
        self._repositories[one.repo_id] += 1
