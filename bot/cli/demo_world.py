"""The demo's world: a simulated GitHub with pages, a scripted model, and the real service between them."""

from __future__ import annotations

import base64
import errno
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from bot.cli import demo_tracker
from bot.cli.demo_replicas import DemoReplicas
from bot.cli.demo_service import DemoService
from bot.cli.demo_story import MAINTAINER, Story
from bot.cli.registries import RegistryWish
from bot.cli.registries import store as store_registry
from bot.errors import SettingsError
from bot.settings import Secret
from bot.simulation.anthropic import SimulatedAnthropic
from bot.simulation.github import SimulatedGitHub
from bot.simulation.github.accounts import App
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Issue
from bot.simulation.pages.views import FORGEHANDS, Pages
from bot.simulation.registries import SimulatedRegistries
from bot.simulation.scenarios import basket, discount, packages, tracker
from bot.simulation.scenarios.plays import Play, Push
from bot.workbench import slots

NOTICE = (
    "This GitHub is simulated and the model's words are scripted. The rest is real: Forgehand itself, its gateway, "
    "git, the Claude Code CLI, and the sandbox ({isolation})."
)
HERE = "127.0.0.1"
SIMULATED = ["GitHub (API, git server, webhooks, pages)", "the model's answers (a scripted Anthropic API)"]


@asynccontextmanager
async def telling(root: Path, port: int, play: Play, *, watched: bool, replicas: int = 1) -> AsyncIterator[Story]:
    """Start and connect everything; nobody has asked for anything yet. `watched` gives a person time to look;
    otherwise the agent searches for credentials before it works. Demos at the same time use separate folders, and none
    leaves anything running."""
    async with AsyncExitStack() as stack:
        folder = _taken(stack, root)
        shutil.rmtree(folder / "github", ignore_errors=True)
        key, hook = f"sk-ant-api03-{secrets.token_urlsafe(60)}", secrets.token_hex(24)
        pages = Pages(by=MAINTAINER, notice="", hint=play.hint)
        github = await _github(stack, folder / "github", port, pages)
        model = await stack.enter_async_context(SimulatedAnthropic.running(api_key=key))
        interrupted = play.meanwhile is not None
        if play.tracker:
            model.default(tracker.script(paced=watched, sweeping=not watched))
        else:
            model.default(discount.script(paced=watched, sweeping=not watched, interrupted=interrupted))
        registered = github.create_app(slug="forgehand", webhook_secret=hook)
        registered.callback_urls = [f"{github.url}{FORGEHANDS}/oauth/callback"]
        github.state.at_the_browser = MAINTAINER
        repo, issue = _shop(github, registered, play)
        values = _settings(github, registered, model, key)
        service = await stack.enter_async_context(_serving(values, registered, folder, replicas, github.state.touch))
        registries = await _registries(stack, service) if play.packages else None
        more = await demo_tracker.stored(stack, service.values) if play.tracker else ()
        pages.notice = NOTICE.format(isolation=service.isolation)
        pages.service = service
        story = Story(
            play=play,
            github=github,
            model=model,
            service=service,
            repo=repo,
            issue=issue,
            app=registered,
            url=f"{github.url}/{repo.full_name}/{'pull' if issue.pull else 'issues'}/{issue.number}",
            watched=pages.watched,
            secrets=[
                *(key, hook, values["FORGEHAND_SECRET_KEY"], registered.private_key_pem, registered.client_secret),
                *service.secrets,
                *more,
                *([registries.authorisation.partition(" ")[2]] if registries else []),
            ],
            registries=registries,
        )
        if isinstance(play.afterwards, Push):
            pages.push = partial(story.do, play.afterwards)
        yield story


def _serving(
    values: Mapping[str, str], app: App, folder: Path, replicas: int, changed: Callable[[], None]
) -> AbstractAsyncContextManager[DemoService | DemoReplicas]:
    if replicas > 1:
        return DemoReplicas.running(values, app, folder, replicas, changed)
    return DemoService.running(values, app, folder)


def _taken(stack: AsyncExitStack, root: Path) -> Path:
    try:
        folder = stack.enter_context(slots.taken(root))
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"{root} cannot be used: {error.strerror}. Set FORGEHAND_DATA_DIR to a folder that you own."
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


async def _registries(stack: AsyncExitStack, service: DemoService | DemoReplicas) -> SimulatedRegistries:
    """Run a registry, and store it as an operator does, with its credential."""
    secret = secrets.token_urlsafe(40)
    registries = await stack.enter_async_context(SimulatedRegistries.running(f"Bearer {secret}"))
    packages.stock(registries)
    wish = RegistryWish(packages.REGISTRY, packages.KIND, registries.address(packages.KIND), "", HERE, "bearer", "")
    await store_registry(service.values, wish, Secret(secret), None)
    return registries


def _shop(github: SimulatedGitHub, registered: App, play: Play) -> tuple[Repository, Issue]:
    files = packages.FILES if play.packages else tracker.FILES if play.tracker else discount.FILES
    repo = github.create_repo(discount.REPOSITORY, files=files, private=True)
    github.user(MAINTAINER)
    repo.grant(MAINTAINER, "maintain")
    github.install(registered, repos=[repo])
    issue = github.open_issue(repo, title=discount.ISSUE_TITLE, body=discount.ISSUE_BODY, by=MAINTAINER)
    if not play.on_pull:
        return repo, issue
    github.user(basket.AUTHOR)
    repo.grant(basket.AUTHOR, "write")
    github.commit(repo, basket.BRANCH, basket.FILES, by=basket.AUTHOR, message=basket.TITLE)
    pull = github.open_pull(repo, head=basket.BRANCH, by=basket.AUTHOR, title=basket.TITLE, body=basket.BODY)
    return repo, pull.issue


def _settings(github: SimulatedGitHub, registered: App, model: SimulatedAnthropic, key: str) -> dict[str, str]:
    return {
        "FORGEHAND_PORT": "0",
        "FORGEHAND_KEEP_MINUTES": "0",  # the demo removes its folder anyway
        "FORGEHAND_SETTLE_SECONDS": "0",  # pushes come one by one, and someone watches
        "FORGEHAND_GITHUB_URL": github.url,
        "FORGEHAND_GITHUB_API_URL": github.api_url,
        "FORGEHAND_APP_ID": str(registered.id),
        "FORGEHAND_PRIVATE_KEY": registered.private_key_pem,
        "FORGEHAND_PUBLIC_URL": f"{github.url}{FORGEHANDS}",
        "FORGEHAND_CLIENT_ID": registered.client_id,
        "FORGEHAND_CLIENT_SECRET": registered.client_secret,
        "FORGEHAND_WEBHOOK_SECRET": registered.webhook_secret,
        "FORGEHAND_INSIDE_HOSTS": HERE,  # the registry of one play
        "FORGEHAND_SECRET_KEY": base64.b64encode(os.urandom(32)).decode(),
        "FORGEHAND_ACCOUNTS": discount.REPOSITORY.partition("/")[0],
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_BASE_URL": model.url,
    }
