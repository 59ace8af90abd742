"""Sorts the checks of a pull request's head: under way, red because of its changes, or red on its base too."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot.errors import GitHubRefused
from bot.github import checks
from bot.github.checks import CiResult
from bot.github.client import GitHubApp, InstallationClient
from bot.github.types import Pull
from bot.models import Repo, Thread


@dataclass(frozen=True)
class HeadChecks:
    under_way: tuple[CiResult, ...]
    red: tuple[CiResult, ...]
    """Red because of the pull request's changes."""
    inherited: tuple[CiResult, ...]
    """Red also where it comes from, or on its base."""
    undecided: tuple[CiResult, ...] = ()
    """Ended without passing or failing, such as cancelled ones or those that wait for a person."""
    has_any: bool = True
    without_statuses: bool = False
    """The App may not read commit statuses, by which some CI systems report."""


async def at_head(github: GitHubApp, thread: Thread, pull: Pull, sha: str) -> HeadChecks:
    me = (await github.identity()).app_id
    at = github.installation(thread.installation)
    reported = await _statuses(at, thread.repo, sha)
    found = [one for one in await checks.of_commit(at, thread.repo, sha) if one.app_id != me] + (reported or [])
    failed = [one for one in found if one.failed]
    inherited = await _inherited(at, thread.repo, pull, sha, failed) if failed else ()
    return HeadChecks(
        under_way=tuple(one for one in found if not one.ended),
        red=tuple(one for one in failed if one not in inherited),
        inherited=tuple(inherited),
        undecided=tuple(one for one in found if one.ended and one.conclusion in checks.UNDECIDED),
        has_any=bool(found),
        without_statuses=reported is None,
    )


async def _statuses(at: InstallationClient, repo: Repo, sha: str) -> list[CiResult] | None:
    """Read the commit statuses; None if the App may not."""
    try:
        return await checks.statuses(at, repo, sha)
    except GitHubRefused:
        return None


async def _inherited(
    at: InstallationClient, repo: Repo, pull: Pull, sha: str, failed: Sequence[CiResult]
) -> Collection[CiResult]:
    """Find those that are red at the head of the base branch too, or where the pull request parted from it."""
    places = {await at.branch_sha(repo, pull.base_branch), await checks.merge_base(at, repo, pull.base_branch, sha)}
    below: dict[str, list[CiResult]] = {}
    for place in places - {None, sha}:
        assert place is not None
        results = await checks.of_commit(at, repo, place) + (await _statuses(at, repo, place) or [])
        below[place] = [one for one in results if one.failed]
    known = {_key(one) for results in below.values() for one in results}
    alike = [one for one in failed if _key(one) in known]
    if not any(one.suite for one in alike):
        return alike
    workflows: dict[int, int] = {}  # by their suites: jobs of several workflows may share names
    with contextlib.suppress(GitHubRefused):  # the App may not read Actions
        workflows = {
            run.suite: run.workflow for at_sha in (sha, *below) for run in await checks.workflow_runs(at, repo, at_sha)
        }
    same = {(*_key(one), workflows.get(one.suite)) for results in below.values() for one in results}
    return [one for one in alike if (*_key(one), workflows.get(one.suite)) in same]


def _key(one: CiResult) -> tuple[int, str]:
    return one.app_id, one.name
