"""Accounts, Apps, repositories, issues and comments as GitHub's JSON, the same in answers and webhooks."""

from __future__ import annotations

import base64
import zlib
from datetime import UTC, datetime
from typing import Any

from bot.simulation.github.accounts import Account, App, Installation
from bot.simulation.github.state import CheckRun, Repository, State
from bot.simulation.github.threads import Comment, Issue, Label, Reaction

Json = dict[str, Any]
USER_LINKS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
REPO_LINKS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
COUNTS = ("forks_count", "stargazers_count", "watchers_count", "forks", "watchers", "size")


def stamp(seconds: float | None) -> str | None:
    """Write a time as GitHub does: whole seconds and a Z."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node_id(kind: str, number: int | str) -> str:
    return base64.b64encode(f"0:{kind}{number}".encode()).decode()


def team(state: State, organization: Account, slug: str) -> Json:
    number = zlib.crc32(f"{organization.id}/{slug}".encode())
    return {
        "id": number,
        "node_id": node_id("Team", number),
        "name": slug,
        "slug": slug,
        "privacy": "closed",
        "permission": "pull",
        "url": f"{state.api_url}/organizations/{organization.id}/team/{number}",
        "html_url": f"{state.url}/orgs/{organization.login}/teams/{slug}",
    }


def user(state: State, account: Account) -> Json:
    url = f"{state.api_url}/users/{account.login}"
    page = f"{state.url}/apps/{account.login.removesuffix('[bot]')}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id("User", account.id),
        "avatar_url": f"{state.url}/avatars/u/{account.id}?v=4",
        "gravatar_id": "",
        "url": url,
        "html_url": page if account.type == "Bot" else f"{state.url}/{account.login}",
        **{name: url + tail for name, tail in USER_LINKS.items()},
        "type": account.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def public_user(state: State, account: Account) -> Json:
    blank = dict.fromkeys(("name", "company", "blog", "location", "email", "hireable", "bio"))
    zero = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    times = {"created_at": stamp(account.created_at), "updated_at": stamp(account.created_at)}
    return user(state, account) | blank | zero | times


def app(state: State, app: App) -> Json:
    return {
        "id": app.id,
        "client_id": app.client_id,
        "slug": app.slug,
        "node_id": node_id("Integration", app.id),
        "owner": user(state, app.owner),
        "name": app.slug,
        "description": None,
        "external_url": "https://forgehand.invalid",
        "html_url": f"{state.url}/apps/{app.slug}",
        "created_at": stamp(app.created_at),
        "updated_at": stamp(app.created_at),
        "permissions": app.permissions,
        "events": app.events,
    }


def installation(state: State, installation: Installation) -> Json:
    url = f"{state.api_url}/app/installations/{installation.id}"
    return {
        "id": installation.id,
        "client_id": installation.app.client_id,
        "account": user(state, installation.account),
        "repository_selection": installation.selection,
        "access_tokens_url": f"{url}/access_tokens",
        "repositories_url": f"{state.api_url}/installation/repositories",
        "html_url": f"{state.url}/settings/installations/{installation.id}",
        "app_id": installation.app.id,
        "app_slug": installation.app.slug,
        "target_id": installation.account.id,
        "target_type": installation.account.type,
        "permissions": installation.permissions,
        "events": installation.app.events,
        "created_at": stamp(installation.created_at),
        "updated_at": stamp(installation.created_at),
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": user(state, installation.account) if installation.suspended_at else None,
        "suspended_at": stamp(installation.suspended_at),
    }


def repository(state: State, repo: Repository) -> Json:
    url = repo_url(state, repo)
    page = f"{state.url}/{repo.full_name}"
    open_issues = sum(1 for issue in repo.issues.values() if issue.state == "open")
    return {
        "id": repo.id,
        "node_id": node_id("Repository", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "private": repo.private,
        "owner": user(state, repo.owner),
        "html_url": page,
        "description": None,
        "fork": repo.fork_of is not None,
        "url": url,
        **{name: url + tail for name, tail in REPO_LINKS.items()},
        "git_url": page.replace("http", "git", 1) + ".git",
        "ssh_url": f"git@{state.url.partition('//')[2]}:{repo.full_name}.git",
        "clone_url": f"{page}.git",
        "svn_url": page,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        **dict.fromkeys(COUNTS, 0),
        "open_issues": open_issues,
        "open_issues_count": open_issues,
        "has_issues": repo.has_issues,
        "has_projects": True,
        "has_wiki": False,
        "has_pages": False,
        "has_discussions": False,
        "archived": repo.archived,
        "disabled": False,
        "is_template": False,
        "topics": [],
        "visibility": "private" if repo.private else "public",
        "default_branch": repo.default_branch,
        "created_at": stamp(repo.created_at),
        "updated_at": stamp(repo.pushed_at),
        "pushed_at": stamp(repo.pushed_at),
    }


def full_repository(state: State, repo: Repository) -> Json:
    whole = repository(state, repo) | {"subscribers_count": 0, "network_count": 0}
    if repo.fork_of:
        parent = repository(state, repo.fork_of)
        whole |= {"parent": parent, "source": parent}
    return whole


def repo_url(state: State, repo: Repository) -> str:
    return f"{state.api_url}/repos/{repo.full_name}"


def association(repo: Repository, account: Account) -> str:
    """Return GitHub's `author_association`, which says little about permission."""
    if account is repo.owner:
        return "OWNER"
    if account.id in repo.owner.members:
        return "MEMBER"
    return "COLLABORATOR" if account.id in repo.grants else "NONE"


def label(state: State, repo: Repository, label: Label) -> Json:
    return {
        "id": label.id,
        "node_id": node_id("Label", label.id),
        "url": f"{repo_url(state, repo)}/labels/{label.name}",
        "name": label.name,
        "color": label.color,
        "default": False,
        "description": None,
        "archived_at": None,
        "archived_by": None,
    }


def reactions(url: str, found: list[Reaction]) -> Json:
    kinds = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
    counts = {kind: sum(1 for each in found if each.content == kind) for kind in kinds}
    return {"url": f"{url}/reactions", "total_count": len(found), **counts}


def reaction(state: State, reaction: Reaction) -> Json:
    return {
        "id": reaction.id,
        "node_id": node_id("Reaction", reaction.id),
        "user": user(state, reaction.user),
        "content": reaction.content,
        "created_at": stamp(reaction.created_at),
    }


def page_of(state: State, issue: Issue) -> str:
    return f"{state.url}/{issue.repo.full_name}/{'pull' if issue.pull else 'issues'}/{issue.number}"


def issue(state: State, issue: Issue) -> Json:
    repo = issue.repo
    url = f"{repo_url(state, repo)}/issues/{issue.number}"
    whole: Json = {
        "url": url,
        "repository_url": repo_url(state, repo),
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": page_of(state, issue),
        "id": issue.id,
        "node_id": node_id("Issue", issue.id),
        "number": issue.number,
        "title": issue.title,
        "user": user(state, issue.author),
        "labels": [label(state, repo, each) for each in issue.labels],
        "state": issue.state,
        "state_reason": "completed" if issue.state == "closed" else None,
        "locked": issue.locked,
        "active_lock_reason": None,
        "assignees": [],
        "milestone": None,
        "comments": len(issue.comments),
        "created_at": stamp(issue.created_at),
        "updated_at": stamp(issue.updated_at),
        "closed_at": stamp(issue.closed_at),
        "author_association": association(repo, issue.author),
        "body": issue.body,
        "reactions": reactions(url, issue.reactions),
        "timeline_url": f"{url}/timeline",
        "performed_via_github_app": app(state, issue.app) if issue.app else None,
    }
    if issue.pull:
        whole["draft"] = issue.pull.draft
        whole["pull_request"] = _pull_links(state, issue)
    return whole


def _pull_links(state: State, issue: Issue) -> Json:
    page = page_of(state, issue)
    return {
        "url": f"{repo_url(state, issue.repo)}/pulls/{issue.number}",
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "merged_at": stamp(issue.pull.merged_at) if issue.pull else None,
    }


def comment(state: State, comment: Comment) -> Json:
    repo = comment.issue.repo
    url = f"{repo_url(state, repo)}/issues/comments/{comment.id}"
    return {
        "url": url,
        "html_url": f"{page_of(state, comment.issue)}#issuecomment-{comment.id}",
        "issue_url": f"{repo_url(state, repo)}/issues/{comment.issue.number}",
        "id": comment.id,
        "node_id": node_id("IssueComment", comment.id),
        "user": user(state, comment.author),
        "created_at": stamp(comment.created_at),
        "updated_at": stamp(comment.updated_at),
        "author_association": association(repo, comment.author),
        "body": comment.body,
        "reactions": reactions(url, comment.reactions),
        "performed_via_github_app": app(state, comment.app) if comment.app else None,
    }


def check_run(state: State, check: CheckRun) -> Json:
    url = f"{repo_url(state, check.repo)}/check-runs/{check.id}"
    page = f"{state.url}/{check.repo.full_name}/runs/{check.id}"
    output = {"title": None, "summary": None, "text": None} | check.output
    return {
        "id": check.id,
        "name": check.name,
        "node_id": node_id("CheckRun", check.id),
        "head_sha": check.head_sha,
        "external_id": check.external_id or "",
        "url": url,
        "html_url": page,
        "details_url": check.details_url or page,
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": stamp(check.started_at),
        "completed_at": stamp(check.completed_at),
        "output": {
            **{name: output[name] for name in ("title", "summary", "text")},
            "annotations_count": len(check.output.get("annotations", [])),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": check.suite or check.id},
        "app": app(state, check.app),
        "pull_requests": [],
    }
