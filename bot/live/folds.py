"""Keeps the folded picture of each running turn, fed with what the store has gained since the last look."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bot.live.state import LiveState
from bot.models import TurnKey
from bot.portions import in_portions
from bot.store import events
from bot.store.base import Store
from sandbox.agents.base import Agent, Decoder

PAGE = 500


@dataclass
class _Fold:
    decoder: Decoder
    state: LiveState = field(default_factory=LiveState)
    seq: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Folds:
    """A cache over `events`: dropping an entry costs a re-read, never truth."""

    def __init__(self, store: Store, agent: Agent) -> None:
        self._store = store
        self._agent = agent
        self._folds: dict[TurnKey, _Fold] = {}

    async def of(self, key: TurnKey) -> LiveState:
        fold = self._folds.setdefault(key, _Fold(self._agent.decoder()))
        async with fold.lock:
            while rows := await events.of_turn(self._store, key, fold.seq, PAGE):
                async for row in in_portions(rows):
                    if row.kind == events.STREAM:
                        for event in fold.decoder.feed(row.line):
                            fold.state.apply(event, row.at)
                    else:
                        fold.state.told(row.line)
                    fold.seq = row.seq
        return fold.state

    def forget(self, key: TurnKey) -> None:
        self._folds.pop(key, None)
