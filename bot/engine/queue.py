"""Takes turns from the queue that replicas share, in place of DBOS' own threads: these ask the database many times a
second, also when nothing waits. We ask when we hear that something does."""

from __future__ import annotations

import logging
import sys
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbos import DBOS, DBOSClient, Queue
    from dbos._sys_db import WorkflowStatusInternal

log = logging.getLogger(__name__)


class TurnQueue:
    """Its methods block. They use what DBOS does not promise; `tests/turns/test_engine.py` holds that."""

    def __init__(
        self, dbos: DBOS, client: DBOSClient, queue: Queue, *, executor: str, version: str, room: int | None
    ) -> None:
        self._dbos = dbos
        self._asks = client._sys_db
        """Unlike that of `dbos`, it does not wait by itself while the database is away."""
        self._queue = queue
        self._executor = executor
        self._version = version
        self._room = sys.maxsize if room is None else room
        self._here: set[str] = set()

    def quieten(self) -> None:
        """End DBOS' threads that look for queues, queued work, schedules, delays and time limits."""
        for event in self._dbos.background_thread_stop_events:
            event.set()
        self._dbos._background_jobs_stop_event.set()

    @property
    def load(self) -> int:
        """Count the turns that we have taken and that have not ended."""
        return len(self._here)

    def take(self, most: int = sys.maxsize) -> int:
        """Claim what may run now, at most one workflow of each partition, and begin it; return how many."""
        room = min(most, self._room - self.load)
        if room <= 0:
            return 0
        token = str(uuid.uuid4())
        claim = self._asks.start_queued_partitioned_workflows
        claimed = claim(self._queue, self._executor, self._version, room, owner_xid=token)
        self._here.update(claimed)
        for status in self._asks.get_workflow_statuses(claimed) if claimed else ():
            self._begin(status, token)
        return len(claimed)

    def _begin(self, status: WorkflowStatusInternal, token: str) -> None:
        from dbos._core import execute_dequeued_workflow

        try:
            execute_dequeued_workflow(self._dbos, status, token)
        except Exception:  # the others shall begin
            log.exception("a turn could not begin", extra={"turn": status["workflow_uuid"]})
            self.left(status["workflow_uuid"])

    def left(self, workflow: str) -> None:
        """Note that it does not need room any more."""
        self._here.discard(workflow)

    def claimed(self) -> dict[str, str]:
        """Return the workflows that some executor has claimed, of every version, each with its executor."""
        before = set(self._here)
        found = self._asks.list_workflows(status="PENDING", load_input=False, load_output=False)
        owners = {one.workflow_id: one.executor_id for one in found if one.executor_id is not None}
        self._here -= {name for name in before if owners.get(name) != self._executor}
        return owners

    def queue_again(self, left: dict[str, str]) -> None:
        # Not `resume_workflows`: that would move them to another queue, past the order within a thread.
        for name, owner in left.items():
            self._asks.reenqueue_for_recovery(name, [owner], self._queue.name)
