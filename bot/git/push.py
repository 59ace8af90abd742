"""Moves one branch of the remote, never by force, and finds out what happened when the answer was lost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bot.errors import BotError, GitHubRefused, GitHubUnavailable
from bot.git import names, remote
from bot.git.access import RemoteAccess
from bot.git.errors import GitFailed, GitTimedOut, PushRaced, PushRefused, Refusal
from bot.git.run import GitResult, run_git

PUSH_SECONDS = 300.0
_REPORT = re.compile(r"^([ +*=!-])\t[^\t]*:([^\t]+)\t(.*)$", re.MULTILINE)
_REASON = re.compile(r"\((.*)\)\s*$")


@dataclass(frozen=True)
class PushResult:
    branch: str
    sha: str
    adopted: bool
    """It was there already: an earlier push had arrived though its answer had not."""


@dataclass(frozen=True)
class Push:
    """One commit to one branch. `expect` is where the branch must stand now; None: it must not exist."""

    git_dir: Path
    access: RemoteAccess
    commit: str
    branch: str
    expect: str | None

    async def run(self) -> PushResult:
        """Safe to repeat after any failure: it looks before it acts, and again when the answer is not clear."""
        ref = names.branch_ref(self.branch)
        if await self._is_there_already():
            return self._done(adopted=True)
        if self.expect is not None:
            await self._require_descent(self.expect)
        try:
            flag, words, stderr = await self._send(ref)
        except (GitFailed, GitTimedOut) as error:
            return await self._settle(_told(error))
        if flag == "!":
            reason = _REASON.search(words)
            return await self._settle(remote.refusal(reason[1] if reason else words, stderr))
        return self._done(adopted=flag == "=")

    def _done(self, *, adopted: bool) -> PushResult:
        return PushResult(self.branch, self.commit, adopted)

    async def _is_there_already(self) -> bool:
        heads = await remote.heads(self.git_dir, self.access)
        actual = heads.get(self.branch)
        if actual == self.commit:
            return True
        if actual != self.expect:
            raise PushRaced(self.branch, actual)
        other = names.clash(self.branch, heads) if self.expect is None else None
        if other is not None:
            raise PushRefused(Refusal.NAME, f"the branch {remote.clean(other)} is in the way of that name")
        return False

    async def _require_descent(self, ancestor: str) -> None:
        argv = ["merge-base", "--is-ancestor", "--end-of-options", ancestor, self.commit]
        result = await run_git(argv, self.git_dir, accept=(0, 1, 128))
        if result.exit_code != 0:
            raise PushRefused(Refusal.NON_FAST_FORWARD, "the commit does not continue the branch")

    async def _send(self, ref: str) -> tuple[str, str, str]:
        """What git reports of our one ref (its flag and words), and what was said on stderr."""
        common = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"]
        # An empty lease: the remote makes the branch only if there is none. Otherwise plain: it must fast-forward.
        lease = [f"--force-with-lease={ref}:"] if self.expect is None else []
        argv = [*common, *lease, "--end-of-options", self.access.url, f"{self.commit}:{ref}"]
        result = await run_git(argv, self.git_dir, access=self.access, timeout=PUSH_SECONDS, accept=(0, 1))
        flag, words = _report(result, ref)
        return flag, words, result.stderr

    async def _settle(self, otherwise: BotError) -> PushResult:
        """After a failure only the remote knows: done if it stands at our commit, raced if it moved elsewhere."""
        actual = await remote.branch_sha(self.git_dir, self.access, self.branch)
        if actual == self.commit:
            return self._done(adopted=True)
        if actual != self.expect:
            raise PushRaced(self.branch, actual)
        raise otherwise


def _report(result: GitResult, ref: str) -> tuple[str, str]:
    for flag, found, words in _REPORT.findall(result.stdout.decode("utf-8", "replace")):
        if found == ref:
            return flag, words
    raise GitFailed("push", result.exit_code, result.stderr)


def _told(error: GitFailed | GitTimedOut) -> BotError:
    known = remote.failure(error)
    if isinstance(known, GitHubRefused) and known.status == 403:
        words = remote.remote_words(error.words if isinstance(error, GitFailed) else "")
        return PushRefused(Refusal.PERMISSION, words or known.message)
    return GitHubUnavailable("the push did not get through") if isinstance(known, GitFailed) else known
