"""Routes of pull requests: opening, changing, their files and diff, and reviews."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from bot.simulation.github import gitstore, payloads, pull_payloads
from bot.simulation.github.auth import Refusal
from bot.simulation.github.payloads import Json
from bot.simulation.github.rest import Ask, answer, invalid, of_repositories, paged
from bot.simulation.github.state import BODY_LIMIT, Repository
from bot.simulation.github.threads import Issue, Pull, Review, ReviewComment

READ, WRITE = "pull_requests:read", "pull_requests:write"
DIFF_FILES, DIFF_LINES, LISTED_FILES = 300, 20_000, 3000
VERDICTS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


def _pull(ask: Ask, need: str = READ) -> Pull:
    pull = ask.repo(need).pulls.get(ask.number("number"))
    if pull is None:
        raise Refusal(404, "Not Found")
    return pull


async def _full(ask: Ask, pull: Pull, status: int = 200) -> Response:
    return answer(await asyncio.to_thread(pull_payloads.full_pull, ask.state, pull), status)


async def list_pulls(ask: Ask) -> Response:
    repo = ask.repo(READ)
    state, head, base = ask.query("state", "open"), ask.query("head"), ask.query("base")
    found = [
        pull
        for pull in repo.pulls.values()
        if state in ("all", pull.state)
        # as at GitHub, a head without its owner filters nothing
        and (":" not in head or pull.label.lower() == head.lower())
        and base in ("", pull.base)
    ]
    if ask.query("direction", "desc") == "desc":
        found.reverse()
    return paged(ask, found, lambda each: pull_payloads.pull(ask.state, each))


def _head(ask: Ask, repo: Repository) -> tuple[Repository, str, str]:
    """Return the head's repository, branch and sha; 422 if there is no such branch."""
    owner, colon, branch = str(ask.body.get("head") or "").rpartition(":")
    heads = (
        [repo]
        if not colon
        else [
            each
            for each in ask.state.repos.values()
            if each.owner.login.lower() == owner.lower() and (each is repo or each.fork_of is repo)
        ]
    )
    for each in heads:
        if sha := each.branch_sha(branch):
            return each, branch, sha
    raise invalid("PullRequest", "head", "invalid")


def check_new(repo: Repository, head_repo: Repository, head: tuple[str, str], base: tuple[str, str]) -> None:
    """Refuse an impossible pull request: nothing to merge, or already open."""
    (branch, sha), (base_branch, base_sha) = head, base
    label = f"{head_repo.owner.login}:{branch}"
    for pull in repo.pulls.values():
        if pull.state == "open" and pull.label == label and pull.base == base_branch:
            raise invalid("PullRequest", None, "custom", f"A pull request already exists for {label}.")
    if head_repo is not repo:
        gitstore.git(repo.path, "fetch", "--quiet", "--no-tags", str(head_repo.path), sha)
    if gitstore.count(repo.path, base_sha, sha) == 0:
        raise invalid("PullRequest", None, "custom", f"No commits between {base_branch} and {branch}")
    if gitstore.merge_base(repo.path, base_sha, sha) is None:
        text = f"The {branch} branch has no history in common with {base_branch}"
        raise invalid("PullRequest", None, "custom", text)


async def create_pull(ask: Ask) -> Response:
    repo = ask.repo(WRITE)
    title = ask.text("PullRequest", "title", limit=256)
    body = ask.text("PullRequest", "body", limit=BODY_LIMIT, required=False)
    head_repo, branch, sha = _head(ask, repo)
    base = str(ask.body.get("base") or "")
    base_sha = repo.branch_sha(base)
    if base_sha is None:
        raise invalid("PullRequest", "base", "invalid")
    await asyncio.to_thread(check_new, repo, head_repo, (branch, sha), (base, base_sha))
    draft = bool(ask.body.get("draft"))
    if draft and not repo.drafts_allowed:
        raise Refusal(422, "Draft pull requests are not supported in this repository.")
    ask.desk.limits.create(ask.credential)
    now = ask.state.clock()
    stub = Issue(0, repo, 0, str(title), body, ask.actor, now, now)
    # check again: another request may have been quicker while git ran
    check_again = [each for each in repo.pulls.values() if each.state == "open" and each.head == branch]
    if any(each.head_repo is head_repo and each.base == base for each in check_again):
        label = f"{head_repo.owner.login}:{branch}"
        raise invalid("PullRequest", None, "custom", f"A pull request already exists for {label}.")
    pull = Pull(stub, head_repo, branch, sha, base, base_sha, draft)
    ask.desk.actions.open_pull(pull, ask.token().installation.app)
    return await _full(ask, pull, 201)


async def get_pull(ask: Ask) -> Response:
    pull = _pull(ask)
    if ask.accepts("diff") or ask.accepts("patch"):
        return await _diff(pull)
    return await _full(ask, pull)


async def _diff(pull: Pull) -> Response:
    path = pull.issue.repo.path
    text = await asyncio.to_thread(gitstore.diff, path, pull.base_sha, pull.head_sha)
    files, lines = text.count("\ndiff --git ") + text.startswith("diff --git "), text.count("\n")
    for what, found, limit in (("files", files, DIFF_FILES), ("lines", lines, DIFF_LINES)):
        if found > limit:
            message = f"Sorry, the diff exceeded the maximum number of {what} ({limit})."
            errors = [{"resource": "PullRequest", "field": "diff", "code": "too_large"}]
            raise Refusal(406, message, errors=errors)
    return Response(text, media_type="application/vnd.github.diff; charset=utf-8")


async def edit_pull(ask: Ask) -> Response:
    pull = _pull(ask, WRITE)
    title = ask.text("PullRequest", "title", limit=256, required=False)
    body = ask.text("PullRequest", "body", required=False)
    state = ask.body.get("state")
    if state == "open" and (pull.merged_at or not pull.head_repo or not pull.head_repo.branch_sha(pull.head)):
        raise invalid("PullRequest", "state", "custom", "state cannot be changed. The head branch was deleted.")
    ask.desk.actions.edit(pull.issue, ask.actor, title=title, body=body)
    if base := ask.body.get("base"):
        _rebase(ask, pull, str(base))
    if state in ("open", "closed"):
        ask.desk.actions.set_state(pull.issue, ask.actor, state)
    return await _full(ask, pull)


def _rebase(ask: Ask, pull: Pull, base: str) -> None:
    sha = pull.issue.repo.branch_sha(base)
    if sha is None:
        raise invalid("PullRequest", "base", "invalid")
    pull.base, pull.base_sha = base, sha
    ask.state.touch()


async def list_files(ask: Ask) -> Response:
    pull = _pull(ask)
    repo = pull.issue.repo
    files = await asyncio.to_thread(pull_payloads.changed_files, ask.state, repo, pull.base_sha, pull.head_sha)
    return paged(ask, files[:LISTED_FILES], lambda each: each)


async def list_commits(ask: Ask) -> Response:
    pull = _pull(ask)
    repo = pull.issue.repo
    span = f"{pull.base_sha}..{pull.head_sha}"
    shas = gitstore.git(repo.path, "rev-list", "--reverse", "--max-count=250", span).decode().split()
    return paged(ask, shas, lambda sha: pull_payloads.commit(ask.state, repo, sha))


async def list_reviews(ask: Ask) -> Response:
    return paged(ask, _pull(ask).reviews, lambda each: pull_payloads.review(ask.state, each))


async def list_review_comments(ask: Ask) -> Response:
    found = [(review, each) for review in _pull(ask).reviews for each in review.comments]
    if ask.query("sort") == "created" and ask.query("direction") == "desc":
        found.reverse()
    return paged(ask, found, lambda each: pull_payloads.review_comment(ask.state, *each))


async def list_comments_of_review(ask: Ask) -> Response:
    found = next((each for each in _pull(ask).reviews if each.id == ask.number("review_id")), None)
    if found is None:
        raise Refusal(404, "Not Found")
    return paged(ask, found.comments, lambda each: pull_payloads.review_comment(ask.state, found, each))


async def dismiss_review(ask: Ask) -> Response:
    """Dismiss a review, unless it is only a comment."""
    found = next((each for each in _pull(ask, WRITE).reviews if each.id == ask.number("review_id")), None)
    if found is None:
        raise Refusal(404, "Not Found")
    ask.text("PullRequestReview", "message")
    if found.state not in ("APPROVED", "CHANGES_REQUESTED"):
        raise Refusal(422, "Unprocessable Entity", errors=["Can not dismiss a commented pull request review"])
    found.state = "DISMISSED"
    ask.state.touch()
    return answer(pull_payloads.review(ask.state, found))


async def request_reviewers(ask: Ask) -> Response:
    """Request all reviewers or none."""
    pull = _pull(ask, WRITE)
    wanted = [ask.state.account(str(each)) for each in ask.body.get("reviewers") or []]
    repo = pull.issue.repo
    if any(each is None or each.type != "User" or repo.role(each) == "none" for each in wanted):
        text = (
            "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not"
        )
        raise Refusal(422, f"{text} a collaborator of the {repo.full_name} repository.")
    if pull.issue.author in wanted:
        raise Refusal(422, "Review cannot be requested from pull request author.")
    for each in wanted:
        if each is not None and each not in pull.requested:
            pull.requested.append(each)
            told = payloads.user(ask.state, each)
            ask.desk.actions.pull_changed(pull, ask.actor, "review_requested", requested_reviewer=told)
    return await _full(ask, pull, 201)


async def create_review(ask: Ask) -> Response:
    pull = _pull(ask, WRITE)
    verdict = VERDICTS.get(str(ask.body.get("event", "")))
    body = ask.text("PullRequestReview", "body", required=verdict == "CHANGES_REQUESTED") or ""
    comments = ask.body.get("comments") or []
    if verdict is None:
        raise invalid("PullRequestReview", "event", "invalid")
    if verdict == "COMMENTED" and not body and not comments:
        raise invalid("PullRequestReview", "body", "missing_field")
    if pull.issue.author is ask.actor and verdict != "COMMENTED":
        what = "approve" if verdict == "APPROVED" else "request changes on"
        raise Refusal(422, "Unprocessable Entity", errors=[f"Can not {what} your own pull request"])
    sha = str(ask.body.get("commit_id") or pull.head_sha)
    found = await asyncio.to_thread(_inline, ask, pull, sha, comments)
    ask.desk.limits.create(ask.credential)
    review = Review(ask.state.new_id(), pull, ask.actor, verdict, body, sha, ask.state.clock(), found)
    ask.desk.actions.submit_review(review)
    return answer(pull_payloads.review(ask.state, review))


def _inline(ask: Ask, pull: Pull, sha: str, comments: list[Json]) -> list[ReviewComment]:
    """Read the comments at lines; a line that the diff lacks refuses the whole review with 422."""
    repo = pull.issue.repo
    if gitstore.resolve(repo.path, sha) is None:
        raise Refusal(422, "Unprocessable Entity", errors=["The commit_id is not part of the pull request"])
    files = pull_payloads.changed_files(ask.state, repo, pull.base_sha, sha) if comments else []
    patches = {each["filename"]: each.get("patch", "") for each in files}
    places = {path: pull_payloads.commentable(patch) for path, patch in patches.items()}
    found = []
    for each in comments:
        path, line, side = str(each.get("path")), each.get("line"), str(each.get("side") or "RIGHT")
        first = each.get("start_line")
        if path not in places:
            raise Refusal(422, "Unprocessable Entity", errors=["Path could not be resolved"])
        if not {(side, at) for at in (line, first) if at is not None} <= places[path] or line is None:
            raise Refusal(422, "Unprocessable Entity", errors=["Line could not be resolved"])
        now = ask.state.clock()
        hunk = pull_payloads.hunk_at(patches[path], side, int(line))
        new = ReviewComment(ask.state.new_id(), path, str(each.get("body", "")), int(line), side, first, now, hunk)
        found.append(new)
    return found


ROUTES = of_repositories(
    ("GET", "/pulls", list_pulls),
    ("POST", "/pulls", create_pull),
    ("GET", "/pulls/{number}", get_pull),
    ("PATCH", "/pulls/{number}", edit_pull),
    ("GET", "/pulls/{number}/files", list_files),
    ("GET", "/pulls/{number}/commits", list_commits),
    ("GET", "/pulls/{number}/reviews", list_reviews),
    ("POST", "/pulls/{number}/reviews", create_review),
    ("GET", "/pulls/{number}/reviews/{review_id}/comments", list_comments_of_review),
    ("PUT", "/pulls/{number}/reviews/{review_id}/dismissals", dismiss_review),
    ("GET", "/pulls/{number}/comments", list_review_comments),
    ("POST", "/pulls/{number}/requested_reviewers", request_reviewers),
)
