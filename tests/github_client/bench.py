"""The client and the outbound door before the simulated GitHub."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.github.client import GitHubApp, InstallationClient
from bot.models import Repo, Thread
from bot.outbound import Outbound, Redactor
from bot.settings import GitHubSettings
from bot.simulation.github import accounts
from bot.simulation.github.simulated import SimulatedGitHub
from bot.simulation.github.threads import Issue

MARKER = "<!-- forgehand:session=abcd1234 turn=1"
BODY = f"{MARKER} state=queued -->\nQueued."
CREATE_COMMENT = "POST /repos/*/issues/*/comments"


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """The two sides, and what the tests look at."""

    github: SimulatedGitHub
    settings: GitHubSettings
    app: GitHubApp
    outbound: Outbound
    redactor: Redactor
    thread: Thread
    issue: Issue
    installed: accounts.Installation
    clock: Clock
    secrets: list[str] = field(default_factory=list, repr=False)
    retired: list[str] = field(default_factory=list)

    @property
    def repo(self) -> Repo:
        return self.thread.repo

    @property
    def at(self) -> InstallationClient:
        return self.app.installation(self.thread.installation)

    def sent(self, match: str) -> int:
        return sum(str(call).startswith(match) for call in self.github.calls)

    @property
    def comments(self) -> list[str]:
        return [comment.body for comment in self.issue.comments if not comment.deleted]
