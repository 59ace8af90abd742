"""Routes of the discussions in a diff: one comment, an answer in its thread, a reaction."""

from __future__ import annotations

from starlette.responses import Response

from bot.simulation.github import auth, pull_payloads, rest_issues
from bot.simulation.github.auth import Refusal
from bot.simulation.github.rest import Ask, answer, of_repositories
from bot.simulation.github.threads import Review, ReviewComment

READ, WRITE = "pull_requests:read", "pull_requests:write"


def _find(ask: Ask, need: str = READ) -> tuple[Review, ReviewComment]:
    repo = ask.repo(READ)
    found = ask.state.review_comment(repo, ask.number("comment_id"))
    if found is None:
        raise Refusal(404, "Not Found")
    auth.require(ask.credential, repo, need)
    return found


async def get_comment(ask: Ask) -> Response:
    return answer(pull_payloads.review_comment(ask.state, *_find(ask)))


async def reply(ask: Ask) -> Response:
    """Reply only to the first comment of a discussion, and of the pull request in the path."""
    review, comment = _find(ask, WRITE)
    if review.pull.number != ask.number("number"):
        raise Refusal(404, "Not Found")
    if comment.reply_to is not None:
        raise Refusal(422, "Validation Failed", errors=["in_reply_to is not a top-level review comment"])
    if review.pull.issue.locked:
        raise Refusal(403, "Unable to create comment because issue is locked.")
    body = ask.text("PullRequestReviewComment", "body")
    assert body is not None
    ask.desk.limits.create(ask.credential)
    return answer(
        pull_payloads.review_comment(ask.state, *ask.desk.actions.reply_in_review(comment, review, ask.actor, body)),
        201,
    )


async def react(ask: Ask) -> Response:
    return rest_issues.react(ask, _find(ask, WRITE)[1])


ROUTES = of_repositories(
    ("GET", "/pulls/comments/{comment_id}", get_comment),
    ("POST", "/pulls/comments/{comment_id}/reactions", react),
    ("POST", "/pulls/{number}/comments/{comment_id}/replies", reply),
)
