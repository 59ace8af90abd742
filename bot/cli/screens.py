"""Shows a run: on a terminal that is redrawn, or as plain lines for a file or a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from bot.cli import narration
from bot.cli.narration import SIGNS, NarratedLine, Narrator
from bot.live.sections import duration
from bot.live.state import LiveState
from bot.models import TokenUsage
from bot.store.spend import ModelCost
from sandbox.agents.events import AgentEvent, AgentSaid

HEARTBEAT_SECONDS = 30.0


class PlainScreen:
    """Prints a line for each thing that happens, and a sign of life now and then."""

    def __init__(self, write: Callable[[str], None], budget_usd: float) -> None:
        self.said = ""
        self._write = write
        self._budget_usd = budget_usd
        self._narrator = Narrator()
        self._state: LiveState | None = None
        self._began = self._wrote = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def phase(self, words: str) -> None:
        self._put(f"{words} …")

    def note(self, words: str, *, alarm: bool = False) -> None:
        self._put(words)

    def event(self, event: AgentEvent, state: LiveState) -> None:
        self._state = state
        self.said = _said(event, self.said)
        for line in self._narrator.lines(event):
            self._put(line.plain)

    def spent(self, cost: ModelCost) -> None:
        if self._state is not None and time.monotonic() - self._wrote > HEARTBEAT_SECONDS:
            elapsed = duration(time.monotonic() - self._began)
            money = narration.money(cost, self._budget_usd)
            self._put(f"… {elapsed}: {narration.now(self._state)} · {money}")

    def _put(self, text: str) -> None:
        self._wrote = time.monotonic()
        self._write(text)


class RichScreen:
    """Lets lines scroll by above a foot with the current action, the to-do list's progress and the cost."""

    def __init__(self, console: Console, budget_usd: float) -> None:
        self.said = ""
        self._console = console
        self._budget_usd = budget_usd
        self._narrator = Narrator()
        self._state = LiveState()
        self._cost = ModelCost(0.0, TokenUsage())
        self._phase = ""
        self._began = time.monotonic()
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(
            console=console,
            get_renderable=self._foot,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def phase(self, words: str) -> None:
        self._phase = words

    def note(self, words: str, *, alarm: bool = False) -> None:
        self._console.print(Text(words, style="bold red" if alarm else "yellow"))

    def event(self, event: AgentEvent, state: LiveState) -> None:
        self._state = state
        self.said = _said(event, self.said)
        for line in self._narrator.lines(event):
            if line.kind != "todo":  # the foot shows it
                self._console.print(_drawn(line))

    def spent(self, cost: ModelCost) -> None:
        self._cost = cost

    def _foot(self) -> RenderableType:
        elapsed = duration(time.monotonic() - self._began)
        working = self._phase == "Working"
        words = narration.now(self._state) if working else self._phase
        now = Table.grid(padding=(0, 1))
        now.add_row(self._spinner, Text(words, no_wrap=True, overflow="ellipsis"), Text(elapsed, style="dim"))
        money = Text(narration.money(self._cost, self._budget_usd), style="dim")
        bar = self._todo()
        return Group(Text(), now, *([bar] if bar else []), Padding(money, (0, 0, 0, 2)))

    def _todo(self) -> RenderableType | None:
        items = self._state.todo
        if not items:
            return None
        count = narration.done(items)
        current = next((item.text for item in items if item.state == "in_progress"), "")
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=len(items), completed=count, width=24)
        row.add_row(Text(" "), bar, Text(f"{count}/{len(items)}", style="cyan"), Text(current, overflow="ellipsis"))
        return row


def _drawn(line: NarratedLine) -> RenderableType:
    if line.kind == "said":
        return Padding(Markdown(line.text, hyperlinks=False), (1, 0))
    sign, style = SIGNS[line.kind]
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("  " * line.nested + sign, style=style).append(" ")
    name, _, title = line.text.partition(" ")
    if line.kind == "note":
        return text.append(line.text, style="dim")
    text.append(name, style="bold").append(f" {title}")
    if line.result:
        text.append(f"  {line.result}", style="dim" if line.kind == "ok" else "red")
    return text


def _said(event: AgentEvent, before: str) -> str:
    return event.text.strip() if isinstance(event, AgentSaid) and event.parent is None else before
