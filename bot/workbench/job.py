"""The workbench's input and output: a job, its means, its audience, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bot.live.state import LiveState
from bot.models import Outcome, SessionId, TokenUsage, TurnKey
from bot.settings import ModelSettings
from bot.store.spend import ModelCost
from bot.workbench import words
from sandbox.agents.base import Subagents
from sandbox.agents.events import AgentEvent

DONE = "done"
"""The outcome of work that arrived: as a branch, as a patch, or applied. All others are `Outcome`s."""
EXIT_CODES: Mapping[str, int] = {
    DONE: 0,
    Outcome.NO_CHANGE: 0,
    Outcome.FAILED: 1,
    Outcome.REFUSED: 1,
    Outcome.OVER_BUDGET: 3,
    Outcome.TIMED_OUT: 4,
    Outcome.KILLED: 5,
    Outcome.STOPPED: 130,
}


@dataclass(frozen=True)
class WorkbenchJob:
    id: SessionId
    prompt: str
    path: Path
    model: str
    budget_usd: float
    timeout_seconds: float
    max_turns: int | None
    apply: bool
    isolate: bool
    subagents: Subagents
    effort: str | None = None
    fallback: str | None = None
    task_tokens: int | None = None
    basic_api: bool = False  # as in AgentRun

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.id, 1)

    @property
    def models(self) -> tuple[str, ...]:
        return (self.model,) if self.fallback is None else (self.model, self.fallback)

    @property
    def branch(self) -> str:
        return f"forgehand/{self.id}"


@dataclass(frozen=True)
class WorkbenchMeans:
    data_dir: Path
    model: ModelSettings
    egress: frozenset[str]
    retention_days: float
    newest_agent: Path | None = None

    @property
    def root(self) -> Path:
        return self.data_dir / "execute"


@dataclass(frozen=True)
class Landed:
    files: tuple[dict[str, Any], ...] = ()
    branch: str | None = None
    kept: str | None = None
    """Says in which file of this host the work is, if it went nowhere else."""
    applied: bool = False
    held: str | None = None
    advice: tuple[str, ...] = ()
    """The person's next steps: words and commands, line by line."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """How it ended; `facts` is what `--json` prints."""

    outcome: str
    detail: str = ""
    result: str = ""
    seconds: float = 0.0
    cost: ModelCost = field(default_factory=lambda: ModelCost(0.0, TokenUsage()))
    isolation: str = "none"
    landed: Landed = field(default_factory=Landed)
    left_out: tuple[str, ...] = ()
    """Paths of the work that git did not take."""

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]

    @property
    def facts(self) -> dict[str, Any]:
        usage = self.cost.usage
        return {
            "outcome": str(self.outcome),
            "branch": self.landed.branch,
            "files": list(self.landed.files),
            "left_out": [{"path": path, "why": why} for path, why in words.not_taken_with_reasons(self.left_out)],
            "cost_usd": round(self.cost.usd, 6),
            "usage": {name: getattr(usage, name) for name in TokenUsage.__dataclass_fields__},
            "seconds": round(self.seconds, 3),
            "result": self.result,
            "detail": self.detail,
            "isolation": self.isolation,
        }


class Audience(Protocol):
    """Hears of everything as it happens."""

    def phase(self, words: str) -> None: ...

    def event(self, event: AgentEvent, state: LiveState) -> None: ...

    def spent(self, cost: ModelCost) -> None: ...

    def note(self, words: str, *, alarm: bool = False) -> None:
        """Show a sentence that stays."""
        ...
