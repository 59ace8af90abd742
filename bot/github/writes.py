"""Changes things at GitHub, one call each. Only `bot.outbound` may use them, after redaction."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from bot.github import reviews, wire
from bot.github.api import ApiCall
from bot.github.reads import ApiCaller, base, segments
from bot.github.types import CheckOutput, FileChanges, MadeCommit, Pull, ReviewDraft, TokenPurpose
from bot.models import Repo

MOST_ANNOTATIONS = 50
"""The most for one request."""
_READY = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { id } } }"
_COMMIT = "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }"
_RESOLVE = "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id } } }"


async def create_comment(caller: ApiCaller, repo: Repo, number: int, body: str) -> int:
    call = ApiCall("POST", f"{base(repo)}/issues/{number}/comments", body={"body": body})
    return (await caller.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.Created).id


async def create_issue(caller: ApiCaller, repo: Repo, title: str, body: str) -> int:
    call = ApiCall("POST", f"{base(repo)}/issues", body={"title": title, "body": body})
    return (await caller.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.MadeIssue).number


async def update_issue(caller: ApiCaller, repo: Repo, number: int, fields: dict[str, Any]) -> None:
    """Change an issue; `fields` are body and state."""
    call = ApiCall("PATCH", f"{base(repo)}/issues/{number}", body=fields)
    await caller.call(call, TokenPurpose.THREAD, repo.id)


async def reply_to_review_comment(caller: ApiCaller, repo: Repo, number: int, comment_id: int, body: str) -> int:
    """Reply to `comment_id`, the first of its discussion; GitHub takes no reply to a reply."""
    call = ApiCall("POST", f"{base(repo)}/pulls/{number}/comments/{comment_id}/replies", body={"body": body})
    return (await caller.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.Created).id


async def update_comment(caller: ApiCaller, repo: Repo, comment_id: int, body: str) -> None:
    call = ApiCall("PATCH", f"{base(repo)}/issues/comments/{comment_id}", body={"body": body})
    await caller.call(call, TokenPurpose.THREAD, repo.id)


async def react(caller: ApiCaller, repo: Repo, target: str, reaction: str) -> None:
    """React to `target`, a path under the repository. GitHub keeps one reaction of a kind from each user."""
    call = ApiCall("POST", f"{base(repo)}/{target}/reactions", body={"content": reaction}, repeatable=True)
    await caller.call(call, TokenPurpose.THREAD, repo.id)


async def create_pull(caller: ApiCaller, repo: Repo, fields: dict[str, Any]) -> Pull:
    """Open a pull request; `fields` are title, body, head, base and draft."""
    call = ApiCall("POST", f"{base(repo)}/pulls", body=fields)
    return (await caller.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.PullJson).pull()


async def add_labels(caller: ApiCaller, repo: Repo, number: int, labels: Sequence[str]) -> None:
    path = f"{base(repo)}/issues/{number}/labels"
    call = ApiCall("POST", path, body={"labels": list(labels)}, repeatable=True)
    await caller.call(call, TokenPurpose.THREAD, repo.id)


async def request_review(caller: ApiCaller, repo: Repo, number: int, login: str) -> None:
    path = f"{base(repo)}/pulls/{number}/requested_reviewers"
    call = ApiCall("POST", path, body={"reviewers": [login]}, repeatable=True)
    await caller.call(call, TokenPurpose.THREAD, repo.id)


async def make_ready(caller: ApiCaller, repo: Repo, node_id: str) -> None:
    await reviews.graphql(caller, _READY, {"id": node_id}, repo, TokenPurpose.THREAD)


async def create_commit(caller: ApiCaller, repo: Repo, fields: dict[str, Any], purpose: TokenPurpose) -> MadeCommit:
    """Make a commit of message, tree and parents. GitHub signs it only if `fields` name no person and no date."""
    call = ApiCall("POST", f"{base(repo)}/git/commits", body=fields, repeatable=True)
    return (await caller.call(call, purpose, repo.id)).decode(wire.MadeCommitJson).made()


async def commit_on_branch(  # noqa: PLR0913 - the call's own parts
    caller: ApiCaller,
    repo: Repo,
    branch: str,
    *,
    expected: str,
    message: str,
    files: FileChanges,
    purpose: TokenPurpose,
) -> None:
    """Commit only on top of `expected`, so that a repeated request has no second effect."""
    headline, _, body = message.partition("\n")
    additions = [{"path": path, "contents": base64.b64encode(data).decode()} for path, data in files.additions.items()]
    given = {
        "branch": {"repositoryNameWithOwner": repo.full_name, "branchName": branch},
        "message": {"headline": headline, "body": body.strip()},
        "expectedHeadOid": expected,
        "fileChanges": {"additions": additions, "deletions": [{"path": path} for path in files.deletions]},
    }
    await reviews.graphql(caller, _COMMIT, {"input": given}, repo, purpose)


async def create_tree(
    caller: ApiCaller, repo: Repo, base_tree: str, entries: Sequence[dict[str, str | None]], purpose: TokenPurpose
) -> str:
    body = {"base_tree": base_tree, "tree": list(entries)}
    call = ApiCall("POST", f"{base(repo)}/git/trees", body=body, repeatable=True)
    return (await caller.call(call, purpose, repo.id)).decode(wire.RefTarget).sha


async def create_ref(caller: ApiCaller, repo: Repo, ref: str, sha: str, purpose: TokenPurpose) -> None:
    await caller.call(ApiCall("POST", f"{base(repo)}/git/refs", body={"ref": ref, "sha": sha}), purpose, repo.id)


async def move_ref(caller: ApiCaller, repo: Repo, ref: str, sha: str, purpose: TokenPurpose) -> None:
    """Move a ref, given without its `refs/`."""
    body = {"sha": sha, "force": False}
    await caller.call(ApiCall("PATCH", f"{base(repo)}/git/refs/{segments(ref)}", body=body), purpose, repo.id)


async def delete_ref(caller: ApiCaller, repo: Repo, ref: str) -> None:
    await caller.call(ApiCall("DELETE", f"{base(repo)}/git/refs/{segments(ref)}"), TokenPurpose.PUSH, repo.id)


async def create_review(caller: ApiCaller, repo: Repo, number: int, draft: ReviewDraft) -> int:
    """Post all or nothing: GitHub refuses the whole review (422) if a comment is at a line that the diff lacks."""
    comments = [
        {"path": one.path, "line": one.line, "side": "RIGHT", "body": one.body}
        | ({} if one.start_line is None else {"start_line": one.start_line, "start_side": "RIGHT"})
        for one in draft.comments
    ]
    body: dict[str, Any] = {"event": draft.event, "body": draft.body, "comments": comments}
    body |= {} if draft.sha is None else {"commit_id": draft.sha}
    call = ApiCall("POST", f"{base(repo)}/pulls/{number}/reviews", body=body)
    return (await caller.call(call, TokenPurpose.THREAD, repo.id)).decode(wire.Created).id


async def dismiss_review(caller: ApiCaller, repo: Repo, number: int, review_id: int, message: str) -> None:
    path = f"{base(repo)}/pulls/{number}/reviews/{review_id}/dismissals"
    await caller.call(ApiCall("PUT", path, body={"message": message, "event": "DISMISS"}), TokenPurpose.THREAD, repo.id)


async def resolve_discussion(caller: ApiCaller, repo: Repo, thread_id: str) -> None:
    await reviews.graphql(caller, _RESOLVE, {"id": thread_id}, repo, TokenPurpose.RESOLVE)


async def create_check(
    caller: ApiCaller, repo: Repo, *, sha: str, name: str, external_id: str, output: CheckOutput
) -> int:
    body = {"name": name, "head_sha": sha, "external_id": external_id, **_check(output)}
    call = ApiCall("POST", f"{base(repo)}/check-runs", body=body)
    return (await caller.call(call, TokenPurpose.CHECKS, repo.id)).decode(wire.Created).id


async def update_check(caller: ApiCaller, repo: Repo, check_id: int, output: CheckOutput) -> None:
    call = ApiCall("PATCH", f"{base(repo)}/check-runs/{check_id}", body=_check(output))
    await caller.call(call, TokenPurpose.CHECKS, repo.id)


async def annotate_check(caller: ApiCaller, repo: Repo, check_id: int, output: CheckOutput) -> None:
    """Add the annotations of `output`, at most `MOST_ANNOTATIONS` at a time, to those that the check has."""
    annotations = [
        {"path": one.path, "start_line": one.first, "end_line": one.last}
        | {"annotation_level": one.level, "message": one.message}
        | ({"title": one.title} if one.title else {})
        for one in output.annotations
    ]
    body = {"output": {"title": output.title, "summary": output.summary, "annotations": annotations}}
    call = ApiCall("PATCH", f"{base(repo)}/check-runs/{check_id}", body=body, once=True)
    await caller.call(call, TokenPurpose.CHECKS, repo.id)


async def rerun_failed(caller: ApiCaller, repo: Repo, run_id: int) -> None:
    """Run the failed jobs of a run of Actions again, and the jobs that depend on them."""
    call = ApiCall("POST", f"{base(repo)}/actions/runs/{run_id}/rerun-failed-jobs")
    await caller.call(call, TokenPurpose.RERUN, repo.id)


def _check(output: CheckOutput) -> dict[str, Any]:
    buttons = [{"label": one.label, "description": one.what, "identifier": one.identifier} for one in output.buttons]
    body = {"output": {"title": output.title, "summary": output.summary}, "actions": buttons}
    ended = {"status": "completed", "conclusion": output.conclusion}
    details = {} if output.details_url is None else {"details_url": output.details_url}
    return {**body, **({"status": output.status} if output.conclusion is None else ended), **details}
