"""The parts of GraphQL that REST lacks: resolved discussions of a diff, resolving one, and ending a draft."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.simulation.github import auth, rest, rest_git
from bot.simulation.github.payloads import Json, node_id
from bot.simulation.github.rest import Ask, Desk, answer
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Pull, ReviewComment

PATH = "/api/graphql"
KIND = "PullRequestReviewThread"


def route(desk: Desk) -> Route:
    async def endpoint(request: Request) -> Response:
        return await rest.respond(desk, request, _answered)

    return Route(PATH, endpoint, methods=["POST"])


async def _answered(ask: Ask) -> Response:
    """Answer a query; GraphQL refuses with status 200."""
    ask.token()
    query, variables = str(ask.body.get("query", "")), ask.body.get("variables") or {}
    if "resolveReviewThread" in query:
        return answer(_resolve(ask, str(variables.get("id"))))
    if "createCommitOnBranch" in query:
        return answer(await rest_git.commit_on_branch(ask, variables.get("input") or {}))
    if "markPullRequestReadyForReview" in query:
        return answer(_make_ready(ask, str(variables.get("id"))))
    if "reviewThreads" in query:
        return answer({"data": {"repository": _threads(ask, variables)}})
    return answer({"errors": [{"message": "Parse error: the stand-in does not know this query"}]})


def _threads(ask: Ask, variables: Json) -> Json | None:
    repo = ask.state.repo(f"{variables.get('owner')}/{variables.get('name')}")
    if repo is None or not _may(ask, repo, ("pull_requests", "read")):
        return None
    pull = repo.pulls.get(int(variables.get("number", 0)))
    if pull is None:
        return {"pullRequest": None}
    found = _firsts(pull)
    size, start = 100, int(variables.get("after") or 0)
    page = {"hasNextPage": len(found) > start + size, "endCursor": str(start + size)}
    nodes = [_thread(each) for each in found[start : start + size]]
    return {"pullRequest": {"reviewThreads": {"pageInfo": page, "nodes": nodes}}}


def _firsts(pull: Pull) -> list[ReviewComment]:
    return [each for review in pull.reviews for each in review.comments if each.reply_to is None]


def _thread(first: ReviewComment) -> Json:
    return {
        "id": node_id(KIND, first.id),
        "isResolved": first.resolved_by is not None,
        "comments": {"nodes": [{"databaseId": first.id}]},
    }


def _resolve(ask: Ask, wanted: str) -> Json:
    for repo in ask.token().installation.repos:
        for pull in repo.pulls.values():
            for each in _firsts(pull):
                if node_id(KIND, each.id) != wanted:
                    continue
                # undocumented: without `contents: write` GitHub refuses it
                if not _may(ask, repo, ("pull_requests", "write"), ("contents", "write")):
                    return {"data": None, "errors": [{"message": "Resource not accessible by integration"}]}
                each.resolved_by = each.resolved_by or ask.actor
                ask.state.touch()
                return {"data": {"resolveReviewThread": {"thread": {"id": wanted}}}}
    return {"data": None, "errors": [{"message": f"Could not resolve to a node with the global id of '{wanted}'."}]}


def _make_ready(ask: Ask, wanted: str) -> Json:
    for repo in ask.token().installation.repos:
        for pull in repo.pulls.values():
            if node_id("PullRequest", pull.issue.id) != wanted:
                continue
            if not _may(ask, repo, ("pull_requests", "write")):
                return {"data": None, "errors": [{"message": "Resource not accessible by integration"}]}
            if pull.draft:
                pull.draft = False
                ask.desk.actions.pull_changed(pull, ask.actor, "ready_for_review")
            return {"data": {"markPullRequestReadyForReview": {"pullRequest": {"id": wanted}}}}
    return {"data": None, "errors": [{"message": f"Could not resolve to a node with the global id of '{wanted}'."}]}


def _may(ask: Ask, repo: Repository, *needs: tuple[str, str]) -> bool:
    token = ask.token()
    return auth.in_scope(token, repo) and all(auth.holds(token, *need) for need in needs)
