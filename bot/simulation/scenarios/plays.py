"""The demo's plays: the words and acts of a person in each, and how its turns must end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.models import Outcome
from bot.simulation.scenarios import basket, tracker
from bot.simulation.scenarios.discount import COMMENT


@dataclass(frozen=True)
class Say:
    """A comment on the thread."""

    words: str


@dataclass(frozen=True)
class Tick:
    """A click on the box of the newest live comment that has these words beside it."""

    beside: str


@dataclass(frozen=True)
class TickDashboard:
    """A click on the box of the repository's dashboard that has these words beside it."""

    beside: str


@dataclass(frozen=True)
class Push:
    """The author of the pull request pushes to its branch."""

    files: Mapping[str, str]


@dataclass(frozen=True)
class Approve:
    """A yes to the agent's question."""


@dataclass(frozen=True)
class Crash:
    """The service is killed and starts again."""


Deed = Say | Tick | TickDashboard | Push | Approve | Crash


@dataclass(frozen=True)
class Play:
    name: str
    about: str
    outcomes: tuple[Outcome, ...]
    """The outcomes of its turns, in order."""
    opening: str = COMMENT
    tests_pass: bool | None = True
    """The tests pass on the pushed code; None: nothing is pushed."""
    meanwhile: Deed | None = None
    """The act in the middle of the first turn."""
    afterwards: Say | Tick | TickDashboard | Push | None = None
    """The act after the first turn, left to the person who watches the page."""
    on_pull: bool = False
    """The play is on a pull request that somebody else opened."""
    dashboard: bool = False
    """The repository has a dashboard."""
    tracker: bool = False
    """The account has stored an MCP server, and the repository opens it."""
    packages: bool = False
    """The repository's setup installs a private package, and its registry demands a credential."""

    @property
    def hint(self) -> str:
        """Tell the person who watches what they may do now."""
        match self.afterwards:
            case Say(words):
                return f"Your turn, once it has ended: comment {words}"
            case Tick(beside):
                return f"Your turn, once it has ended: tick “{beside}” in the comment"
            case TickDashboard(beside):
                return f"Your turn, once it has ended: tick “{beside}” in the dashboard, a separate issue"
            case Push():
                return "Your turn, once it has ended: press “Push the author's fix”"
            case None:
                return ""


PLAYS = {
    play.name: play
    for play in (
        Play("fix", "an issue becomes a pull request", (Outcome.PULL_REQUEST,)),
        Play("ask", "a question is answered", (Outcome.ANSWERED,), "/claude ask what does `discounted` do?", None),
        Play(
            "plan",
            "a plan waits for a tick, and is carried out",
            (Outcome.PLANNED, Outcome.PULL_REQUEST),
            "/claude plan how to fix this",
            afterwards=Tick("Approve the plan"),
        ),
        Play(
            "steer",
            "words reach the agent while it works",
            (Outcome.PULL_REQUEST,),
            meanwhile=Say("/claude also test a discount of exactly 100 %"),
        ),
        Play(
            "stop",
            "a tick ends the work, another goes on with it",
            (Outcome.STOPPED, Outcome.PULL_REQUEST),
            meanwhile=Tick("Stop"),
            afterwards=Tick("Continue"),
        ),
        Play(
            "undo",
            "the push is taken back",
            (Outcome.PULL_REQUEST, Outcome.PUSHED),
            tests_pass=False,
            afterwards=Say("/claude undo"),
        ),
        Play(
            "review",
            "a pull request gets line comments, and another look after a push that fixes one",
            (Outcome.REVIEWED, Outcome.REVIEWED),
            "/claude review",
            None,
            afterwards=Push(basket.PUSH),
            on_pull=True,
        ),
        Play(
            "findings",
            "a tick has a finding fixed, and a short review looks at the push; another tick says that one is no bug",
            (Outcome.REVIEWED, Outcome.PUSHED, Outcome.REVIEWED),
            "/claude review",
            None,
            afterwards=Tick("Fix this"),
            on_pull=True,
        ),
        Play(
            "dashboard",
            "one issue shows what runs and waits; a plan is approved there",
            (Outcome.PLANNED, Outcome.PULL_REQUEST),
            "/claude plan how to fix this",
            afterwards=TickDashboard("Approve the plan"),
            dashboard=True,
        ),
        Play(
            "packages",
            "setup and checks install a private package; the registry's credential stays on the host",
            (Outcome.PULL_REQUEST,),
            packages=True,
        ),
        Play(
            "mcp",
            "the agent calls a tool of the account's MCP server, once a person has said yes to the very call",
            (Outcome.PULL_REQUEST,),
            tracker.OPENING,
            meanwhile=Approve(),
            tracker=True,
        ),
        Play(
            "crash",
            "Forgehand is killed at work and started again",
            (Outcome.PULL_REQUEST,),
            meanwhile=Crash(),
        ),
    )
}
