"""The demo's world: a simulated GitHub with pages, a scripted model, and the real service between them."""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import secrets
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot import app, settings
from bot.cli.sweep import credentials_in
from bot.errors import SettingsError
from bot.models import Outcome
from bot.simulation.anthropic import SimulatedAnthropic
from bot.simulation.github import SimulatedGitHub
from bot.simulation.github.state import App, Comment, Issue, Pull, Repository
from bot.simulation.pages.views import Pages
from bot.simulation.scenarios import discount
from bot.workbench import slots
from sandbox.choice import choose

NOTICE = (
    "This GitHub is simulated and the model's words are scripted. Real are: Forgehand itself, its gateway, git, "
    "the Claude Code CLI, and the sandbox: {isolation}."
)
SIMULATED = ["GitHub (API, git server, webhooks, pages)", "the model's answers (a scripted Anthropic API)"]
MAINTAINER = "maya"
FINAL = "outcome="
STALE = ("repositories", "turns", "transcripts", "kept")


@dataclass
class Story:
    """What happens in one run, with the times at which it happened."""

    github: SimulatedGitHub
    model: SimulatedAnthropic
    repo: Repository
    issue: Issue
    app: App
    data_dir: Path
    url: str
    isolation: str
    watched: asyncio.Event
    """Set once somebody looks at the page."""
    secrets: list[str]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def live(self) -> Comment | None:
        """The live comment of the first turn."""
        return next((one for one in self.issue.comments if one.author is self.app.bot), None)

    @property
    def pull(self) -> Pull | None:
        return next(iter(self.repo.pulls.values()), None)

    @property
    def pull_url(self) -> str | None:
        return f"{self.github.url}/{self.repo.full_name}/pull/{self.pull.number}" if self.pull else None

    async def tell(self, timeout: float = 120.0) -> Outcome:
        """The maintainer asks; returns how it ended."""
        began = time.monotonic()

        def passed(stage: str) -> None:
            self.seconds[stage] = round(time.monotonic() - began, 3)

        self.github.comment(self.issue, discount.COMMENT, by=MAINTAINER)
        await self.github.changed(lambda: self.live, timeout)
        passed("comment")
        await self.model.until(lambda model: bool(model.requests), timeout)
        passed("first_model_request")
        pulls = asyncio.create_task(self.github.changed(lambda: self.pull, timeout))
        pulls.add_done_callback(lambda task: None if task.cancelled() else passed("pull_request"))
        outcome = await self.github.changed(self._outcome, timeout)
        assert outcome is not None
        passed("final")
        pulls.cancel()
        await asyncio.gather(pulls, return_exceptions=True)
        return outcome

    def _outcome(self) -> Outcome | None:
        first = self.live.body.partition("\n")[0] if self.live else ""
        return Outcome(first.partition(FINAL)[2].split()[0]) if FINAL in first else None

    async def tests_pass(self) -> bool:
        """On a checkout of what was really pushed."""
        pull = self.pull
        if pull is None:
            return False
        folder = self.github.state.root / "checked-out"
        self.repo.checkout_to(folder, pull.head)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "unittest", "-q", cwd=folder, stderr=asyncio.subprocess.DEVNULL
        )
        return await process.wait() == 0

    def credentials_found(self) -> list[str]:
        """Where one of this run's credentials can be read though it should not: nowhere, we hope."""
        tokens = [token.value for token in self.github.state.tokens.values()]
        said = [request.body for request in self.model.requests]
        bodies = [body for issue in self.repo.issues.values() for one in issue.comments for _, body in one.history]
        return credentials_in([*self.secrets, *tokens], said, bodies, self.data_dir / "state.db")


@asynccontextmanager
async def telling(root: Path, port: int, *, paced: bool, sweeping: bool) -> AsyncIterator[Story]:
    """Everything up and connected; nobody has asked for anything yet. Demos beside each other have a folder each,
    and none leaves anything running."""
    async with AsyncExitStack() as stack:
        folder = _taken(stack, root)
        data_dir, github_dir = folder / "data", folder / "github"
        shutil.rmtree(github_dir, ignore_errors=True)
        _forget(data_dir)
        key, hook = f"sk-ant-api03-{secrets.token_urlsafe(60)}", secrets.token_hex(24)
        pages = Pages(by=MAINTAINER, notice="")
        github = await _github(stack, github_dir, port, pages)
        model = await stack.enter_async_context(SimulatedAnthropic.running(api_key=key))
        model.default(discount.script(paced=paced, sweeping=sweeping))
        registered = github.create_app(slug="forgehand", webhook_secret=hook)
        repo, issue = _shop(github, registered)
        values = _settings(data_dir, github, registered, model, key)
        stack.push_async_callback(_end_environments, data_dir)
        service = await stack.enter_async_context(app.running(settings.read(values)))
        registered.webhook_url = f"{service.url}/webhook"
        pages.notice = NOTICE.format(isolation=service.isolation)
        yield Story(
            github=github,
            model=model,
            repo=repo,
            issue=issue,
            app=registered,
            data_dir=data_dir,
            url=f"{github.url}/{repo.full_name}/issues/{issue.number}",
            isolation=service.isolation,
            watched=pages.watched,
            secrets=[key, hook, values["FORGEHAND_SECRET_KEY"], registered.private_key_pem],
        )


def _taken(stack: AsyncExitStack, root: Path) -> Path:
    try:
        folder = stack.enter_context(slots.taken(root))
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"{root} cannot be used: {error.strerror}. Set FORGEHAND_DATA_DIR to a folder of your own."
        ) from None
    return folder


async def _github(stack: AsyncExitStack, root: Path, port: int, pages: Pages) -> SimulatedGitHub:
    try:
        return await stack.enter_async_context(SimulatedGitHub.running(root, port, extra_routes=pages.routes))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is used by another program" if error.errno == errno.EADDRINUSE else "is not for ordinary users"
        raise SettingsError(f"Port {port} {why}. Name another with --port; 0 takes any free one.") from None


def _shop(github: SimulatedGitHub, registered: App) -> tuple[Repository, Issue]:
    repo = github.create_repo(discount.REPOSITORY, files=discount.FILES, private=True)
    github.user(MAINTAINER)
    repo.grant(MAINTAINER, "maintain")
    github.install(registered, repos=[repo])
    issue = github.open_issue(repo, title=discount.ISSUE_TITLE, body=discount.ISSUE_BODY, by=MAINTAINER)
    return repo, issue


async def _end_environments(data_dir: Path) -> None:
    """Sessions outlive the service that began them; those of a demo are of no use to the next one."""
    choice = await choose(data_dir / "environments")
    for left in await choice.provider.find({}):
        await left.terminate()
    await choice.provider.close()


def _settings(
    data_dir: Path, github: SimulatedGitHub, registered: App, model: SimulatedAnthropic, key: str
) -> dict[str, str]:
    return {
        "FORGEHAND_DATA_DIR": str(data_dir),
        "FORGEHAND_PORT": "0",
        "FORGEHAND_KEEP_MINUTES": "0",  # what it leaves behind is removed with its folder
        "FORGEHAND_GITHUB_URL": github.url,
        "FORGEHAND_GITHUB_API_URL": github.api_url,
        "FORGEHAND_APP_ID": str(registered.id),
        "FORGEHAND_PRIVATE_KEY": registered.private_key_pem,
        "FORGEHAND_WEBHOOK_SECRET": registered.webhook_secret,
        "FORGEHAND_SECRET_KEY": base64.b64encode(os.urandom(32)).decode(),
        "FORGEHAND_ACCOUNTS": discount.REPOSITORY.partition("/")[0],
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_BASE_URL": model.url,
    }


def _forget(data_dir: Path) -> None:
    """Each demo begins anew; the laid-out tools of the environments stay, they are large."""
    for name in STALE:
        shutil.rmtree(data_dir / name, ignore_errors=True)
    for pattern in ("state.db*", "engine.db*"):
        for file in data_dir.glob(pattern):
            file.unlink()
