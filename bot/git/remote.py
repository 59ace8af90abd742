"""Reaches a remote: its address and token, its branches, its refusals in our words, the removal of our own refs."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from bot.errors import BotError, GitHubRefused, GitHubUnavailable, NotFound, Unrecognised
from bot.git import names
from bot.git.errors import (
    BadName,
    GitFailed,
    GitRefusal,
    GitTimedOut,
    PushRefused,
    RefMissing,
    RepositoryEmpty,
    RepositoryUnsupported,
)
from bot.git.run import Io, RemoteAccess, run_git

LIST_SECONDS = 60.0
LIST_CAP = 64 << 20
MAX_WORDS = 4096

_STATUS = re.compile(r"The requested URL returned error: (\d{3})")
_UNREACHABLE = (
    *("Could not resolve", "Failed to connect", "Connection refused", "Connection reset", "Connection timed out"),
    *("Empty reply", "early EOF", "hung up unexpectedly", "RPC failed", "transfer closed", "Operation timed out"),
    *("Operation too slow", "GnuTLS", "SSL", "unexpected disconnect", "Recv failure", "Send failure", "HTTP/2 stream"),
)
_NOT_THERE = ("Repository not found", "' not found", "does not appear to be a git repository")
_REFUSALS = (
    (GitRefusal.WORKFLOW, ("refusing to allow",)),
    (GitRefusal.SECRET, ("cannot contain secrets", "secret-scanning", "gh009")),
    (GitRefusal.FILE_SIZE, ("gh001", "exceeds github's file size limit", "file size limit")),
    (GitRefusal.LFS, ("gh008", "lfs object", "lfs pointer")),
    (GitRefusal.PROTECTED, ("gh006", "gh003", "protected branch")),
    (GitRefusal.RULES, ("gh013", "gh010", "repository rule violations", "pre-receive hook declined", "gh007")),
    (GitRefusal.NAME, ("directory file conflict", "cannot create", "funny refname", "gh002")),
    (
        GitRefusal.NON_FAST_FORWARD,
        ("non-fast-forward", "fetch first", "stale info", "cannot lock ref", "already exists"),
    ),
    (GitRefusal.PERMISSION, ("denied to", "archived", "read-only", "permission", "not granted")),
)


async def heads(git_dir: Path, access: RemoteAccess) -> dict[str, str]:
    """All branches of the remote by their short names."""
    result = await _ask(["ls-remote", "--heads", "--end-of-options", access.url], git_dir, access)
    return {ref.removeprefix("refs/heads/"): sha for sha, ref in _rows(result)}


async def is_empty(git_dir: Path, access: RemoteAccess) -> bool:
    return not await _ask(["ls-remote", "--end-of-options", access.url], git_dir, access, Io(cap=1), whole=False)


async def branch_sha(git_dir: Path, access: RemoteAccess, branch: str) -> str | None:
    ref = names.push_ref(branch)
    only = ["--heads"] if ref.startswith("refs/heads/") else []
    result = await _ask(["ls-remote", *only, "--end-of-options", access.url, ref], git_dir, access)
    return next((sha for sha, found in _rows(result) if found == ref), None)


async def _ask(
    argv: list[str], git_dir: Path, access: RemoteAccess, io: Io | None = None, *, whole: bool = True
) -> bytes:
    try:
        io = io or Io(cap=LIST_CAP)
        result = await run_git(argv, git_dir, access=access, io=io, timeout=LIST_SECONDS)
    except (GitFailed, GitTimedOut) as error:
        raise failure(error) from None
    if result.truncated and whole:
        raise RepositoryUnsupported("The repository has too many branches and tags to be listed.")
    return result.stdout


def _rows(output: bytes) -> list[tuple[str, str]]:
    lines = output.decode("utf-8", "surrogateescape").splitlines()
    return [(sha, ref) for sha, _, ref in (line.partition("\t") for line in lines)]


def failure(error: GitFailed | GitTimedOut) -> BotError:
    """The failure of a command that talked to a remote: ours where the remote's words are understood, else the same."""
    if isinstance(error, GitTimedOut):
        return GitHubUnavailable(f"git {error.command} with the remote took too long")
    words = error.words
    if "mismatched algorithms" in words or "object format" in words:
        return RepositoryUnsupported("The repository uses the SHA-256 object format, which is not handled.")
    if "find remote ref" in words or "not our ref" in words or "no such remote ref" in words:
        return RefMissing("The branch or commit is not in the repository (any more).")
    if found := _STATUS.search(words):
        return _http_failure(int(found[1]), error.command, words)
    if any(sign in words for sign in _NOT_THERE):
        return NotFound("the repository is not there or the App may not see it")
    if "could not read Username" in words or "Authentication failed" in words:
        return Unrecognised("the installation's token was not accepted")
    if any(sign in words for sign in _UNREACHABLE):
        return GitHubUnavailable(f"the remote did not answer git {error.command}")
    return error


def _http_failure(status: int, command: str, words: str) -> BotError:
    if status == 404:
        return NotFound("the repository is not there or the App may not see it")
    if status == 429 or status >= 500 or "rate limit" in words.lower():
        return GitHubUnavailable(f"the remote answered git {command} with {status}")
    if status in (301, 302, 307, 308):
        return GitHubRefused(status, "the repository has moved; redirects are not followed with a token")
    return GitHubRefused(status, f"git {command} was not allowed")


def missing(ref: str, *, empty: bool) -> RefMissing:
    if empty:
        return RepositoryEmpty("The repository is empty: it needs a first commit before there is anything to work on.")
    return RefMissing(f"`{ref.removeprefix('refs/heads/')}` is not in the repository (any more).")


def refusal(reason: str, stderr: str) -> PushRefused:
    """`reason` is what stands in brackets behind the ref in git's report."""
    words = remote_words(stderr)
    told = f"{reason}\n{words}".lower()
    kind = next((kind for kind, signs in _REFUSALS if any(sign in told for sign in signs)), GitRefusal.OTHER)
    return PushRefused(kind, "\n".join(filter(None, (words, clean(reason)))))


def remote_words(stderr: str) -> str:
    """What the remote told the person who pushes, without git's own lines and prefixes."""
    lines = [line.removeprefix("remote:").strip() for line in stderr.splitlines() if line.startswith("remote:")]
    return clean("\n".join(lines))


def clean(text: str) -> str:
    """No terminal sequences, control characters or runs of empty lines; bounded."""
    text = re.sub(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)", "", text)
    text = "".join(c for c in text if c == "\n" or c.isprintable())
    return re.sub(r"\n{3,}", "\n\n", text).strip()[:MAX_WORDS]


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
    stands = await branch_sha(git_dir, access, ref)
    if stands != sha:
        return Removed.WAS_GONE if stands is None else Removed.MOVED
    failure = await _sent(
        git_dir, access, [f"--force-with-lease={ref}:{sha}", "--end-of-options", access.url, f":{ref}"]
    )
    stands = await branch_sha(git_dir, access, ref)  # only the remote knows what became of it
    if stands == sha:
        raise failure or GitHubUnavailable("the ref was not removed, for a reason that the remote did not make clear")
    return Removed.GONE if stands is None else Removed.MOVED


async def _sent(git_dir: Path, access: RemoteAccess, argv: list[str]) -> BotError | None:
    try:
        whole = ["push", "--porcelain", "--no-verify", *argv]
        await run_git(whole, git_dir, access=access, timeout=REMOVE_SECONDS, accept=(0, 1))
    except (GitFailed, GitTimedOut) as error:
        known = failure(error)
        return None if isinstance(known, GitFailed) else known
    return None
