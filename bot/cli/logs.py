"""Prints the stored lines of the agent's output: short lines for people, the original ones for programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import typer

from bot.cli import console
from bot.cli.narration import NarratedLine, Narrator
from bot.models import TurnKey, TurnState
from bot.text.blocks import shown
from sandbox.agents.claude import Claude
from sandbox.agents.events import AgentEnded, AgentEvent, Unreadable

if TYPE_CHECKING:
    from bot.store.base import Store

PAGE = 1000
LOOK_SECONDS = 0.3


async def print_turn(store: Store, key: TurnKey, *, as_json: bool, follow: bool = False) -> None:
    """Print all lines of a turn in order; with `follow`, wait for new ones until it ends."""
    printer = TurnPrinter(key.n)
    async for row in _rows(store, key, follow=follow):
        if as_json:
            console.print_json(row)
        else:
            printer.feed(row["text"])
    printer.end()


async def _rows(store: Store, key: TurnKey, *, follow: bool) -> AsyncIterator[dict[str, Any]]:
    from bot.store import conversation, sessions

    after = 0
    while True:
        # asked before the lines, so that none stored before the end is missed
        over = not follow or (await sessions.turn(store, key)).state is TurnState.DONE
        while page := await conversation.events_of_turn(store, key, after, PAGE):
            for row in page:
                yield {"seq": row.seq, "turn": key.n, "at": row.at, "text": row.line}
            after = page[-1].seq
        if over:
            return
        await asyncio.sleep(LOOK_SECONDS)


class TurnPrinter:
    """Prints one turn as `execute` would; the header comes with the first line."""

    def __init__(self, turn: int) -> None:
        self._turn = turn
        self._begun = False
        self._decoder = Claude().decoder()
        self._narrator = Narrator()

    def feed(self, text: str) -> None:
        if not self._begun:
            typer.secho(f"turn {self._turn}", bold=True)
            self._begun = True
        for event in self._decoder.feed(text):
            self._print(self._lines(event, text))

    def end(self) -> None:
        self._print(self._narrator.unfinished())

    def _lines(self, event: AgentEvent, text: str) -> list[NarratedLine]:
        match event:
            case Unreadable() if text.strip():
                return [NarratedLine("note", f"not understood: {text}")]
            case AgentEnded() if not event.ok:
                return [NarratedLine("bad", "; ".join([event.reason, *event.errors]))]
        return self._narrator.lines(event)

    def _print(self, lines: list[NarratedLine]) -> None:
        for line in lines:
            typer.echo(shown(line.plain))  # without the agent's control characters
