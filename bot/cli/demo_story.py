"""One run of the demo: acts a play out on the simulated GitHub and reports the result."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from dataclasses import dataclass, field

from bot.cli.demo_replicas import DemoReplicas
from bot.cli.demo_service import DemoService
from bot.cli.sweep import credentials_in
from bot.models import Outcome
from bot.simulation.anthropic import SimulatedAnthropic
from bot.simulation.github import SimulatedGitHub
from bot.simulation.github.accounts import App
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Comment, Issue, Pull
from bot.simulation.registries import SimulatedRegistries
from bot.simulation.scenarios import basket
from bot.simulation.scenarios.discount import MIDDLE
from bot.simulation.scenarios.plays import Approve, Crash, Play, Push, Say, Tick, TickDashboard

MAINTAINER = "maya"
MARKER = re.compile(r"<!-- forgehand:session=\w+ turn=\d+ state=\w+(?: outcome=(\w+))? -->")
QUESTION = "<!-- forgehand:ask="
SECONDS = 120.0


@dataclass
class Story:
    """A play in progress; `seconds` holds the time of each stage."""

    play: Play
    github: SimulatedGitHub
    model: SimulatedAnthropic
    service: DemoService | DemoReplicas
    repo: Repository
    issue: Issue
    app: App
    url: str
    watched: asyncio.Event
    secrets: list[str]
    seconds: dict[str, float] = field(default_factory=dict)
    registries: SimulatedRegistries | None = None
    """What the play's setup installs from."""

    @property
    def live(self) -> list[Comment]:
        written = (one for one in self.issue.comments if one.author is self.app.bot and not one.deleted)
        return [one for one in written if MARKER.match(one.body)]

    @property
    def outcomes(self) -> list[Outcome]:
        found = (MARKER.match(one.body) for one in self.live)
        return [Outcome(one[1]) for one in found if one and one[1]]

    @property
    def pull(self) -> Pull | None:
        return next((one for one in self.repo.pulls.values() if one.issue.author is self.app.bot), None)

    @property
    def verified(self) -> list[str]:
        """Return the checks that Forgehand ran on the pull request's code, as its text lists them."""
        said = (self.pull.body or "" if self.pull else "").partition("### Verified by Forgehand")[2]
        return [line.removeprefix("- ") for line in said.splitlines() if line.startswith(("- ✓", "- ✗"))]

    @property
    def pull_url(self) -> str | None:
        return f"{self.github.url}/{self.repo.full_name}/pull/{self.pull.number}" if self.pull else None

    @property
    def dashboard(self) -> Issue | None:
        ours = (one for one in self.repo.issues.values() if one.author is self.app.bot and one.pull is None)
        return next(ours, None)

    @property
    def dashboard_url(self) -> str | None:
        return f"{self.github.url}/{self.repo.full_name}/issues/{self.dashboard.number}" if self.dashboard else None

    async def begin(self) -> None:
        """Play the first turn, with everything that happens in the middle of it."""
        if self.play.dashboard:
            self.github.comment(self.issue, "/claude dashboard", by=MAINTAINER)
            await self.github.changed(lambda: self.dashboard, SECONDS)
        began = time.monotonic()
        self.github.comment(self.issue, self.play.opening, by=MAINTAINER)
        stages = ("comment", "first_model_request", "pull_request")
        watches = [asyncio.create_task(self._timed(stage, began)) for stage in stages]
        try:
            await self._interrupt()
            await self.github.changed(lambda: self.outcomes, SECONDS)
            self.seconds["final"] = round(time.monotonic() - began, 3)
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def end(self) -> None:
        """Play what the person does then, and the turns that it starts."""
        if isinstance(deed := self.play.afterwards, TickDashboard):
            await self.github.changed(lambda: deed.beside in ((self.dashboard and self.dashboard.body) or ""), SECONDS)
        if self.play.afterwards is not None:
            self.do(self.play.afterwards)
            await self.github.changed(lambda: len(self.outcomes) >= len(self.play.outcomes), SECONDS)

    async def _timed(self, stage: str, began: float) -> None:
        if stage == "first_model_request":
            await self.model.until(lambda model: bool(model.requests), SECONDS)
        else:
            await self.github.changed(lambda: self.live if stage == "comment" else self.pull, SECONDS)
        self.seconds[stage] = round(time.monotonic() - began, 3)

    async def _interrupt(self) -> None:
        deed = self.play.meanwhile
        if deed is None:
            return
        if isinstance(deed, Approve):
            comments = self.issue.comments
            await self.github.changed(lambda: any(one.body.startswith(QUESTION) for one in comments), SECONDS)
            self.github.comment(self.issue, "/claude approve", by=MAINTAINER)
            return
        await self.model.reached(MIDDLE, SECONDS)
        if isinstance(deed, Crash):
            await self.service.crash()
        else:
            said = self.do(deed)
            reactions = said.reactions if said else []
            await self.github.changed(
                lambda: self.outcomes or any(one.content == "rocket" for one in reactions), SECONDS
            )
        self.model.release(MIDDLE)

    def do(self, deed: Say | Tick | TickDashboard | Push) -> Comment | None:
        if isinstance(deed, TickDashboard):
            assert self.dashboard is not None
            self.github.tick_issue(self.dashboard, deed.beside, by=MAINTAINER)
            return None
        if isinstance(deed, Push):
            self.github.commit(self.repo, basket.BRANCH, deed.files, by=basket.AUTHOR, message="Return the dearest")
            return None
        if isinstance(deed, Say):
            return self.github.comment(self.issue, deed.words, by=MAINTAINER)
        self.github.tick(self.live[-1], deed.beside, by=MAINTAINER)
        return self.live[-1]

    async def tests_pass(self) -> bool | None:
        """Run the tests on a checkout of the pushed commit; None if nothing was pushed."""
        if self.pull is None:
            return None
        folder = self.github.state.root / "checked-out"
        self.repo.checkout_to(folder, self.pull.head)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "unittest", "-q", cwd=folder, stderr=asyncio.subprocess.DEVNULL
        )
        return await process.wait() == 0

    async def credentials_found(self) -> list[str]:
        tokens = [token.value for token in self.github.state.tokens.values()]
        said = [request.body for request in self.model.requests]
        bodies = [body for issue in self.repo.issues.values() for one in issue.comments for _, body in one.history]
        return credentials_in([*self.secrets, *tokens], said, bodies, await self.service.stored())
