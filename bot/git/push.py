"""Moves one branch of the remote, never by force, and finds out what happened when the answer was lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.errors import BotError, GitHubRefused, GitHubUnavailable
from bot.git import names, remote
from bot.git.errors import GitFailed, GitRefusal, GitTimedOut, PushRaced, PushRefused
from bot.git.run import GitResult, Io, RemoteAccess, run_git

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
        ref = names.push_ref(self.branch)
        heads = await self._places(ref)
        if heads.get(self.branch) == self.commit:
            return self._done(adopted=True)
        self._require_place(heads)
        if self.expect is not None:
            await self._require_descent(self.expect)
        try:
            flag, words, stderr = await self._send(ref, talk=await self._is_base_hidden(heads))
        except (GitFailed, GitTimedOut) as error:
            return await self._settle(_told(error))
        if flag == "!":
            return await self._settle(_refusal(words, stderr))
        return self._done(adopted=flag == "=")

    def _done(self, *, adopted: bool) -> PushResult:
        return PushResult(self.branch, self.commit, adopted)

    async def _places(self, ref: str) -> dict[str, str]:
        """What stands at the remote, by the names that `branch` has there."""
        if ref != self.branch:
            return await remote.heads(self.git_dir, self.access)
        sha = await remote.branch_sha(self.git_dir, self.access, self.branch)
        return {} if sha is None else {self.branch: sha}

    def _require_place(self, heads: Mapping[str, str]) -> None:
        actual = heads.get(self.branch)
        if actual != self.expect:
            raise PushRaced(self.branch, actual)
        if self.expect is None:
            _require_free(self.branch, heads)

    async def _is_base_hidden(self, heads: Mapping[str, str]) -> bool:
        """No branch stands at the commit's parent any more: git would send all that the mirror holds of its history."""
        argv = ["rev-parse", "--quiet", "--verify", "--end-of-options", f"{self.commit}^"]
        parent = (await run_git(argv, self.git_dir, accept=(0, 1, 128))).text
        return bool(parent) and parent not in heads.values()

    async def _require_descent(self, ancestor: str) -> None:
        argv = ["merge-base", "--is-ancestor", "--end-of-options", ancestor, self.commit]
        result = await run_git(argv, self.git_dir, accept=(0, 1, 128))
        if result.exit_code != 0:
            raise PushRefused(GitRefusal.NON_FAST_FORWARD, "the commit does not continue the branch")

    async def _send(self, ref: str, *, talk: bool) -> tuple[str, str, str]:
        """What git reports of our one ref (its flag and words), and what was said on stderr."""
        common = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"]
        # An empty lease: the remote makes the branch only if there is none. Otherwise plain: it must fast-forward.
        lease = [f"--force-with-lease={ref}:"] if self.expect is None else []
        argv = [*common, *lease, "--end-of-options", self.access.url, f"{self.commit}:{ref}"]
        io = Io(config={"push.negotiate": "true"} if talk else {})
        result = await run_git(argv, self.git_dir, access=self.access, io=io, timeout=PUSH_SECONDS, accept=(0, 1))
        return *_report(result, ref), result.stderr

    async def _settle(self, otherwise: BotError) -> PushResult:
        """After a failure only the remote knows: done if it stands at our commit, raced if it moved elsewhere."""
        actual = await remote.branch_sha(self.git_dir, self.access, self.branch)
        if actual == self.commit:
            return self._done(adopted=True)
        if actual != self.expect:
            raise PushRaced(self.branch, actual)
        raise otherwise


@dataclass(frozen=True)
class Beginning:
    """A new branch at a commit that the remote has, and a ref of ours at a commit of ours: both or neither, so that the
    second tells who has made the first."""

    git_dir: Path
    access: RemoteAccess
    branch: str
    at: str
    mark: str
    commit: str

    async def run(self) -> None:
        try:
            flag, words, stderr = await self._send(names.push_ref(self.branch))
        except (GitFailed, GitTimedOut) as error:
            await self._settle(_told(error))
        else:
            if flag == "=":  # it was not there when its maker looked: git has nothing to do for it, and no lease to ask
                raise PushRaced(self.branch, self.at)
            if flag == "!":
                await self._settle(_refusal(words, stderr))

    async def _send(self, ref: str) -> tuple[str, str, str]:
        argv = ["push", "--porcelain", "--atomic", "--no-verify", "--no-signed", "--no-follow-tags"]
        argv += [f"--force-with-lease={ref}:", "--end-of-options", self.access.url]
        argv += [f"{self.at}:{ref}", f"{self.commit}:{names.push_ref(self.mark)}"]
        result = await run_git(argv, self.git_dir, access=self.access, timeout=PUSH_SECONDS, accept=(0, 1))
        return *_report(result, ref), result.stderr

    async def has_been(self) -> bool:
        return await remote.branch_sha(self.git_dir, self.access, self.mark) == self.commit

    async def _settle(self, otherwise: BotError) -> None:
        actual = await remote.branch_sha(self.git_dir, self.access, self.branch)
        if actual is None:
            raise otherwise
        if actual != self.at or not await self.has_been():
            raise PushRaced(self.branch, actual)


async def require_free(git_dir: Path, access: RemoteAccess, branch: str) -> None:
    _require_free(branch, await remote.heads(git_dir, access))


def _require_free(branch: str, heads: Mapping[str, str]) -> None:
    other = names.clash(branch, heads)
    if other is not None:
        raise PushRefused(GitRefusal.NAME, f"the branch {remote.clean(other)} is in the way of that name")


def _report(result: GitResult, ref: str) -> tuple[str, str]:
    for flag, found, words in _REPORT.findall(result.stdout.decode("utf-8", "replace")):
        if found == ref:
            return flag, words
    raise GitFailed("push", result.exit_code, result.stderr)


def _refusal(words: str, stderr: str) -> PushRefused:
    reason = _REASON.search(words)
    return remote.refusal(reason[1] if reason else words, stderr)


def _told(error: GitFailed | GitTimedOut) -> BotError:
    known = remote.failure(error)
    if isinstance(known, GitHubRefused) and known.status == 403:
        words = remote.remote_words(error.words if isinstance(error, GitFailed) else "")
        return PushRefused(GitRefusal.PERMISSION, words or known.message)
    return GitHubUnavailable("the push did not get through") if isinstance(known, GitFailed) else known
