"""Pull requests, reviews, files and commits as GitHub's JSON."""

from __future__ import annotations

import re
from typing import Any

from bot.simulation.github import gitstore, payloads
from bot.simulation.github.payloads import Json, node_id, stamp, user
from bot.simulation.github.state import Repository, State
from bot.simulation.github.threads import Pull, Review, ReviewComment

STATUS = {"A": "added", "D": "removed", "M": "modified", "T": "changed", "R": "renamed", "C": "copied"}
HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def pull(state: State, pull: Pull) -> Json:
    """Return the form of lists and webhooks."""
    issue, repo = pull.issue, pull.issue.repo
    url = f"{payloads.repo_url(state, repo)}/pulls/{pull.number}"
    page = payloads.page_of(state, issue)
    issue_url = f"{payloads.repo_url(state, repo)}/issues/{pull.number}"
    statuses = f"{payloads.repo_url(state, repo)}/statuses/{pull.head_sha}"
    links = {
        "html": page,
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{payloads.repo_url(state, repo)}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": statuses,
    }
    return {
        "url": url,
        "id": issue.id,
        "node_id": node_id("PullRequest", issue.id),
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": issue_url,
        "number": pull.number,
        "state": issue.state,
        "locked": issue.locked,
        "title": issue.title,
        "user": user(state, issue.author),
        "body": issue.body,
        "created_at": stamp(issue.created_at),
        "updated_at": stamp(issue.updated_at),
        "closed_at": stamp(issue.closed_at),
        "merged_at": stamp(pull.merged_at),
        "assignees": [],
        "requested_reviewers": [user(state, each) for each in pull.requested],
        "requested_teams": [payloads.team(state, repo.owner, each) for each in pull.requested_teams],
        "labels": [payloads.label(state, repo, each) for each in issue.labels],
        "milestone": None,
        "draft": pull.draft,
        **{f"{name}_url": link for name, link in links.items() if name not in ("html", "issue")},
        "head": _end(state, pull.head_repo, pull.head, pull.head_sha),
        "base": _end(state, repo, pull.base, pull.base_sha),
        "_links": {name: {"href": link} for name, link in {"self": url, **links}.items()},
        "author_association": payloads.association(repo, issue.author),
        "auto_merge": None,
        "active_lock_reason": None,
    }


def _end(state: State, repo: Repository | None, branch: str, sha: str) -> Json:
    return {
        "label": f"{repo.owner.login if repo else 'unknown'}:{branch}",
        "ref": branch,
        "sha": sha,
        "user": user(state, repo.owner) if repo else None,
        "repo": payloads.repository(state, repo) if repo and not repo.deleted else None,
    }


def full_pull(state: State, whole: Pull) -> Json:
    """Return the form for one pull request, with the counts of its diff."""
    repo = whole.issue.repo
    files = changed_files(state, repo, whole.base_sha, whole.head_sha)
    return pull(state, whole) | {
        "merged": whole.merged_at is not None,
        "mergeable": None if whole.merged_at else True,
        "mergeable_state": "draft" if whole.draft else "clean",
        "rebaseable": None,
        "merged_by": user(state, whole.merged_by) if whole.merged_by else None,
        "comments": len(whole.issue.comments),
        "review_comments": sum(len(review.comments) for review in whole.reviews),
        "maintainer_can_modify": False,
        "commits": gitstore.count(repo.path, whole.base_sha, whole.head_sha),
        "additions": sum(each["additions"] for each in files),
        "deletions": sum(each["deletions"] for each in files),
        "changed_files": len(files),
    }


MOST_LINES, MOST_BYTES = 20_000, 500 << 10
"""GitHub shows no longer diff of one file."""


def changed_files(state: State, repo: Repository, base: str, head: str) -> list[Json]:
    start = gitstore.merge_base(repo.path, base, head) or gitstore.EMPTY_TREE
    raw = gitstore.on_commits(repo.path, "diff", "--raw", "-z", "-M", "--abbrev=40", start, head)
    patches = _patches(gitstore.on_commits(repo.path, "diff", "-M", start, head).decode("utf-8", "replace"))
    fields = iter(raw.decode("utf-8", "surrogateescape").split("\0"))
    found: list[Json] = []
    for head_line in fields:
        if not head_line:
            break
        _, _, _, sha, status = head_line.split(" ")
        old = next(fields)
        name = next(fields) if status[0] in "RC" else old
        found.append(_file(state, repo, (name, old, sha, STATUS[status[0]]), patches[len(found)]))
    return found


def _file(state: State, repo: Repository, what: tuple[str, str, str, str], patch: str) -> Json:
    name, old, sha, status = what
    added = sum(1 for line in patch.split("\n") if line.startswith("+"))
    removed = sum(1 for line in patch.split("\n") if line.startswith("-"))
    whole = {
        "sha": sha,
        "filename": name,
        "status": status,
        "additions": added,
        "deletions": removed,
        "changes": added + removed,
        "blob_url": f"{state.url}/{repo.full_name}/blob/{sha}/{name}",
        "raw_url": f"{state.url}/{repo.full_name}/raw/{sha}/{name}",
        "contents_url": f"{payloads.repo_url(state, repo)}/contents/{name}",
    }
    is_shown = patch and added + removed <= MOST_LINES and len(patch) <= MOST_BYTES
    return whole | ({"patch": patch} if is_shown else {}) | ({"previous_filename": old} if old != name else {})


def _patches(diff: str) -> list[str]:
    """Return the hunks of each file, in order; GitHub calls them `patch`."""
    found = []
    for part in re.split(r"^diff --git .*\n", diff, flags=re.M)[1:]:
        start = re.search(r"^@@ ", part, flags=re.M)
        found.append(part[start.start() :].rstrip("\n") if start else "")
    return found


def commentable(patch: str) -> set[tuple[str, int]]:
    """Return the (side, line) pairs at which a review comment may be."""
    found: set[tuple[str, int]] = set()
    left = right = 0
    for line in patch.split("\n"):
        if hunk := HUNK.match(line):
            left, right = int(hunk[1]), int(hunk[2])
        elif line.startswith("-"):
            found.add(("LEFT", left))
            left += 1
        elif line.startswith("+"):
            found.add(("RIGHT", right))
            right += 1
        elif line.startswith(" "):
            found |= {("LEFT", left), ("RIGHT", right)}
            left, right = left + 1, right + 1
    return found


def hunk_at(patch: str, side: str, line: int) -> str:
    """Return a hunk from its head down to the line, as GitHub shows it above a comment."""
    found: list[str] = []
    left = right = 0
    for text in patch.split("\n"):
        if hunk := HUNK.match(text):
            left, right, found = int(hunk[1]), int(hunk[2]), [text]
            continue
        found.append(text)
        if (right if side == "RIGHT" else left) == line and not text.startswith("-" if side == "RIGHT" else "+"):
            return "\n".join(found)
        left, right = left + (not text.startswith("+")), right + (not text.startswith("-"))
    return ""


def review(state: State, review: Review) -> Json:
    page = f"{payloads.page_of(state, review.pull.issue)}#pullrequestreview-{review.id}"
    url = f"{payloads.repo_url(state, review.pull.issue.repo)}/pulls/{review.pull.number}"
    return {
        "id": review.id,
        "node_id": node_id("PullRequestReview", review.id),
        "user": user(state, review.author),
        "body": review.body,
        "state": review.state,
        "html_url": page,
        "pull_request_url": url,
        "_links": {"html": {"href": page}, "pull_request": {"href": url}},
        "submitted_at": stamp(review.submitted_at),
        "commit_id": review.commit_id,
        "author_association": payloads.association(review.pull.issue.repo, review.author),
    }


def review_comment(state: State, review: Review, comment: ReviewComment) -> Json:
    repo = review.pull.issue.repo
    url = f"{payloads.repo_url(state, repo)}/pulls/comments/{comment.id}"
    page = f"{payloads.page_of(state, review.pull.issue)}#discussion_r{comment.id}"
    pull_url = f"{payloads.repo_url(state, repo)}/pulls/{review.pull.number}"
    return {
        "url": url,
        "pull_request_review_id": review.id,
        "id": comment.id,
        "node_id": node_id("PullRequestReviewComment", comment.id),
        "diff_hunk": comment.hunk,
        "path": comment.path,
        "line": comment.line,
        "side": comment.side,
        "start_line": comment.start_line,
        "start_side": comment.side if comment.start_line else None,
        "original_line": comment.line,
        "original_start_line": comment.start_line,
        "subject_type": "line",
        **({"in_reply_to_id": comment.reply_to.id} if comment.reply_to else {}),
        "commit_id": review.commit_id,
        "original_commit_id": review.commit_id,
        "user": user(state, review.author),
        "body": comment.body,
        "created_at": stamp(comment.created_at),
        "updated_at": stamp(comment.created_at),
        "html_url": page,
        "pull_request_url": pull_url,
        "author_association": payloads.association(repo, review.author),
        "_links": {"self": {"href": url}, "html": {"href": page}, "pull_request": {"href": pull_url}},
    }


def commit(state: State, repo: Repository, sha: str) -> Json:
    form = "%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
    fields = gitstore.git(repo.path, "show", "-s", f"--format={form}", sha).decode("utf-8", "replace").split("\0")
    tree, parents, *people, message = fields
    url = payloads.repo_url(state, repo)
    page = f"{state.url}/{repo.full_name}/commit"
    author, committer = (dict(zip(("name", "email", "date"), each, strict=True)) for each in (people[:3], people[3:]))
    is_verified = sha in repo.verified
    verification: dict[str, Any] = {"verified": is_verified, "reason": "valid" if is_verified else "unsigned"}
    return {
        "sha": sha,
        "node_id": node_id("Commit", sha),
        "commit": {
            "author": author,
            "committer": committer,
            "message": message.rstrip("\n"),
            "tree": {"sha": tree, "url": f"{url}/git/trees/{tree}"},
            "url": f"{url}/git/commits/{sha}",
            "comment_count": 0,
            "verification": verification | dict.fromkeys(("signature", "payload", "verified_at")),
        },
        "url": f"{url}/commits/{sha}",
        "html_url": f"{page}/{sha}",
        "comments_url": f"{url}/commits/{sha}/comments",
        "author": None,
        "committer": None,
        "parents": [
            {"sha": each, "url": f"{url}/commits/{each}", "html_url": f"{page}/{each}"} for each in parents.split()
        ],
    }
