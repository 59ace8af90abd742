"""Acts on accounts and repositories: create, grant, commit, branch, protect, rename."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from bot.simulation.github import gitstore, payloads
from bot.simulation.github.accounts import Account, Installation
from bot.simulation.github.gitstore import Content
from bot.simulation.github.payloads import Json
from bot.simulation.github.state import Protection, Repository
from bot.simulation.github.threads import Label
from bot.simulation.github.world import World


class Repos(World):
    """Accounts and repositories."""

    def user(self, login: str) -> Account:
        return self.state.user(login)

    def organization(self, login: str, *, owners: Sequence[str] = (), members: Sequence[str] = ()) -> Account:
        org = self.state.user(login, "Organization")
        org.type = "Organization"
        for role, logins in (("member", members), ("admin", owners)):
            org.members |= {self.state.user(each).id: role for each in logins}
        return org

    def leave_organization(self, org: Account, user: Account) -> None:
        """Remove a person from an organisation, with all their rights there."""
        del org.members[user.id]
        for repo in self.state.repos.values():
            if repo.owner is org:
                repo.grant(user.login, "none")
        role = {"role": "member", "state": "inactive", "user": payloads.user(self.state, user)}
        for installation in self.state.installations.values():
            if installation.account is org and not installation.deleted:
                payload = {"action": "member_removed", "membership": role} | self._of_organization(installation)
                self.actions.events.webhooks.emit(installation, "organization", payload)
        self.state.touch()

    def _of_organization(self, installation: Installation) -> Json:
        org = installation.account
        about = {"login": org.login, "id": org.id, "node_id": payloads.node_id("Organization", org.id)}
        sender = payloads.user(self.state, org)
        return {"organization": about, "installation": {"id": installation.id}, "sender": sender}

    def add_collaborator(self, repo: Repository, user: Account, role: str) -> None:
        repo.grant(user.login, role)
        payload: Json = {"action": "added", "member": payloads.user(self.state, user)}
        self.actions.events.tell(repo, repo.owner, "member", payload)

    def remove_collaborator(self, repo: Repository, user: Account) -> None:
        repo.grant(user.login, "none")
        payload: Json = {"action": "removed", "member": payloads.user(self.state, user)}
        self.actions.events.tell(repo, repo.owner, "member", payload)

    def rename_user(self, user: Account, login: str) -> None:
        user.login = login
        self.state.touch()

    def create_repo(
        self,
        full_name: str,
        files: Mapping[str, Content] | None = None,
        *,
        private: bool = True,
        default_branch: str = "main",
    ) -> Repository:
        """Create a repository with one commit of the files (None: empty, without a branch)."""
        repo = self._new_repo(full_name, private, default_branch)
        gitstore.create(repo.path, default_branch)
        if files is not None:
            self._write(repo, default_branch, gitstore.write_blobs(repo.path, files), [], "Initial commit")
        return repo

    def fork(self, repo: Repository, owner: str) -> Repository:
        copy = self._new_repo(f"{owner}/{repo.name}", repo.private, repo.default_branch)
        copy.fork_of = repo
        shutil.copytree(repo.path, copy.path)
        return copy

    def _new_repo(self, full_name: str, private: bool, default_branch: str) -> Repository:
        owner, _, name = full_name.partition("/")
        state, now = self.state, self.state.clock()
        number = state.new_id()
        path = state.root / "repositories" / f"{number}.git"
        repo = Repository(number, state, state.user(owner), name, path, private, default_branch, now, now)
        state.repos[repo.id] = repo
        state.touch()
        return repo

    def commit(
        self,
        repo: Repository,
        branch: str,
        files: Mapping[str, Content],
        *,
        by: str | Account = "octo",
        message: str = "Change",
        onto: str | None = None,
    ) -> str:
        """Push as a person: add `files` to those of the branch, which is made from the default branch if new. Another
        parent, `onto`, makes it a forced push."""
        parent = onto or repo.branch_sha(branch) or repo.branch_sha(repo.default_branch)
        kept = gitstore.entries(repo.path, parent) if parent else {}
        entries = kept | gitstore.write_blobs(repo.path, files)
        before = _branches(repo)
        sha = self._write(repo, branch, entries, [parent] if parent else [], message, who=self.person(by))
        self.actions.refs_changed(repo, before, _branches(repo), self.person(by))
        return sha

    def link(self, repo: Repository, links: Mapping[str, str], modules: Content, *, branch: str = "main") -> str:
        """Push submodules as the owner: a commit of another repository for each path, and the file that names them."""
        blobs = gitstore.write_blobs(repo.path, {".gitmodules": modules})
        kept = gitstore.entries(repo.path, str(repo.branch_sha(branch)))
        entries = kept | blobs | {path: ("160000", sha) for path, sha in links.items()}
        before = _branches(repo)
        sha = self._write(repo, branch, entries, [str(repo.branch_sha(branch))], "Add submodules")
        self.actions.refs_changed(repo, before, _branches(repo), repo.owner)
        return sha

    def _write(
        self,
        repo: Repository,
        branch: str,
        entries: Mapping[str, tuple[str, str]],
        parents: list[str],
        message: str,
        who: Account | None = None,
    ) -> str:
        tree = gitstore.write_tree(repo.path, entries)
        login, when = (who or repo.owner).login, self.state.clock()
        sha = gitstore.write_commit(repo.path, tree, parents, message, who=login, when=when)
        gitstore.set_ref(repo.path, f"refs/heads/{branch}", sha)
        return sha

    def set_branch(self, repo: Repository, branch: str, sha: str | None, *, by: str | Account = "octo") -> None:
        """Create, move (by force if necessary) or, with None, delete a branch."""
        before = _branches(repo)
        gitstore.set_ref(repo.path, f"refs/heads/{branch}", sha)
        self.actions.refs_changed(repo, before, _branches(repo), self.person(by))

    def protect(self, repo: Repository, pattern: str, *lines: str, ruleset: bool = False, only: str = "") -> None:
        """Refuse pushes to branches like the pattern with GitHub's `lines`; a `ruleset` refuses with GH013."""
        code, reason = ("GH013", "push declined due to repository rule violations") if ruleset else ("GH006", "")
        rule = Protection(pattern, code, lines or Protection.lines, reason or Protection.reason, only)
        repo.protections.append(rule)

    def create_label(self, repo: Repository, name: str) -> None:
        repo.labels[name.lower()] = Label(self.state.new_id(), name)

    def rename_repo(self, repo: Repository, name: str) -> None:
        """Rename a repository; its old address leads to the new one, as at GitHub."""
        self.state.moved[repo.full_name.lower()] = repo
        repo.name = name
        self.state.touch()

    def delete_repo(self, repo: Repository) -> None:
        repo.deleted = True
        for other in self.state.repos.values():
            for pull in other.pulls.values():
                if pull.head_repo is repo:
                    pull.head_repo = None
        shutil.rmtree(repo.path)
        self.state.touch()


def _branches(repo: Repository) -> dict[str, str]:
    return {f"refs/heads/{name}": sha for name, sha in repo.branches().items()}
