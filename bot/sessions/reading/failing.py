"""How the checks of a pull request's head stand: under way, red by what it changes, or red on its base too."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bot.errors import GitHubRefused
from bot.github import checks, statuses
from bot.github.checks import Result
from bot.github.client import GitHubApp, Installation
from bot.github.types import Pull
from bot.models import Repo, Thread


@dataclass(frozen=True)
class Standing:
    under_way: bool
    red: tuple[Result, ...]
    """By what the pull request changes."""
    inherited: tuple[Result, ...]
    """Red where it comes from, or where it goes to, as well."""
    without_statuses: bool = False
    """The App may not read commit statuses: what CI systems report by them is not known."""


async def at_head(github: GitHubApp, thread: Thread, pull: Pull, sha: str) -> Standing:
    """Of the checks of others; ours tell what we do."""
    me = (await github.identity()).app_id
    at = github.installation(thread.installation)
    reported = await _statuses(at, thread.repo, sha)
    found = [one for one in await checks.of_commit(at, thread.repo, sha) if one.app_id != me] + (reported or [])
    failed = [one for one in found if one.failed]
    known = await _red_below(at, thread.repo, pull, sha) if failed else ()
    return Standing(
        under_way=any(not one.ended for one in found),
        red=tuple(one for one in failed if _key(one) not in known),
        inherited=tuple(one for one in failed if _key(one) in known),
        without_statuses=reported is None,
    )


async def _statuses(at: Installation, repo: Repo, sha: str) -> list[Result] | None:
    """None where the App may not read them, which is no reason to do without the checks."""
    try:
        return await statuses.of_commit(at, repo, sha)
    except GitHubRefused:
        return None


async def _red_below(at: Installation, repo: Repo, pull: Pull, sha: str) -> Collection[tuple[int, str]]:
    """At the head of the base branch, and at the commit where the pull request parted from it."""
    places = {await at.branch_sha(repo, pull.base_branch), await checks.merge_base(at, repo, pull.base_branch, sha)}
    found: set[tuple[int, str]] = set()
    for place in places - {None, sha}:
        assert place is not None
        results = await checks.of_commit(at, repo, place) + (await _statuses(at, repo, place) or [])
        found |= {_key(one) for one in results if one.failed}
    return found


def _key(one: Result) -> tuple[int, str]:
    return one.app_id, one.name
