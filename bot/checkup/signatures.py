"""Which repositories want signed commits on branches of ours, and do not have them made that way."""

from __future__ import annotations

from bot import repo_config
from bot.checkup.lines import CheckupFinding, good, warning
from bot.errors import BadRepoConfig, GitHubRefused
from bot.github.client import GitHubApp, InstallationClient
from bot.models import Repo
from bot.repo_config import RepoConfig

MOST = 30
"""Repositories of an installation that are looked at."""
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
            named += [repo.full_name for repo in (await at.repos())[:MOST] if await _is_in_the_way(at, repo)]
    if not named:
        return good("signatures", f"No ruleset blocks our pushes. {UNSEEN}")
    fix = f"Set `commits: verified` in their {repo_config.PATH}: then GitHub makes and signs the commits."
    return warning("signatures", f"Signed commits are wanted by {', '.join(named[:5])}: pushes are refused.", fix)


async def _is_in_the_way(at: InstallationClient, repo: Repo) -> bool:
    try:
        config = await _config(at, repo)
        return config.commits != "verified" and WANTED in await at.rules(repo, config.branch_name(1, "abcd1234"))
    except GitHubRefused:  # a plan without rulesets, or a repository that is going away
        return False


async def _config(at: InstallationClient, repo: Repo) -> RepoConfig:
    try:
        return repo_config.parse(await at.file(repo, repo_config.PATH, repo.default_branch))
    except BadRepoConfig:
        return RepoConfig()
