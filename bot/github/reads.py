"""Reads a repository and its threads. Lists are read page by page, up to `MAX_PAGES`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Protocol, TypeVar
from urllib.parse import quote

from bot.errors import GitHubRefused, GitHubUnavailable, NotFound
from bot.github import wire
from bot.github.api import ApiAnswer, ApiCall
from bot.github.types import (
    AppIdentity,
    Comment,
    FolderEntry,
    Issue,
    MadeCommit,
    OwnCheckRun,
    Pull,
    RepoView,
    TokenPurpose,
)
from bot.models import Permission, Repo, RepoId

T = TypeVar("T")
Page = TypeVar("Page")
FULL = "application/vnd.github.full+json"
DIFF = "application/vnd.github.diff"
PAGE = 100
MAX_PAGES = 10


class ApiCaller(Protocol):
    async def call(self, call: ApiCall, purpose: TokenPurpose, repo: RepoId | None) -> ApiAnswer: ...


def base(repo: Repo) -> str:
    return f"/repos/{segment(repo.owner)}/{segment(repo.name)}"


def segment(text: str) -> str:
    """Quote one segment of a path, and refuse a name that would climb in the path."""
    if text in ("", ".", ".."):
        raise NotFound("there is nothing of an empty name.")
    return quote(text, safe="")


def segments(path: str) -> str:
    return "/".join(segment(part) for part in path.split("/"))


async def collect(
    caller: ApiCaller,
    call: ApiCall,
    purpose: TokenPurpose,
    repo: Repo,
    page: type[Page],
    rows: Callable[[Page], list[T]],
) -> list[T]:
    """Read a list page by page."""
    found: list[T] = []
    for number in range(1, MAX_PAGES + 1):
        numbered = replace(call, params={**(call.params or {}), "per_page": PAGE, "page": number})
        listed = rows(await (await caller.call(numbered, purpose, repo.id)).decoded(page))
        found += listed
        if len(listed) < PAGE:
            break
    return found


def carries(body: str, marker: str) -> bool:
    """Decide whether the body's first line begins with the marker, and not with a longer word (turn=1, turn=10)."""
    rest = body.removeprefix("\ufeff").lstrip()
    if not rest.startswith(marker):
        return False
    return marker.endswith("-->") or not rest[len(marker) : len(marker) + 1].strip(" -")


class Reads:
    """The reading half of an installation, which brings `call`."""

    async def call(self, call: ApiCall, purpose: TokenPurpose, repo: RepoId | None) -> ApiAnswer:
        raise NotImplementedError

    async def permission(self, repo: Repo, login: str) -> tuple[int, Permission]:
        """Return the id and permission of the account that has the login now. Raise NotFound for an unknown user.

        The role's name counts if it is one of GitHub's; a custom role counts as the permission that it is based on.
        """
        path = f"{base(repo)}/collaborators/{segment(login)}/permission"
        answer = await self.call(ApiCall("GET", path), TokenPurpose.METADATA, repo.id)
        found = await answer.decoded(wire.Collaborator)
        legacy, role = _known(found.permission), _known(found.role_name)
        custom = role is Permission.NONE or role.may_write != legacy.may_write
        return found.user.id, legacy if custom else role

    async def owns(self, organisation: str, login: str, user_id: int) -> bool:
        """Decide whether the person, who may have given up the login, is an owner of the organisation. Raise
        GitHubRefused if the App may not read its members."""
        call = ApiCall("GET", f"/orgs/{segment(organisation)}/memberships/{segment(login)}")
        try:
            found = (await self.call(call, TokenPurpose.MEMBERS, None)).decode(wire.MembershipJson)
        except NotFound:
            return False
        return found.user.id == user_id and found.state == "active" and found.role == "admin"

    async def repo(self, full_name: str) -> RepoView:
        owner, _, name = full_name.partition("/")
        path = f"/repos/{segment(owner)}/{segment(name)}"
        answer = await self.call(ApiCall("GET", path), TokenPurpose.METADATA, None)
        return answer.decode(wire.RepositoryJson).view()

    async def issue(self, repo: Repo, number: int) -> Issue:
        call = ApiCall("GET", f"{base(repo)}/issues/{number}", accept=FULL)
        return (await (await self.call(call, TokenPurpose.THREAD, repo.id)).decoded(wire.IssueJson)).issue()

    async def own_issue(self, repo: Repo, marker: str, me: AppIdentity) -> Issue | None:
        """Find our newest issue with the marker on its first line, open or closed."""
        for page in range(1, MAX_PAGES + 1):
            listed = await self._issues_of(repo, me, "all", page)
            for issue in listed:
                if issue.author.id == me.bot_id and not issue.is_pull and carries(issue.body, marker):
                    return issue
            if len(listed) < PAGE:
                break
        return None

    async def own_open_pulls(self, repo: Repo, me: AppIdentity) -> list[int]:
        """List the numbers of the newest open pull requests that we opened, newest first."""
        return [one.number for one in await self._issues_of(repo, me, "open", 1) if one.is_pull]

    async def _issues_of(self, repo: Repo, me: AppIdentity, state: str, page: int) -> list[Issue]:
        params: dict[str, str | int] = {"creator": me.bot_login, "state": state, "per_page": PAGE, "page": page}
        call = ApiCall("GET", f"{base(repo)}/issues", params, accept=FULL)
        answer = await self.call(call, TokenPurpose.THREAD, repo.id)
        return [one.issue() for one in await answer.decoded(list[wire.IssueJson])]

    async def comment(self, repo: Repo, comment_id: int) -> Comment:
        call = ApiCall("GET", f"{base(repo)}/issues/comments/{comment_id}", accept=FULL)
        return (await self.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.CommentJson).comment()

    async def comments(self, repo: Repo, number: int, limit: int) -> list[Comment]:
        """List the newest `limit` comments, oldest first."""
        found: list[Comment] = []
        async for page in self._newest_pages(repo, number, of="issues"):
            found[:0] = page
            if len(found) >= limit:
                break
        return found[max(0, len(found) - limit) :] if limit > 0 else []

    async def find_comment(self, repo: Repo, number: int, marker: str, author_id: int) -> tuple[int, str] | None:
        """Find our newest comment with the marker on its first line, and return its id and body."""
        found = await self._find(repo, number, marker, author_id, of="issues")
        return (found.id, found.body) if found else None

    async def find_review_reply(self, repo: Repo, number: int, marker: str, author_id: int) -> int | None:
        """Find our newest reply with the marker on its first line, in any discussion of the diff."""
        found = await self._find(repo, number, marker, author_id, of="pulls")
        return found.id if found else None

    async def _find(self, repo: Repo, number: int, marker: str, author_id: int, *, of: str) -> Comment | None:
        async for page in self._newest_pages(repo, number, of):
            for comment in reversed(page):
                if comment.author.id == author_id and carries(comment.body, marker):
                    return comment
        return None

    async def _newest_pages(self, repo: Repo, number: int, of: str) -> AsyncIterator[list[Comment]]:
        """Yield pages from the last one, because GitHub can list a thread's comments only oldest first."""
        first = await self._comment_page(repo, number, 1, of)
        last = first.last_page()
        for page in range(last, max(1, last - MAX_PAGES), -1):
            yield await _comments(await self._comment_page(repo, number, page, of))
        yield await _comments(first)

    async def _comment_page(self, repo: Repo, number: int, page: int, of: str) -> ApiAnswer:
        path, params = f"{base(repo)}/{of}/{number}/comments", {"per_page": PAGE, "page": page}
        return await self.call(ApiCall("GET", path, params, accept=FULL), TokenPurpose.THREAD, repo.id)

    async def file(self, repo: Repo, path: str, ref: str) -> bytes | None:
        """Return a file's content at a ref; None if no file is there. GitHub gives up to 1 MB this way."""
        try:
            call = ApiCall("GET", f"{base(repo)}/contents/{segments(path)}", {"ref": ref})
            answer = await self.call(call, TokenPurpose.READ_REPOSITORY, repo.id)
        except NotFound:
            return None
        if answer.content.lstrip()[:1] == b"[":
            return None  # a folder
        return _content(answer, path)

    async def folder(self, repo: Repo, path: str, ref: str) -> list[FolderEntry]:
        """List a folder at a ref; empty if no folder is there. GitHub gives up to a thousand entries."""
        try:
            call = ApiCall("GET", f"{base(repo)}/contents/{segments(path)}", {"ref": ref})
            answer = await self.call(call, TokenPurpose.READ_REPOSITORY, repo.id)
        except NotFound:
            return []
        if answer.content.lstrip()[:1] != b"[":
            return []
        return [FolderEntry(one.name, one.type == "dir") for one in answer.decode(list[wire.FolderEntryJson])]

    async def branch_sha(self, repo: Repo, branch: str) -> str | None:
        try:
            call = ApiCall("GET", f"{base(repo)}/git/ref/heads/{segments(branch)}")
            answer = await self.call(call, TokenPurpose.READ_REPOSITORY, repo.id)
        except NotFound:
            return None
        except GitHubRefused as refused:
            if refused.status == 409:  # the repository is empty
                return None
            raise
        return answer.decode(wire.Ref).object.sha

    async def is_protected(self, repo: Repo, branch: str) -> bool:
        """Count rules of any kind, also those that would let the App through. A missing branch is not protected."""
        call = ApiCall("GET", f"{base(repo)}/branches/{segments(branch)}")
        try:
            answer = await self.call(call, TokenPurpose.READ_REPOSITORY, repo.id)
        except NotFound:
            return False
        return answer.decode(wire.BranchRules).protected

    async def made_commit(self, repo: Repo, sha: str) -> MadeCommit:
        """Return a commit with GitHub's verdict on its signature."""
        call = ApiCall("GET", f"{base(repo)}/git/commits/{segment(sha)}")
        return (await self.call(call, TokenPurpose.READ_REPOSITORY, repo.id)).decode(wire.MadeCommitJson).made()

    async def rules(self, repo: Repo, branch: str) -> frozenset[str]:
        """Return the kinds of rules that rulesets have for this name of a branch, even if it does not exist."""
        call = ApiCall("GET", f"{base(repo)}/rules/branches/{segments(branch)}", {"per_page": PAGE})
        answer = await self.call(call, TokenPurpose.METADATA, repo.id)
        return frozenset(one.type for one in answer.decode(list[wire.RuleJson]))

    async def repos(self) -> list[RepoView]:
        """List the first hundred of the installation."""
        call = ApiCall("GET", "/installation/repositories", {"per_page": PAGE})
        answer = await self.call(call, TokenPurpose.METADATA, None)
        return [one.view() for one in (await answer.decoded(wire.Repositories)).repositories]

    async def pull(self, repo: Repo, number: int) -> Pull:
        call = ApiCall("GET", f"{base(repo)}/pulls/{number}")
        return (await self.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.PullJson).pull()

    async def pull_by_head(self, repo: Repo, branch: str, *, state: str = "open") -> Pull | None:
        """Return the newest pull request from a branch of the repository itself."""
        params: dict[str, str | int] = {"head": f"{repo.owner}:{branch}", "state": state, "per_page": PAGE}
        call = ApiCall("GET", f"{base(repo)}/pulls", params)
        answer = await self.call(call, TokenPurpose.THREAD, repo.id)
        pulls = [one.pull() for one in await answer.decoded(list[wire.PullJson])]
        # GitHub ignores a `head` that it cannot read and lists everything.
        ours = [pull for pull in pulls if pull.head_branch == branch and pull.head_repo_id == repo.id]
        return max(ours, key=lambda pull: pull.number, default=None)

    async def pull_diff(self, repo: Repo, number: int) -> str | None:
        """Return the diff as text; None if it is too large for GitHub."""
        call = ApiCall("GET", f"{base(repo)}/pulls/{number}", accept=DIFF)
        try:
            answer = await self.call(call, TokenPurpose.THREAD, repo.id)
        except GitHubRefused as refused:
            if refused.status == 406:
                return None
            raise
        return answer.content.decode("utf-8", "replace")

    async def has_label(self, repo: Repo, name: str) -> bool:
        try:
            await self.call(ApiCall("GET", f"{base(repo)}/labels/{segment(name)}"), TokenPurpose.THREAD, repo.id)
        except NotFound:
            return False
        return True

    async def check_run(self, repo: Repo, sha: str, name: str, external_id: str) -> OwnCheckRun | None:
        """Find our check run on a commit by the id that we gave it."""
        params: dict[str, str | int] = {"check_name": name, "per_page": PAGE, "filter": "all"}
        call = ApiCall("GET", f"{base(repo)}/commits/{segment(sha)}/check-runs", params)
        answer = await self.call(call, TokenPurpose.CHECKS, repo.id)
        runs = [run.check_run() for run in (await answer.decoded(wire.CheckRuns)).check_runs]
        return next((run for run in runs if run.external_id == external_id), None)

    async def check_run_by_id(self, repo: Repo, check_id: int) -> OwnCheckRun:
        call = ApiCall("GET", f"{base(repo)}/check-runs/{check_id}")
        return (await self.call(call, TokenPurpose.CHECKS, repo.id)).decode(wire.CheckRunJson).check_run()


async def _comments(answer: ApiAnswer) -> list[Comment]:
    return [one.comment() for one in await answer.decoded(list[wire.CommentJson])]


def _known(name: str) -> Permission:
    try:
        return Permission(name)
    except ValueError:
        return Permission.NONE


def _content(answer: ApiAnswer, path: str) -> bytes | None:
    file = answer.decode(wire.File)
    if file.type != "file":
        return None  # a submodule, or a link that leads nowhere
    if file.encoding != "base64":
        raise GitHubRefused(413, f"{path} is larger than 1 MB.")
    try:
        return base64.b64decode(file.content)
    except (binascii.Error, ValueError):
        pass
    raise GitHubUnavailable(f"{answer.call}: the answer cannot be read (base64).")
