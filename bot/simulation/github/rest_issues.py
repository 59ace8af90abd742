"""Routes of issues and the conversations of pull requests: comments, reactions, labels."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from starlette.responses import Response

from bot.simulation.github import attachments, auth, payloads, rendering
from bot.simulation.github.auth import Refusal
from bot.simulation.github.payloads import Json
from bot.simulation.github.rest import Ask, answer, invalid, nothing, of_repositories, paged
from bot.simulation.github.threads import Comment, Issue, ReviewComment

READ = ("issues:read", "pull_requests:read")
CONTENTS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def _writable(ask: Ask) -> Issue:
    """Require `issues: write`; for a pull request's conversation, `pull_requests: write` is enough."""
    issue = ask.issue(*READ)
    auth.require(ask.credential, issue.repo, *_needs(issue))
    return issue


def _needs(issue: Issue) -> tuple[str, ...]:
    return ("issues:write", "pull_requests:write") if issue.pull else ("issues:write",)


def _rendered(ask: Ask, whole: Json) -> Json:
    """Return the body in the forms of the media type."""
    body = whole["body"] or ""
    if ask.accepts("full"):
        return whole | {"body_text": rendering.text(body), "body_html": _page(ask, body)}
    for form, render in (("text", rendering.text), ("html", partial(_page, ask))):
        if ask.accepts(form):
            return {name: value for name, value in whole.items() if name != "body"} | {f"body_{form}": render(body)}
    return whole


def _page(ask: Ask, body: str) -> str:
    return attachments.signed(ask.state, rendering.html(body))


def _issue(ask: Ask, issue: Issue) -> Json:
    return _rendered(ask, payloads.issue(ask.state, issue))


def _comment(ask: Ask, comment: Comment) -> Json:
    return _rendered(ask, payloads.comment(ask.state, comment))


def _sorted(ask: Ask, items: list[Comment]) -> list[Comment]:
    since = ask.query("since")
    if since:
        try:
            start = datetime.fromisoformat(since).timestamp()
        except ValueError:
            raise invalid("Comment", "since", "invalid") from None
        items = [each for each in items if each.updated_at >= start]
    newest_first = ask.query("direction") == "desc"
    if ask.query("sort") == "updated":
        return sorted(items, key=lambda each: each.updated_at, reverse=newest_first)
    return items[::-1] if newest_first and ask.query("sort") == "created" else items


async def get_issue(ask: Ask) -> Response:
    return answer(_issue(ask, ask.issue(*READ)))


async def list_issues(ask: Ask) -> Response:
    repo = ask.repo(*READ)
    state = ask.query("state", "open")
    creator = ask.query("creator")
    if creator and creator not in [one.login for one in ask.state.accounts.values()]:
        raise invalid("Issue", "creator", "invalid")
    found = [each for each in repo.issues.values() if state in ("all", each.state)]
    found = [each for each in found if creator in ("", each.author.login)]
    return paged(ask, found[::-1], lambda each: _issue(ask, each))


async def create_issue(ask: Ask) -> Response:
    repo = ask.repo(*READ)
    auth.require(ask.credential, repo, "issues:write")
    if not repo.has_issues:
        raise Refusal(410, "Issues has been disabled in this repository.")
    title = ask.text("Issue", "title", limit=256)
    body = ask.text("Issue", "body", required=False)
    assert title is not None
    ask.desk.limits.create(ask.credential)
    issue = ask.desk.actions.open_issue(repo, ask.actor, title, body, ask.token().installation.app)
    return answer(_issue(ask, issue), 201)


async def list_comments(ask: Ask) -> Response:
    """List comments oldest first; only the repository's list knows `sort` and `direction`."""
    issue = ask.issue(*READ)
    by_age = [each for each in _sorted(ask, issue.comments) if not each.deleted]
    by_age.sort(key=lambda each: each.id)
    return paged(ask, by_age, lambda each: _comment(ask, each))


async def list_repo_comments(ask: Ask) -> Response:
    repo = ask.repo(*READ)
    found = sorted((c for issue in repo.issues.values() for c in issue.comments), key=lambda each: each.id)
    return paged(ask, _sorted(ask, found), lambda each: _comment(ask, each))


async def create_comment(ask: Ask) -> Response:
    issue = _writable(ask)
    if issue.locked:
        raise Refusal(403, "Unable to create comment because issue is locked.")
    body = ask.text("IssueComment", "body")
    assert body is not None
    ask.desk.limits.create(ask.credential)
    comment = ask.desk.actions.comment(issue, ask.actor, body, ask.token().installation.app)
    return answer(_comment(ask, comment), 201)


def _find_comment(ask: Ask, *, write: bool = False) -> Comment:
    repo = ask.repo(*READ)
    comment = ask.state.comment(repo, ask.number("comment_id"))
    if comment is None:
        raise Refusal(404, "Not Found")
    if write:
        auth.require(ask.credential, repo, *_needs(comment.issue))
    return comment


async def get_comment(ask: Ask) -> Response:
    return answer(_comment(ask, _find_comment(ask)))


async def edit_comment(ask: Ask) -> Response:
    comment = _find_comment(ask, write=True)
    body = ask.text("IssueComment", "body")
    assert body is not None
    ask.desk.limits.edit(ask.credential)
    ask.desk.actions.edit_comment(comment, ask.actor, body)
    return answer(_comment(ask, comment))


async def delete_comment(ask: Ask) -> Response:
    ask.desk.actions.delete_comment(_find_comment(ask, write=True), ask.actor)
    return nothing()


def react(ask: Ask, subject: Comment | Issue | ReviewComment) -> Response:
    content = ask.body.get("content")
    if content not in CONTENTS:
        raise invalid("Reaction", "content", "invalid")
    reaction, new = ask.desk.actions.react(subject, ask.actor, str(content))
    return answer(payloads.reaction(ask.state, reaction), 201 if new else 200)


async def react_to_issue(ask: Ask) -> Response:
    return react(ask, _writable(ask))


async def react_to_comment(ask: Ask) -> Response:
    return react(ask, _find_comment(ask, write=True))


async def list_issue_reactions(ask: Ask) -> Response:
    return paged(ask, ask.issue(*READ).reactions, lambda each: payloads.reaction(ask.state, each))


async def list_comment_reactions(ask: Ask) -> Response:
    return paged(ask, _find_comment(ask).reactions, lambda each: payloads.reaction(ask.state, each))


def _unreact(ask: Ask, subject: Comment | Issue) -> Response:
    for each in subject.reactions:
        if each.id == ask.number("reaction_id"):
            subject.reactions.remove(each)
            ask.state.touch()
            return nothing()
    raise Refusal(404, "Not Found")


async def unreact_to_issue(ask: Ask) -> Response:
    return _unreact(ask, _writable(ask))


async def unreact_to_comment(ask: Ask) -> Response:
    return _unreact(ask, _find_comment(ask, write=True))


async def edit_issue(ask: Ask) -> Response:
    issue = _writable(ask)
    title = ask.text("Issue", "title", limit=256, required=False)
    body = ask.text("Issue", "body", required=False)
    ask.desk.limits.edit(ask.credential)
    ask.desk.actions.edit(issue, ask.actor, title=title, body=body)
    if ask.body.get("state") in ("open", "closed"):
        ask.desk.actions.set_state(issue, ask.actor, ask.body["state"])
    return answer(_issue(ask, issue))


async def list_labels(ask: Ask) -> Response:
    issue = ask.issue(*READ)
    return paged(ask, issue.labels, lambda each: payloads.label(ask.state, issue.repo, each))


async def get_label(ask: Ask) -> Response:
    repo = ask.repo(*READ)
    found = repo.labels.get(ask.param("name").lower())
    if found is None:
        raise Refusal(404, "Not Found")
    return answer(payloads.label(ask.state, repo, found))


async def add_labels(ask: Ask) -> Response:
    issue = _writable(ask)
    names = ask.body.get("labels")
    if not isinstance(names, list) or not all(isinstance(each, str) and len(each) <= 50 for each in names):
        raise invalid("Label", "name", "invalid")
    for name in names:
        ask.desk.actions.label(issue, name, ask.actor)
    return answer([payloads.label(ask.state, issue.repo, each) for each in issue.labels])


async def remove_label(ask: Ask) -> Response:
    issue = _writable(ask)
    for each in issue.labels:
        if each.name.lower() == ask.param("name").lower():
            ask.desk.actions.unlabel(issue, each, ask.actor)
            return answer([payloads.label(ask.state, issue.repo, left) for left in issue.labels])
    raise Refusal(404, "Label does not exist")


ROUTES = of_repositories(
    ("GET", "/issues", list_issues),
    ("POST", "/issues", create_issue),
    ("GET", "/issues/comments", list_repo_comments),
    ("GET", "/issues/comments/{comment_id}", get_comment),
    ("PATCH", "/issues/comments/{comment_id}", edit_comment),
    ("DELETE", "/issues/comments/{comment_id}", delete_comment),
    ("POST", "/issues/comments/{comment_id}/reactions", react_to_comment),
    ("GET", "/issues/comments/{comment_id}/reactions", list_comment_reactions),
    ("DELETE", "/issues/comments/{comment_id}/reactions/{reaction_id}", unreact_to_comment),
    ("GET", "/issues/{number}", get_issue),
    ("PATCH", "/issues/{number}", edit_issue),
    ("GET", "/issues/{number}/comments", list_comments),
    ("POST", "/issues/{number}/comments", create_comment),
    ("POST", "/issues/{number}/reactions", react_to_issue),
    ("GET", "/issues/{number}/reactions", list_issue_reactions),
    ("DELETE", "/issues/{number}/reactions/{reaction_id}", unreact_to_issue),
    ("GET", "/issues/{number}/labels", list_labels),
    ("POST", "/issues/{number}/labels", add_labels),
    ("DELETE", "/issues/{number}/labels/{name}", remove_label),
    ("GET", "/labels/{name}", get_label),
)
