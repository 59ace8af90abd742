"""Lists the commands and skills that a repository and its account offer by name, for `help`."""

from __future__ import annotations

from bot.errors import GitHubRefused
from bot.github.client import InstallationClient
from bot.handlers.desk import Desk
from bot.models import Repo, Thread
from bot.sessions import account_repository

MOST_FOLDERS = 5


async def names(thread: Thread, desk: Desk) -> list[str]:
    """Look at names only; a turn reads the files, at the commit of its base branch."""
    reads = desk.github.installation(thread.installation)
    try:
        shared = await account_repository.of(reads, desk.store, thread.repo.owner)
        found = await _of(reads, thread.repo)
        if (of_account := account_repository.shares_with(shared, thread.repo)) is not None:
            found += await _of(reads, of_account)
    except GitHubRefused:
        return []
    return list(dict.fromkeys(found))


async def _of(reads: InstallationClient, repo: Repo) -> list[str]:
    folder, branch, found = ".claude/commands", repo.default_branch, []
    groups = []
    for one in await reads.folder(repo, folder, branch):
        if one.is_folder:
            groups.append(one.name)
        elif one.name.endswith(".md"):
            found.append(one.name.removesuffix(".md"))
    for group in groups[:MOST_FOLDERS]:
        below = await reads.folder(repo, f"{folder}/{group}", branch)
        found += [f"{group}:{one.name.removesuffix('.md')}" for one in below if one.name.endswith(".md")]
    return found + [one.name for one in await reads.folder(repo, ".claude/skills", branch) if one.is_folder]
