"""The whole stand-in: one server on loopback that answers as GitHub does, and methods that change its world."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypeVar

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from bot.simulation.github import (
    attachments,
    graphql,
    lfs,
    rest,
    rest_actions,
    rest_app,
    rest_checks,
    rest_git,
    rest_issues,
    rest_pulls,
    rest_repos,
    rest_reviews,
    web_apps,
    web_sign_in,
)
from bot.simulation.github.actions import Actions
from bot.simulation.github.auth import TokenRules
from bot.simulation.github.events import Events
from bot.simulation.github.faults import Call, Faults, FaultyApp
from bot.simulation.github.git_http import GitHttp, install_hook
from bot.simulation.github.limits import Limits
from bot.simulation.github.state import Clock, State
from bot.simulation.github.webhooks import Webhooks
from bot.simulation.github.world_apps import Apps
from bot.simulation.github.world_repos import Repos
from bot.simulation.github.world_threads import Threads
from bot.simulation.github.world_workflows import Workflows
from bot.simulation.loopback import LoopbackServer

T = TypeVar("T")
# the checks of a commit end in a fixed word and must be tried before a ref that may hold slashes
TABLES = (
    rest_app.ROUTES,
    rest_actions.ROUTES,
    rest_checks.ROUTES,
    rest_git.ROUTES,
    rest_issues.ROUTES,
    rest_reviews.ROUTES,
    rest_pulls.ROUTES,
    rest_repos.ROUTES,
    rest_repos.LAST,
)


class SimulatedGitHub(Apps, Repos, Threads, Workflows):
    """Start it with `async with SimulatedGitHub.running(folder) as github`; `extra_routes` adds pages to it."""

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock = time.time,
        token_format: str = "classic",
        webhook_timeout: float = 10.0,
        extra_routes: Callable[[SimulatedGitHub], Sequence[BaseRoute]] | None = None,
    ) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.state = State(root, clock)
        self.webhooks = Webhooks(self.state, webhook_timeout)
        self.actions = Actions(self.state, Events(self.state, self.webhooks))
        self.limits = Limits(clock)
        self.tokens = TokenRules(token_format)
        self.faults = Faults()
        self._server, self._log_host, self._storage = LoopbackServer(), LoopbackServer(), LoopbackServer()
        desk = rest.Desk(self.state, self.actions, self.limits, self.tokens)
        large = Route("/{owner}/{repo}.git/info/lfs/{tail:path}", lfs.LfsApi(desk).answer, methods=["POST"])
        git = Route("/{owner}/{repo}.git/{tail:path}", GitHttp(desk, install_hook(root)))
        pages = extra_routes(self) if extra_routes else ()
        sites = [graphql.route(desk), *attachments.routes(self.state), large, git, *web_apps.routes(self)]
        sites += [*web_sign_in.routes(self.state), *pages]
        app = Starlette(routes=[*rest.routes(desk, TABLES), *sites])
        self._app = FaultyApp(app, self.faults, self._server.cut)

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        root: Path,
        port: int = 0,
        *,
        clock: Clock = time.time,
        token_format: str = "classic",
        extra_routes: Callable[[SimulatedGitHub], Sequence[BaseRoute]] | None = None,
    ) -> AsyncIterator[SimulatedGitHub]:
        """Serve until the block ends, and then raise a mistake of the stand-in itself."""
        github = cls(root, clock=clock, token_format=token_format, extra_routes=extra_routes)
        try:
            await github.start(port)
            yield github
        finally:
            await github.stop()
        if github._app.errors:
            raise RuntimeError("the simulated GitHub made a mistake of its own") from github._app.errors[0]

    async def start(self, port: int = 0) -> None:
        self.state.url = f"http://127.0.0.1:{await self._server.start(self._app, port)}"
        logs = rest_actions.log_host(self.state)
        self.state.logs_url = f"http://127.0.0.1:{await self._log_host.start(logs, 0)}"
        self.state.storage_url = f"http://127.0.0.1:{await self._storage.start(lfs.storage(self.state), 0)}"

    async def stop(self) -> None:
        self.faults.clear()
        await self._server.stop()
        await self._log_host.stop()
        await self._storage.stop()
        await self.webhooks.close()

    @property
    def url(self) -> str:
        return self.state.url

    @property
    def api_url(self) -> str:
        return self.state.api_url

    @property
    def calls(self) -> list[Call]:
        """Return all requests, in order."""
        return self._app.calls

    async def changed(self, predicate: Callable[[], T | Literal[False] | None], timeout: float = 10.0) -> T:
        """Wait until the predicate is true; it is asked after each change of the state."""
        return await self.state.changed(predicate, timeout)

    async def idle(self, timeout: float = 15.0) -> None:
        """Wait until every webhook so far was answered or given up."""
        await self.webhooks.idle(timeout)
