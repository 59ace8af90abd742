"""Builds the payloads of webhooks around their object, and finds the recipients."""

from __future__ import annotations

from bot.simulation.github import gitstore, payloads, pull_payloads
from bot.simulation.github.accounts import Account, Installation
from bot.simulation.github.payloads import Json
from bot.simulation.github.state import Repository, State
from bot.simulation.github.threads import Comment, Issue, Pull
from bot.simulation.github.webhooks import Webhooks

LISTED_COMMITS = 20


class Events:
    """Turns a change into webhooks for every installation that covers the repository."""

    def __init__(self, state: State, webhooks: Webhooks) -> None:
        self.state = state
        self.webhooks = webhooks

    def common(self, repo: Repository, installation: Installation, sender: Account) -> Json:
        found: Json = {
            "repository": payloads.repository(self.state, repo),
            "sender": payloads.user(self.state, sender),
            "installation": {
                "id": installation.id,
                "node_id": payloads.node_id("IntegrationInstallation", installation.id),
            },
        }
        if repo.owner.type == "Organization":
            login = repo.owner.login
            found["organization"] = {
                "login": login,
                "id": repo.owner.id,
                "node_id": payloads.node_id("Organization", repo.owner.id),
                "url": f"{self.state.api_url}/orgs/{login}",
            }
        return found

    def tell(self, repo: Repository, sender: Account, event: str, payload: Json) -> None:
        for installation in self.state.installations_of(repo):
            self.webhooks.emit(installation, event, payload | self.common(repo, installation, sender))
        self.state.touch()

    def comment(self, comment: Comment, action: str, changes: Json | None = None) -> Json:
        found: Json = {
            "action": action,
            "issue": payloads.issue(self.state, comment.issue),
            "comment": payloads.comment(self.state, comment),
        }
        return found | ({"changes": changes} if changes is not None else {})

    def issue(self, issue: Issue, action: str, **more: object) -> Json:
        return {"action": action, "issue": payloads.issue(self.state, issue), **more}

    def pull(self, pull: Pull, action: str, **more: object) -> Json:
        whole = pull_payloads.full_pull(self.state, pull)
        return {"action": action, "number": pull.number, "pull_request": whole, **more}

    def push(self, repo: Repository, ref: str, before: str, after: str) -> Json:
        commits = [] if after == gitstore.NO_SHA else self._commits(repo, before, after)
        page = f"{self.state.url}/{repo.full_name}"
        return {
            "ref": ref,
            "before": before,
            "after": after,
            "base_ref": None,
            "created": before == gitstore.NO_SHA,
            "deleted": after == gitstore.NO_SHA,
            "forced": gitstore.NO_SHA not in (before, after)
            and gitstore.merge_base(repo.path, before, after) != before,
            "compare": f"{page}/compare/{before[:12]}...{after[:12]}",
            "commits": commits,
            "head_commit": commits[-1] if commits else None,
        }

    def _commits(self, repo: Repository, before: str, after: str) -> list[Json]:
        span = [after] if before == gitstore.NO_SHA else [f"{before}..{after}"]
        form = "%H%x00%T%x00%an%x00%ae%x00%aI%x00%B%x01"
        out = gitstore.git(repo.path, "log", f"-{LISTED_COMMITS}", f"--format={form}", *span, ok=(0, 128))
        found = []
        for row in out.decode("utf-8", "replace").split("\x01")[:-1]:
            sha, tree, name, email, date, message = row.strip("\n").split("\0")
            person = {"name": name, "email": email}
            found.append(
                {
                    "id": sha,
                    "tree_id": tree,
                    "distinct": True,
                    "message": message.strip("\n"),
                    "timestamp": date,
                    "url": f"{self.state.url}/{repo.full_name}/commit/{sha}",
                    "author": person,
                    "committer": person,
                }
            )
        return found[::-1]

    def installation(self, installation: Installation, action: str, sender: Account) -> None:
        """Send `created`, `deleted`, `suspend` or `unsuspend` to the App itself."""
        payload = {
            "action": action,
            "installation": payloads.installation(self.state, installation),
            "repositories": [_brief(repo) for repo in installation.repos],
            "requester": None,
            "sender": payloads.user(self.state, sender),
        }
        self.webhooks.emit(installation, "installation", payload)
        self.state.touch()

    def installed_repos(
        self, installation: Installation, added: list[Repository], removed: list[Repository], sender: Account
    ) -> None:
        payload = {
            "action": "added" if added else "removed",
            "installation": payloads.installation(self.state, installation),
            "repository_selection": installation.selection,
            "repositories_added": [_brief(repo) for repo in added],
            "repositories_removed": [_brief(repo) for repo in removed],
            "requester": None,
            "sender": payloads.user(self.state, sender),
        }
        self.webhooks.emit(installation, "installation_repositories", payload)
        self.state.touch()


def _brief(repo: Repository) -> Json:
    node = payloads.node_id("Repository", repo.id)
    return {"id": repo.id, "node_id": node, "name": repo.name, "full_name": repo.full_name, "private": repo.private}
