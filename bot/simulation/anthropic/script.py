"""The script of a model: steps that answer, and preludes that happen before the next answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.models import TokenUsage
from bot.simulation.anthropic.reading import ModelRequest


@dataclass(frozen=True)
class Call:
    """The model calls one tool, with some words before it."""

    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    usage: TokenUsage | None = None


@dataclass(frozen=True)
class Say:
    """The model says something, which ends its turn."""

    text: str
    usage: TokenUsage | None = None
    hold: str | None = None
    """After the first piece of the text, keep the stream open until this name is released."""
    stop_reason: str = "end_turn"
    thought: int = 0
    """Tokens of thinking before it. A stream shows only pings for them, and a signature at their end; `hold` then keeps
    it open in their middle."""


@dataclass(frozen=True)
class Calls:
    """Several tools in one answer."""

    calls: Sequence[Call]
    text: str = ""
    usage: TokenUsage | None = None


@dataclass(frozen=True)
class Fail:
    """An error instead of an answer: `times` in a row, or forever (None); with `model`, only for requests to it."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int | None = None
    kind: str | None = None
    message: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class Cut:
    """The stream of the next answer breaks off: `times` in a row, or forever (None). With `error` it ends properly
    after an error event, as that of an overloaded API does."""

    times: int | None = 1
    error: str | None = None


@dataclass(frozen=True)
class Slow:
    """The next answer is slow: before its first byte, and between its pieces."""

    first_token_seconds: float = 0.0
    between_seconds: float = 0.0


@dataclass(frozen=True)
class Wait:
    """The next answer's first byte waits until this name is released."""

    name: str


Answer = Say | Call | Calls
Prelude = Fail | Cut | Slow | Wait
Step = Answer | Prelude | Callable[[ModelRequest], Answer]


@dataclass(frozen=True)
class Turn:
    """One answer with its preludes."""

    preludes: tuple[Prelude, ...]
    answer: Answer | Callable[[ModelRequest], Answer]


LAST = Say("There is nothing more to do.")


class Script:
    """Steps in order; an answer's place is the number of answers before it."""

    def __init__(self, steps: Sequence[Step], *, after: Answer | Callable[[ModelRequest], Answer] = LAST) -> None:
        self._turns: list[Turn] = []
        waiting: list[Prelude] = []
        for step in steps:
            if isinstance(step, Fail | Cut | Slow | Wait):
                waiting.append(step)
            else:
                self._turns.append(Turn(tuple(waiting), step))
                waiting = []
        self._after = Turn(tuple(waiting), after)

    def turn(self, index: int) -> Turn:
        return self._turns[index] if index < len(self._turns) else self._after
