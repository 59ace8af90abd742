"""Notices that something has changed, for this process and the other replicas. They may be lost: who hears one looks at
the store, and looks now and then without one."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum

log = logging.getLogger(__name__)

Send = Callable[[list[str]], None]


class Topic(StrEnum):
    DELIVERY = "delivery"
    """A delivery waits."""
    QUEUE = "queue"
    """A turn waits, or there is room for one."""
    ADMITTED = "admitted"
    """A turn waits in the engine's queue, for whoever takes it."""
    COMMENT = "comment"
    """A live comment has news."""
    MADE = "made"
    """Something was made at GitHub, which counts such things for an installation."""
    TURN = "turn"
    """A turn's row has changed."""
    ENVIRONMENT = "environment"
    """An environment was given up."""
    ACCESS = "access"
    """Pages must ask GitHub again what a person may see."""
    DASHBOARD = "dashboard"
    """A repository's dashboard has news."""
    REPLICA = "replica"
    """A replica has joined or left."""


LEADERS = (Topic.DELIVERY, Topic.QUEUE, Topic.COMMENT, Topic.MADE, Topic.DASHBOARD)
"""Only the leader hears these."""


class Notices:
    """Without other replicas, a notice only calls those that listen here."""

    def __init__(self) -> None:
        self._listeners: defaultdict[Topic, list[Callable[..., None]]] = defaultdict(list)
        self._missed: list[Callable[[], None]] = []
        self._send: Send = lambda _: None
        self._leads = True

    def connect(self, send: Send) -> None:
        """Reach other replicas from now on."""
        self._send = send
        self.follow()

    def lead(self) -> None:
        self._leads = True

    def follow(self) -> None:
        self._leads = False

    @property
    def leads(self) -> bool:
        return self._leads

    def on(self, topic: Topic, hear: Callable[..., None]) -> None:
        """Call `hear` with what `tell` was given."""
        self._listeners[topic].append(hear)

    def on_missed(self, look: Callable[[], None]) -> None:
        """Call `look` when notices may have been lost."""
        self._missed.append(look)

    def tell(self, topic: Topic, *about: str | int | None) -> None:
        self._call(topic, *about)
        if topic not in LEADERS or not self._leads:
            self._send([json.dumps([topic, *about])])

    def heard(self, notices: list[str] | None) -> None:
        """Take notices of other replicas; None if some may have been lost."""
        if notices is None:
            for look in self._missed:
                look()
            return
        for one in notices:
            try:
                topic, *about = json.loads(one)
                if topic in set(Topic):  # a newer version may know others
                    self._call(Topic(topic), *about)
            except (ValueError, TypeError, RecursionError) as error:  # not from a replica
                log.warning("a notice says nothing", extra={"error": type(error).__name__})

    def _call(self, topic: Topic, *about: str | int | None) -> None:
        if topic in LEADERS and not self._leads:
            return
        for hear in self._listeners[topic]:
            hear(*about)
