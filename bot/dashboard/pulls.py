"""Our open pull requests in a repository, with the state of their checks, as GitHub has them."""

from __future__ import annotations

from dataclasses import dataclass

from bot.errors import GitHubRefused
from bot.github import checks
from bot.github.checks import CiResult
from bot.github.client import GitHubApp, InstallationClient
from bot.store.dashboards import Dashboard

MOST = 10


@dataclass(frozen=True)
class OwnPull:
    number: int
    title: str
    draft: bool
    passed: int
    running: int
    failing: tuple[str, ...]
    """Names of its failing checks."""


@dataclass(frozen=True)
class OwnPulls:
    shown: tuple[OwnPull, ...] = ()
    more: int = 0


async def read(github: GitHubApp, dashboard: Dashboard) -> OwnPulls:
    me, at = await github.identity(), github.installation(dashboard.installation_id)
    numbers = await at.own_open_pulls(dashboard.repo, me)
    shown = [await _pull(at, dashboard, number, me.app_id) for number in numbers[:MOST]]
    return OwnPulls(tuple(shown), max(0, len(numbers) - MOST))


async def _pull(at: InstallationClient, dashboard: Dashboard, number: int, app_id: int) -> OwnPull:
    pull = await at.pull(dashboard.repo, number)
    found = [one for one in await _results(at, dashboard, pull.head_sha) if one.app_id != app_id]
    failing = tuple(sorted(one.name for one in found if one.failed))
    running = sum(not one.ended for one in found)
    return OwnPull(number, pull.title, pull.draft, len(found) - running - len(failing), running, failing)


async def _results(at: InstallationClient, dashboard: Dashboard, sha: str) -> list[CiResult]:
    """Read what the App may read: without a permission, those results are missing."""
    found: list[CiResult] = []
    for source in (checks.of_commit, checks.statuses):
        try:
            found += await source(at, dashboard.repo, sha)
        except GitHubRefused:
            continue
    return found
