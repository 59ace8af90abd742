"""What we ask GitHub about a repository and its threads. Lists are read in pages of a bounded number."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from typing import Protocol
from urllib.parse import quote

from bot.errors import GitHubRefused, GitHubUnavailable, NotFound
from bot.github import wire
from bot.github.api import ApiAnswer, ApiCall
from bot.github.types import Comment, Issue, MadeCommit, OwnCheckRun, Pull, RepoView, TokenPurpose
from bot.models import Permission, Repo, RepoId

FULL = "application/vnd.github.full+json"
DIFF = "application/vnd.github.diff"
PAGE = 100
MAX_PAGES = 10


class ApiCaller(Protocol):
    """What reads and writes need of an installation."""

    async def call(self, call: ApiCall, purpose: TokenPurpose, repo: RepoId | None) -> ApiAnswer: ...


def base(repo: Repo) -> str:
    return f"/repos/{segment(repo.owner)}/{segment(repo.name)}"


def segment(text: str) -> str:
    """One path segment; a name that would climb in the path cannot be a real one."""
    if text in ("", ".", ".."):
        raise NotFound("there is nothing of an empty name.")
    return quote(text, safe="")


def carries(body: str, marker: str) -> bool:
    """Says whether the body's first line begins with the marker, and not with a longer word (turn=1, turn=10)."""
    rest = body.removeprefix("\ufeff").lstrip()
    if not rest.startswith(marker):
        return False
    return marker.endswith("-->") or not rest[len(marker) : len(marker) + 1].strip(" -")


class Reads:
    """Mixed into an installation."""

    async def call(self, call: ApiCall, purpose: TokenPurpose, repo: RepoId | None) -> ApiAnswer:
        raise AssertionError("an installation brings its own")

    async def permission(self, repo: Repo, login: str) -> tuple[int, Permission]:
        """The id and the right of the account that has the login now; NotFound when GitHub knows no such user."""
        path = f"{base(repo)}/collaborators/{segment(login)}/permission"
        answer = await self.call(ApiCall("GET", path), TokenPurpose.METADATA, repo.id)
        found = await answer.decoded(wire.Collaborator)
        return found.user.id, _permission(found)

    async def owns(self, organisation: str, login: str, user_id: int) -> bool:
        """Says whether the person, who may have given the login up, is an owner of the organisation. GitHubRefused
        where the App may not read its members."""
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

    async def comment(self, repo: Repo, comment_id: int) -> Comment:
        call = ApiCall("GET", f"{base(repo)}/issues/comments/{comment_id}", accept=FULL)
        return (await self.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.CommentJson).comment()

    async def comments(self, repo: Repo, number: int, limit: int) -> list[Comment]:
        """The newest `limit` comments, oldest of them first."""
        found: list[Comment] = []
        async for page in self._newest_pages(repo, number):
            found[:0] = page
            if len(found) >= limit:
                break
        return found[max(0, len(found) - limit) :] if limit > 0 else []

    async def find_comment(self, repo: Repo, number: int, marker: str, author_id: int) -> tuple[int, str] | None:
        """Our comment with the marker on its first line, looked for from the newest backwards."""
        async for page in self._newest_pages(repo, number):
            for comment in reversed(page):
                if comment.author.id == author_id and carries(comment.body, marker):
                    return comment.id, comment.body
        return None

    async def find_review_reply(self, repo: Repo, number: int, marker: str, author_id: int) -> int | None:
        """Our reply with the marker on its first line, in whatever discussion of the diff, newest pages first."""
        async for page in self._newest_pages(repo, number, of="pulls"):
            for comment in reversed(page):
                if comment.author.id == author_id and carries(comment.body, marker):
                    return comment.id
        return None

    async def _newest_pages(self, repo: Repo, number: int, of: str = "issues") -> AsyncIterator[list[Comment]]:
        """GitHub lists a thread's comments oldest first and cannot be asked otherwise: begin at the last page."""
        first = await self._comment_page(repo, number, 1, of)
        last = first.last_page()
        for page in range(last, max(1, last - MAX_PAGES), -1):
            yield await _comments(await self._comment_page(repo, number, page, of))
        yield await _comments(first)

    async def _comment_page(self, repo: Repo, number: int, page: int, of: str) -> ApiAnswer:
        path, params = f"{base(repo)}/{of}/{number}/comments", {"per_page": PAGE, "page": page}
        return await self.call(ApiCall("GET", path, params, accept=FULL), TokenPurpose.THREAD, repo.id)

    async def file(self, repo: Repo, path: str, ref: str) -> bytes | None:
        """A file's content at a ref; None when no file is there. GitHub gives up to 1 MB this way."""
        try:
            where = "/".join(segment(part) for part in path.split("/"))
            call = ApiCall("GET", f"{base(repo)}/contents/{where}", {"ref": ref})
            answer = await self.call(call, TokenPurpose.READ_REPOSITORY, repo.id)
        except NotFound:
            return None
        if answer.content.lstrip()[:1] == b"[":
            return None  # a folder
        return _content(answer, path)

    async def branch_sha(self, repo: Repo, branch: str) -> str | None:
        try:
            where = "/".join(segment(part) for part in branch.split("/"))
            call = ApiCall("GET", f"{base(repo)}/git/ref/heads/{where}")
            answer = await self.call(call, TokenPurpose.READ_REPOSITORY, repo.id)
        except NotFound:
            return None
        except GitHubRefused as refused:
            if refused.status == 409:  # the repository is empty
                return None
            raise
        return answer.decode(wire.Ref).object.sha

    async def is_protected(self, repo: Repo, branch: str) -> bool:
        """Counts rules of any kind, also those that would let the App through; a branch that is not there is not."""
        where = "/".join(segment(part) for part in branch.split("/"))
        try:
            answer = await self.call(
                ApiCall("GET", f"{base(repo)}/branches/{where}"), TokenPurpose.READ_REPOSITORY, repo.id
            )
        except NotFound:
            return False
        return answer.decode(wire.BranchRules).protected

    async def made_commit(self, repo: Repo, sha: str) -> MadeCommit:
        """A commit as GitHub vouches for it, or does not."""
        call = ApiCall("GET", f"{base(repo)}/git/commits/{segment(sha)}")
        return (await self.call(call, TokenPurpose.READ_REPOSITORY, repo.id)).decode(wire.MadeCommitJson).made()

    async def rules(self, repo: Repo, branch: str) -> frozenset[str]:
        """The kinds of rules that rulesets hold for a branch of that name, whether it is there or not."""
        where = "/".join(segment(part) for part in branch.split("/"))
        call = ApiCall("GET", f"{base(repo)}/rules/branches/{where}", {"per_page": PAGE})
        answer = await self.call(call, TokenPurpose.METADATA, repo.id)
        return frozenset(one.type for one in answer.decode(list[wire.RuleJson]))

    async def repos(self) -> list[RepoView]:
        """The first hundred that the installation has."""
        answer = await self.call(
            ApiCall("GET", "/installation/repositories", {"per_page": PAGE}), TokenPurpose.METADATA, None
        )
        return [one.view() for one in (await answer.decoded(wire.Repositories)).repositories]

    async def pull(self, repo: Repo, number: int) -> Pull:
        call = ApiCall("GET", f"{base(repo)}/pulls/{number}")
        return (await self.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.PullJson).pull()

    async def pull_by_head(self, repo: Repo, branch: str, *, state: str = "open") -> Pull | None:
        """The newest pull request from a branch of the repository itself."""
        params: dict[str, str | int] = {"head": f"{repo.owner}:{branch}", "state": state, "per_page": PAGE}
        call = ApiCall("GET", f"{base(repo)}/pulls", params)
        answer = await self.call(call, TokenPurpose.THREAD, repo.id)
        pulls = [one.pull() for one in await answer.decoded(list[wire.PullJson])]
        # GitHub ignores a `head` that it cannot read and lists everything.
        ours = [pull for pull in pulls if pull.head_branch == branch and pull.head_repo_id == repo.id]
        return max(ours, key=lambda pull: pull.number, default=None)

    async def pull_diff(self, repo: Repo, number: int) -> str | None:
        """The diff as text; None when it is too large for GitHub to show."""
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
        """Our check run on a commit, known by the id that we gave it."""
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


def _permission(found: wire.Collaborator) -> Permission:
    """The role's own name where it is one of GitHub's; custom roles count as the right that they are based on."""
    legacy = _known(found.permission)
    role = _known(found.role_name)
    return role if role.may_write == legacy.may_write and role is not Permission.NONE else legacy


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
