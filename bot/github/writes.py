"""Changes at GitHub, one call each, as they are told to: only `bot.outbound` may use them, after redaction."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from bot.github import reviews, wire
from bot.github.api import Call
from bot.github.reads import Caller, base, segment
from bot.github.types import CheckOutput, FileChanges, MadeCommit, Pull, Purpose, ReviewDraft
from bot.models import Repo

MOST_ANNOTATIONS = 50
"""In one request."""


async def create_comment(caller: Caller, repo: Repo, number: int, body: str) -> int:
    call = Call("POST", f"{base(repo)}/issues/{number}/comments", body={"body": body})
    return (await caller.call(call, Purpose.THREAD, repo.id)).decode(wire.Created).id


async def reply_to_review_comment(caller: Caller, repo: Repo, number: int, comment_id: int, body: str) -> int:
    """`comment_id` is the first of its discussion: GitHub takes no reply to a reply."""
    call = Call("POST", f"{base(repo)}/pulls/{number}/comments/{comment_id}/replies", body={"body": body})
    return (await caller.call(call, Purpose.THREAD, repo.id)).decode(wire.Created).id


async def update_comment(caller: Caller, repo: Repo, comment_id: int, body: str) -> None:
    call = Call("PATCH", f"{base(repo)}/issues/comments/{comment_id}", body={"body": body})
    await caller.call(call, Purpose.THREAD, repo.id)


async def react(caller: Caller, repo: Repo, target: str, reaction: str) -> None:
    """`target` is the path under the repository. GitHub keeps one reaction of a kind from each user."""
    body = {"content": reaction}
    call = Call("POST", f"{base(repo)}/{target}/reactions", body=body, repeatable=True)
    await caller.call(call, Purpose.THREAD, repo.id)


async def create_pull(caller: Caller, repo: Repo, fields: dict[str, Any]) -> Pull:
    """`fields`: title, body, head, base, draft."""
    call = Call("POST", f"{base(repo)}/pulls", body=fields)
    return (await caller.call(call, Purpose.THREAD, repo.id)).decode(wire.PullJson).pull()


async def add_labels(caller: Caller, repo: Repo, number: int, labels: Sequence[str]) -> None:
    """Labelled twice is labelled."""
    path = f"{base(repo)}/issues/{number}/labels"
    call = Call("POST", path, body={"labels": list(labels)}, repeatable=True)
    await caller.call(call, Purpose.THREAD, repo.id)


async def request_review(caller: Caller, repo: Repo, number: int, login: str) -> None:
    path = f"{base(repo)}/pulls/{number}/requested_reviewers"
    call = Call("POST", path, body={"reviewers": [login]}, repeatable=True)
    await caller.call(call, Purpose.THREAD, repo.id)


async def make_ready(caller: Caller, repo: Repo, node_id: str) -> None:
    """A draft that is one no longer; ready twice is ready."""
    await reviews.graphql(caller, _READY, {"id": node_id}, repo, Purpose.THREAD)


_READY = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { id } } }"


async def create_commit(caller: Caller, repo: Repo, fields: dict[str, Any], purpose: Purpose) -> MadeCommit:
    """`fields`: message, tree, parents, and nobody's name: GitHub signs only what it dates and names itself."""
    call = Call("POST", f"{base(repo)}/git/commits", body=fields, repeatable=True)
    return (await caller.call(call, purpose, repo.id)).decode(wire.MadeCommitJson).made()


async def commit_on_branch(  # noqa: PLR0913 - the call's own parts
    caller: Caller, repo: Repo, branch: str, *, expected: str, message: str, files: FileChanges, purpose: Purpose
) -> None:
    """From `expected` alone, so that it happens once however often it is sent."""
    headline, _, body = message.partition("\n")
    additions = [{"path": path, "contents": base64.b64encode(data).decode()} for path, data in files.additions.items()]
    given = {
        "branch": {"repositoryNameWithOwner": repo.full_name, "branchName": branch},
        "message": {"headline": headline, "body": body.strip()},
        "expectedHeadOid": expected,
        "fileChanges": {"additions": additions, "deletions": [{"path": path} for path in files.deletions]},
    }
    await reviews.graphql(caller, _COMMIT, {"input": given}, repo, purpose)


_COMMIT = "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }"


async def create_tree(
    caller: Caller, repo: Repo, base_tree: str, entries: Sequence[dict[str, str | None]], purpose: Purpose
) -> str:
    body = {"base_tree": base_tree, "tree": list(entries)}
    call = Call("POST", f"{base(repo)}/git/trees", body=body, repeatable=True)
    return (await caller.call(call, purpose, repo.id)).decode(wire.RefTarget).sha


async def create_ref(caller: Caller, repo: Repo, ref: str, sha: str, purpose: Purpose) -> None:
    await caller.call(Call("POST", f"{base(repo)}/git/refs", body={"ref": ref, "sha": sha}), purpose, repo.id)


async def move_ref(caller: Caller, repo: Repo, ref: str, sha: str, purpose: Purpose) -> None:
    """`ref` without its `refs/`."""
    body = {"sha": sha, "force": False}
    await caller.call(Call("PATCH", f"{base(repo)}/git/refs/{_path(ref)}", body=body), purpose, repo.id)


async def delete_ref(caller: Caller, repo: Repo, ref: str) -> None:
    await caller.call(Call("DELETE", f"{base(repo)}/git/refs/{_path(ref)}"), Purpose.PUSH, repo.id)


def _path(ref: str) -> str:
    return "/".join(segment(part) for part in ref.split("/"))


async def create_review(caller: Caller, repo: Repo, number: int, draft: ReviewDraft) -> int:
    """All of it or nothing: one line that the diff does not show, and GitHub takes none (422)."""
    comments = [
        {"path": one.path, "line": one.line, "side": "RIGHT", "body": one.body}
        | ({} if one.start_line is None else {"start_line": one.start_line, "start_side": "RIGHT"})
        for one in draft.comments
    ]
    body: dict[str, Any] = {"event": draft.event, "body": draft.body, "comments": comments}
    body |= {} if draft.sha is None else {"commit_id": draft.sha}
    call = Call("POST", f"{base(repo)}/pulls/{number}/reviews", body=body)
    return (await caller.call(call, Purpose.THREAD, repo.id)).decode(wire.Created).id


async def dismiss_review(caller: Caller, repo: Repo, number: int, review_id: int, message: str) -> None:
    """Dismissed twice is dismissed."""
    path = f"{base(repo)}/pulls/{number}/reviews/{review_id}/dismissals"
    await caller.call(Call("PUT", path, body={"message": message, "event": "DISMISS"}), Purpose.THREAD, repo.id)


async def resolve_discussion(caller: Caller, repo: Repo, thread_id: str) -> None:
    """Resolved twice is resolved."""
    await reviews.graphql(caller, _RESOLVE, {"id": thread_id}, repo, Purpose.RESOLVE)


_RESOLVE = "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id } } }"


async def create_check(
    caller: Caller, repo: Repo, *, sha: str, name: str, external_id: str, output: CheckOutput
) -> int:
    body = {"name": name, "head_sha": sha, "external_id": external_id, **_check(output)}
    call = Call("POST", f"{base(repo)}/check-runs", body=body)
    return (await caller.call(call, Purpose.CHECKS, repo.id)).decode(wire.Created).id


async def update_check(caller: Caller, repo: Repo, check_id: int, output: CheckOutput) -> None:
    call = Call("PATCH", f"{base(repo)}/check-runs/{check_id}", body=_check(output))
    await caller.call(call, Purpose.CHECKS, repo.id)


async def annotate_check(caller: Caller, repo: Repo, check_id: int, output: CheckOutput) -> None:
    """Adds the annotations of `output` to those that it has: at most `MOST_ANNOTATIONS` at a time."""
    annotations = [
        {
            "path": one.path,
            "start_line": one.first,
            "end_line": one.last,
            "annotation_level": one.level,
            "message": one.message,
        }
        | ({"title": one.title} if one.title else {})
        for one in output.annotations
    ]
    body = {"output": {"title": output.title, "summary": output.summary, "annotations": annotations}}
    call = Call("PATCH", f"{base(repo)}/check-runs/{check_id}", body=body, once=True)
    await caller.call(call, Purpose.CHECKS, repo.id)


async def rerun_failed(caller: Caller, repo: Repo, run_id: int) -> None:
    """The failed jobs of a run of Actions, and what depends on them."""
    call = Call("POST", f"{base(repo)}/actions/runs/{run_id}/rerun-failed-jobs")
    await caller.call(call, Purpose.RERUN, repo.id)


def _check(output: CheckOutput) -> dict[str, Any]:
    body: dict[str, Any] = {"output": {"title": output.title, "summary": output.summary}}
    if output.conclusion is None:
        body["status"] = output.status
    else:
        body |= {"status": "completed", "conclusion": output.conclusion}
    body["actions"] = [
        {"label": one.label, "description": one.what, "identifier": one.identifier} for one in output.buttons
    ]
    if output.details_url is not None:
        body["details_url"] = output.details_url
    return body
