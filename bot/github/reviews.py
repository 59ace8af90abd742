"""Reads reviews of a pull request: comments on lines, words about the whole, and discussions."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from bot.agent.material import discussion_place
from bot.errors import GitHubRefused
from bot.github import wire
from bot.github.api import GRAPHQL, PLAIN, ApiAnswer, ApiCall
from bot.github.reads import FULL, MAX_PAGES, PAGE, ApiCaller, base, carries, collect
from bot.github.types import Comment, TokenPurpose
from bot.models import LEFT, Repo, Spot

_FINDING = re.compile(r"\s*<!-- forgehand:finding=([a-z0-9-]+) -->")
_DISCUSSIONS = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { id isResolved comments(first: 1) { nodes { databaseId } } }
      }
    }
  }
}
"""


class _OnLine(wire.CommentJson):
    path: str = ""
    line: int | None = None
    original_line: int | None = None
    start_line: int | None = None
    side: str | None = None
    diff_hunk: str = ""
    in_reply_to_id: int | None = None
    pull_request_review_id: int | None = None

    def placed(self) -> Comment:
        line = self.line or self.original_line
        older = line is not None and (self.line is None or self.side == LEFT)
        spot = Spot(self.in_reply_to_id or self.id, self.path, line, self.start_line, self.diff_hunk, older)
        kind, review = f"comment on {discussion_place(spot)}", self.pull_request_review_id
        return replace(self.comment(), kind=kind, spot=spot, review_id=review)


class _Whole(wire.CommentJson):
    submitted_at: str | None = None
    state: str = ""

    def placed(self) -> Comment:
        at = self.submitted_at or ""
        return replace(self.comment(), kind="review", created_at=at, updated_at=at)


async def on_lines(caller: ApiCaller, repo: Repo, number: int) -> list[Comment]:
    """List the newest comments on lines, oldest first."""
    params: dict[str, str | int] = {"per_page": PAGE, "sort": "created", "direction": "desc"}
    call = ApiCall("GET", f"{base(repo)}/pulls/{number}/comments", params, accept=FULL)
    answer = await caller.call(call, TokenPurpose.THREAD, repo.id)
    return [one.placed() for one in await answer.decoded(list[_OnLine])][::-1]


async def whole(caller: ApiCaller, repo: Repo, number: int) -> list[Comment]:
    """List the words of submitted reviews; GitHub does not tell whether they were edited since."""
    answer = await _page(caller, repo, number, 1, FULL)
    if (last := answer.last_page()) > 1:
        answer = await _page(caller, repo, number, last, FULL)
    return [one.placed() for one in await answer.decoded(list[_Whole]) if one.body and one.submitted_at]


class _File(msgspec.Struct):
    filename: str
    patch: str = ""


async def patches(caller: ApiCaller, repo: Repo, number: int) -> dict[str, str]:
    """Return the hunks that GitHub shows of the head, by path; a file with too large a diff has none."""
    call = ApiCall("GET", f"{base(repo)}/pulls/{number}/files")
    found = await collect(caller, call, TokenPurpose.THREAD, repo, list[_File], lambda page: page)
    return {one.filename: one.patch for one in found}


@dataclass(frozen=True)
class Discussion:
    """A discussion of a diff; it began with a comment on a line."""

    id: str
    resolved: bool
    comment_id: int | None


class _Comment(msgspec.Struct):
    databaseId: int | None = None


class _Comments(msgspec.Struct):
    nodes: list[_Comment]


class _Thread(msgspec.Struct):
    id: str
    isResolved: bool
    comments: _Comments

    def discussion(self) -> Discussion:
        first = self.comments.nodes[0].databaseId if self.comments.nodes else None
        return Discussion(self.id, self.isResolved, first)


class _Page(msgspec.Struct):
    hasNextPage: bool
    endCursor: str | None = None


class _Threads(msgspec.Struct):
    pageInfo: _Page
    nodes: list[_Thread]


class _Pull(msgspec.Struct):
    reviewThreads: _Threads


class _Repository(msgspec.Struct):
    pullRequest: _Pull | None = None


class _Data(msgspec.Struct):
    repository: _Repository | None = None


async def discussions(caller: ApiCaller, repo: Repo, number: int) -> list[Discussion]:
    """List the discussions of a pull request's diff; only GraphQL tells which are resolved."""
    found: list[Discussion] = []
    after: str | None = None
    for _ in range(MAX_PAGES):
        variables = {"owner": repo.owner, "name": repo.name, "number": number, "after": after}
        answer = await graphql(caller, _DISCUSSIONS, variables, repo, TokenPurpose.THREAD)
        data = (await answer.decoded(wire.GraphQL[_Data])).data
        if data is None or data.repository is None or data.repository.pullRequest is None:
            break
        threads = data.repository.pullRequest.reviewThreads
        found += [one.discussion() for one in threads.nodes]
        after = threads.pageInfo.endCursor
        if not threads.pageInfo.hasNextPage:
            break
    return found


async def graphql(
    caller: ApiCaller, query: str, variables: dict[str, Any], repo: Repo, purpose: TokenPurpose
) -> ApiAnswer:
    """Send a query, or a mutation whose repetition has no effect. GraphQL refuses with status 200."""
    call = ApiCall("POST", GRAPHQL, body={"query": query, "variables": variables}, repeatable=True)
    answer = await caller.call(call, purpose, repo.id)
    if errors := (await answer.decoded(wire.GraphQLErrors)).errors:
        raise GitHubRefused(403, f"{call}: {errors[0].message}")
    return answer


async def find(caller: ApiCaller, repo: Repo, number: int, marker: str, author_id: int) -> int | None:
    """Find our newest review with the marker on its first line."""
    first = await _page(caller, repo, number, 1)
    for page in range(first.last_page(), 0, -1):
        answer = first if page == 1 else await _page(caller, repo, number, page)
        for one in reversed(await answer.decoded(list[_Whole])):
            if one.user and one.user.id == author_id and carries(one.body or "", marker):
                return one.id
    return None


async def holding(caller: ApiCaller, repo: Repo, number: int, author_id: int) -> list[int]:
    """List our reviews that ask for changes and so block the merge, on the first and the last page."""
    first = await _page(caller, repo, number, 1)
    pages = [first] if first.last_page() == 1 else [first, await _page(caller, repo, number, first.last_page())]
    listed = [one for page in pages for one in await page.decoded(list[_Whole])]
    return [one.id for one in listed if one.user and one.user.id == author_id and one.state == "CHANGES_REQUESTED"]


async def of_review(caller: ApiCaller, repo: Repo, number: int, review_id: int) -> list[Comment]:
    """List the comments of a review, up to one page."""
    path = f"{base(repo)}/pulls/{number}/reviews/{review_id}/comments"
    answer = await caller.call(ApiCall("GET", path, {"per_page": PAGE}), TokenPurpose.THREAD, repo.id)
    return [one.comment() for one in await answer.decoded(list[wire.CommentJson])]


def finding_of(body: str) -> str | None:
    """Return the id of our finding in a comment's marker."""
    found = _FINDING.match(body)
    return found[1] if found else None


async def _page(caller: ApiCaller, repo: Repo, number: int, page: int, accept: str = PLAIN) -> ApiAnswer:
    path, params = f"{base(repo)}/pulls/{number}/reviews", {"per_page": PAGE, "page": page}
    return await caller.call(ApiCall("GET", path, params, accept=accept), TokenPurpose.THREAD, repo.id)
