"""How the checks of a pull request's head stand: under way, red by what it changes, or red on its base too."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bot.github import checks
from bot.github.checks import Result
from bot.github.client import GitHubApp
from bot.github.types import Pull
from bot.models import Thread


@dataclass(frozen=True)
class Standing:
    under_way: bool
    red: tuple[Result, ...]
    """By what the pull request changes."""
    inherited: tuple[Result, ...]
    """Red where it comes from, or where it goes to, as well."""


async def at_head(github: GitHubApp, thread: Thread, pull: Pull, sha: str) -> Standing:
    """Of the checks of others; ours tell what we do."""
    me = (await github.identity()).app_id
    at = github.installation(thread.installation)
    found = [one for one in await checks.of_commit(at, thread.repo, sha) if one.app_id != me]
    failed = [one for one in found if one.failed]
    known = await _red_below(github, thread, pull, sha) if failed else ()
    return Standing(
        under_way=any(not one.ended for one in found),
        red=tuple(one for one in failed if _key(one) not in known),
        inherited=tuple(one for one in failed if _key(one) in known),
    )


async def _red_below(github: GitHubApp, thread: Thread, pull: Pull, sha: str) -> Collection[tuple[int, str]]:
    """At the head of the base branch, and at the commit where the pull request parted from it."""
    at, repo = github.installation(thread.installation), thread.repo
    places = {await at.branch_sha(repo, pull.base_branch), await checks.merge_base(at, repo, pull.base_branch, sha)}
    found: set[tuple[int, str]] = set()
    for place in places - {None, sha}:
        assert place is not None
        found |= {_key(one) for one in await checks.of_commit(at, repo, place) if one.failed}
    return found


def _key(one: Result) -> tuple[int, str]:
    return one.app_id, one.name
