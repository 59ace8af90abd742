"""Finds repositories that require signed commits on our branches but do not set `commits: verified`."""

from __future__ import annotations

import contextlib

from bot import account_settings, repo_config
from bot.checkup.lines import CheckupFinding, good, warning
from bot.errors import BadRepoConfig, GitHubRefused
from bot.github.client import GitHubApp, InstallationClient
from bot.models import Repo
from bot.repo_config import layers
from bot.sessions import account_repository

MOST = 30
"""How many repositories of an installation we look at."""
WANTED = "required_signatures"
UNSEEN = (
    "Forgehand cannot see branch protection without a ruleset: that takes the permission `administration`, which no "
    "session needs. If protection refuses a push, the comment says so."
)


async def examine(github: GitHubApp) -> CheckupFinding:
    named: list[str] = []
    for one in await github.installations():
        if not one.is_suspended:
            at = github.installation(one.id)
            shared = await account_repository.read(at, one.account.login, 0.0)
            looked_at = (await at.repos())[:MOST]
            named += [repo.full_name for repo in looked_at if await _refuses(at, repo, shared.config)]
    if not named:
        return good("signatures", f"No ruleset blocks our pushes. {UNSEEN}")
    fix = f"Set `commits: verified` in their {repo_config.PATH}: then GitHub makes and signs the commits."
    words = f"These repositories require signed commits and refuse our pushes: {', '.join(named[:5])}."
    return warning("signatures", words, fix)


async def _refuses(at: InstallationClient, repo: Repo, shared: str | None) -> bool:
    try:
        text = await at.file(repo, repo_config.PATH, repo.default_branch)
        found = account_settings.defaults({}, shared, repo.owner)
        with contextlib.suppress(BadRepoConfig):
            found = found.under(layers.of_file(text or "", repo_config.PATH))
        config = found.config
        return config.commits != "verified" and WANTED in await at.rules(repo, config.branch_name(1, "abcd1234"))
    except GitHubRefused:  # a plan without rulesets, or a repository that is going away
        return False
