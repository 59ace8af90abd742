"""Talks to a remote: lists and moves branches, never by force, and turns its refusals into our errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bot.errors import BotError, GitHubRefused, GitHubUnavailable, NotFound, Unrecognised
from bot.git import names
from bot.git.errors import (
    BadName,
    GitFailed,
    GitRefusal,
    GitTimedOut,
    PushRaced,
    PushRefused,
    RefMissing,
    RepositoryEmpty,
    RepositoryUnsupported,
)
from bot.git.run import Io, RemoteAccess, run_git

LIST_SECONDS = 60.0
REMOVE_SECONDS = 120.0
PUSH_SECONDS = 300.0
LIST_CAP = 64 << 20
MAX_WORDS = 4096
_REPORT = re.compile(r"^([ +*=!-])\t[^\t]*:([^\t]+)\t(.*)$", re.MULTILINE)
_REASON = re.compile(r"\((.*)\)\s*$")
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
    """Return the remote's branches by short name."""
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
    """Turn the failure of a remote command into our error if we understand the remote's words, else return it."""
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
    """Explain a refused push; `reason` is in brackets behind the ref in git's report."""
    words = remote_words(stderr)
    told = f"{reason}\n{words}".lower()
    kind = next((kind for kind, signs in _REFUSALS if any(sign in told for sign in signs)), GitRefusal.OTHER)
    return PushRefused(kind, "\n".join(filter(None, (words, clean_words(reason)))))


def remote_words(stderr: str) -> str:
    """Keep only the remote's message to the person who pushes, without git's own lines and prefixes."""
    lines = [line.removeprefix("remote:").strip() for line in stderr.splitlines() if line.startswith("remote:")]
    return clean_words("\n".join(lines))


def clean_words(text: str) -> str:
    """Remove terminal sequences, control characters and runs of empty lines, and cut the rest."""
    text = re.sub(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)", "", text)
    text = "".join(c for c in text if c == "\n" or c.isprintable())
    return re.sub(r"\n{3,}", "\n\n", text).strip()[:MAX_WORDS]


class Removed(StrEnum):
    GONE = "removed"
    WAS_GONE = "was not there any more"
    MOVED = "stands at another commit, and was left"


async def remove_ref(git_dir: Path, access: RemoteAccess, ref: str, sha: str) -> Removed:
    """Remove a ref of ours unless somebody moves it first: the remote itself compares. Safe to repeat."""
    if not ref.startswith(names.OWN_REFS) or not names.is_branch(ref) or not names.is_sha(sha):
        raise BadName("only refs of our own are removed")
    stands = await branch_sha(git_dir, access, ref)
    if stands != sha:
        return Removed.WAS_GONE if stands is None else Removed.MOVED
    argv = ["push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{sha}"]
    unclear: BotError = GitHubUnavailable("the ref was not removed, for a reason that the remote did not make clear")
    try:
        argv += ["--end-of-options", access.url, f":{ref}"]
        await run_git(argv, git_dir, access=access, timeout=REMOVE_SECONDS, accept=(0, 1))
    except (GitFailed, GitTimedOut) as error:
        known = failure(error)
        unclear = unclear if isinstance(known, GitFailed) else known
    stands = await branch_sha(git_dir, access, ref)  # only the remote knows what became of it
    if stands == sha:
        raise unclear
    return Removed.GONE if stands is None else Removed.MOVED


@dataclass(frozen=True)
class PushResult:
    sha: str
    arrived_before: bool
    """An earlier push had arrived although its answer had not."""


@dataclass(frozen=True)
class Push:
    """A push of one commit to one branch. The branch must be at `expect` now; None: it must not exist."""

    git_dir: Path
    access: RemoteAccess
    commit: str
    branch: str
    expect: str | None

    async def run(self) -> PushResult:
        """Push; safe to repeat after any failure, as it looks before it acts, and again if the answer is not clear."""
        ref = names.push_ref(self.branch)
        if ref == self.branch:
            sha = await branch_sha(self.git_dir, self.access, ref)
            places = {} if sha is None else {ref: sha}
        else:
            places = await heads(self.git_dir, self.access)
        actual = places.get(self.branch)
        if actual == self.commit:
            return PushResult(self.commit, arrived_before=True)
        if actual != self.expect:
            raise PushRaced(self.branch, actual)
        if self.expect is None:
            _require_free(self.branch, places)
        else:
            await self._require_descent(self.expect)
        # An empty lease: the remote makes the branch only if there is none. Otherwise plain: it must fast-forward.
        lease = [f"--force-with-lease={ref}:"] if self.expect is None else []
        # If no branch is at the commit's parent any more, git would send all that the mirror has of its history.
        argv = ["rev-parse", "--quiet", "--verify", "--end-of-options", f"{self.commit}^"]
        parent = (await run_git(argv, self.git_dir, accept=(0, 1, 128))).text
        io = Io(config={"push.negotiate": "true"} if parent and parent not in places.values() else {})
        argv = [*lease, "--end-of-options", self.access.url, f"{self.commit}:{ref}"]
        sent = await _send(argv, self.git_dir, self.access, ref, io)
        return (
            await self._settle(sent)
            if isinstance(sent, BotError)
            else PushResult(self.commit, arrived_before=sent == "=")
        )

    async def _require_descent(self, ancestor: str) -> None:
        argv = ["merge-base", "--is-ancestor", "--end-of-options", ancestor, self.commit]
        result = await run_git(argv, self.git_dir, accept=(0, 1, 128))
        if result.exit_code != 0:
            raise PushRefused(GitRefusal.NON_FAST_FORWARD, "the commit does not continue the branch")

    async def _settle(self, otherwise: BotError) -> PushResult:
        """Ask the remote after a failure: the push is done if it has our commit, and raced if the branch moved."""
        actual = await branch_sha(self.git_dir, self.access, self.branch)
        if actual == self.commit:
            return PushResult(self.commit, arrived_before=True)
        if actual != self.expect:
            raise PushRaced(self.branch, actual)
        raise otherwise


@dataclass(frozen=True)
class Beginning:
    """A push of a new branch at a commit that the remote has, and of our ref `mark` at a commit of ours. Both arrive or
    neither, so that the ref shows who made the branch."""

    git_dir: Path
    access: RemoteAccess
    branch: str
    at: str
    mark: str
    commit: str

    async def run(self) -> None:
        ref = names.push_ref(self.branch)
        argv = ["--atomic", f"--force-with-lease={ref}:", "--end-of-options", self.access.url]
        argv += [f"{self.at}:{ref}", f"{self.commit}:{names.push_ref(self.mark)}"]
        sent = await _send(argv, self.git_dir, self.access, ref)
        if sent == "=":  # it was not there when its maker looked: git had nothing to do for it, and checked no lease
            raise PushRaced(self.branch, self.at)
        if not isinstance(sent, BotError):
            return
        actual = await branch_sha(self.git_dir, self.access, self.branch)
        if actual is None:
            raise sent
        if actual != self.at or not await self.has_been():
            raise PushRaced(self.branch, actual)

    async def has_been(self) -> bool:
        return await branch_sha(self.git_dir, self.access, self.mark) == self.commit


async def require_free(git_dir: Path, access: RemoteAccess, branch: str) -> None:
    _require_free(branch, await heads(git_dir, access))


def _require_free(branch: str, heads: Mapping[str, str]) -> None:
    other = names.clash(branch, heads)
    if other is not None:
        raise PushRefused(GitRefusal.NAME, f"the branch {clean_words(other)} is in the way of that name")


async def _send(argv: list[str], git_dir: Path, access: RemoteAccess, ref: str, io: Io | None = None) -> str | BotError:
    """Push, and return git's flag for `ref`, or the error that its report means."""
    argv = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", *argv]
    try:
        result = await run_git(argv, git_dir, access=access, io=io, timeout=PUSH_SECONDS, accept=(0, 1))
        report = _REPORT.findall(result.stdout.decode("utf-8", "replace"))
        flag, words = next(((flag, words) for flag, found, words in report if found == ref), ("", ""))
        if not flag:
            raise GitFailed("push", result.exit_code, result.stderr)
    except (GitFailed, GitTimedOut) as error:
        return _failed_push(error)
    if flag != "!":
        return flag
    reason = _REASON.search(words)
    return refusal(reason[1] if reason else words, result.stderr)


def _failed_push(error: GitFailed | GitTimedOut) -> BotError:
    known = failure(error)
    if isinstance(known, GitHubRefused) and known.status == 403:
        words = remote_words(error.words if isinstance(error, GitFailed) else "")
        return PushRefused(GitRefusal.PERMISSION, words or known.message)
    return GitHubUnavailable("the push did not get through") if isinstance(known, GitFailed) else known
