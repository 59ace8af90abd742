"""Takes a ref of our own away from a remote, only while it stands where we have put it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from bot.errors import BotError, GitHubUnavailable
from bot.git import names, remote
from bot.git.access import RemoteAccess
from bot.git.errors import BadName, GitFailed, GitTimedOut
from bot.git.run import run_git

REMOVE_SECONDS = 120.0


class Removed(StrEnum):
    """How it stands now."""

    GONE = "removed"
    WAS_GONE = "was not there any more"
    MOVED = "stands at another commit, and was left"


async def remove(git_dir: Path, access: RemoteAccess, ref: str, sha: str) -> Removed:
    """The remote itself compares: whoever moves the ref in between keeps it. Safe to repeat."""
    if not ref.startswith(names.OWN_REFS) or not names.is_branch(ref) or not names.is_sha(sha):
        raise BadName("only refs of our own are removed")
    stands = await remote.branch_sha(git_dir, access, ref)
    if stands != sha:
        return Removed.WAS_GONE if stands is None else Removed.MOVED
    failure = await _sent(
        git_dir, access, [f"--force-with-lease={ref}:{sha}", "--end-of-options", access.url, f":{ref}"]
    )
    stands = await remote.branch_sha(git_dir, access, ref)  # only the remote knows what became of it
    if stands == sha:
        raise failure or GitHubUnavailable("the ref was not removed, for a reason that the remote did not make clear")
    return Removed.GONE if stands is None else Removed.MOVED


async def _sent(git_dir: Path, access: RemoteAccess, argv: list[str]) -> BotError | None:
    try:
        whole = ["push", "--porcelain", "--no-verify", *argv]
        await run_git(whole, git_dir, access=access, timeout=REMOVE_SECONDS, accept=(0, 1))
    except (GitFailed, GitTimedOut) as error:
        known = remote.failure(error)
        return None if isinstance(known, GitFailed) else known
    return None
