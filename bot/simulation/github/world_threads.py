"""Acts of people on threads: open, comment, edit, label, review, merge."""

from __future__ import annotations

from collections.abc import Sequence

from bot.simulation.github import attachments, gitstore, payloads, pull_payloads, tasks
from bot.simulation.github.accounts import Account, App
from bot.simulation.github.rest_pulls import check_new
from bot.simulation.github.state import CheckRun, Repository
from bot.simulation.github.threads import Comment, Issue, Pull, Review, ReviewComment
from bot.simulation.github.world import World, thread

Who = str | Account


class Threads(World):
    """The acts of people who use issues and pull requests in the browser."""

    def open_issue(self, repo: Repository, *, title: str, body: str = "", by: Who, labels: Sequence[str] = ()) -> Issue:
        issue = self.actions.open_issue(repo, self.person(by), title, body)
        for name in labels:
            self.actions.label(issue, name, self.person(by))
        return issue

    def attach(self, repo: Repository, content: bytes, media_type: str = "image/png") -> str:
        """Upload a file for a text on one of the repository's threads, and return its address."""
        return attachments.attach(self.state, repo, content, media_type)

    def comment(self, of: Issue | Pull, body: str, *, by: Who) -> Comment:
        return self.actions.comment(thread(of), self.person(by), body)

    def edit_comment(self, comment: Comment, body: str, *, by: Who | None = None, via: App | None = None) -> None:
        self.actions.edit_comment(comment, self.person(by or comment.author), body, via)

    def tick(self, comment: Comment, at: int | str, *, by: Who, via: App | None = None) -> None:
        """Click a checkbox of a comment, by its place or by words beside it; GitHub edits the body."""
        self.edit_comment(comment, tasks.ticked(comment.body, at), by=by, via=via)

    def delete_comment(self, comment: Comment, *, by: Who | None = None) -> None:
        self.actions.delete_comment(comment, self.person(by or comment.author))

    def edit(self, of: Issue | Pull, *, by: Who, title: str | None = None, body: str | None = None) -> None:
        self.actions.edit(thread(of), self.person(by), title=title, body=body)

    def tick_issue(self, issue: Issue, at: int | str, *, by: Who) -> None:
        """Click a checkbox of an issue's own text."""
        self.edit(issue, by=by, body=tasks.ticked(issue.body or "", at))

    def label(self, of: Issue | Pull, name: str, *, by: Who) -> None:
        self.actions.label(thread(of), name, self.person(by))

    def react(self, subject: Comment | Issue, content: str, *, by: Who) -> None:
        self.actions.react(subject, self.person(by), content)

    def close(self, of: Issue | Pull, *, by: Who) -> None:
        self.actions.set_state(thread(of), self.person(by), "closed")

    def reopen(self, of: Issue | Pull, *, by: Who) -> None:
        self.actions.set_state(thread(of), self.person(by), "open")

    def lock(self, of: Issue | Pull, *, by: Who, locked: bool = True) -> None:
        self.actions.set_locked(thread(of), self.person(by), locked)

    def transfer(self, issue: Issue, to: Repository, *, by: Who) -> Issue:
        moved = self.actions.remove(issue, self.person(by), to)
        assert moved
        return moved

    def delete_issue(self, issue: Issue, *, by: Who) -> None:
        self.actions.remove(issue, self.person(by), None)

    def convert(self, issue: Issue) -> None:
        """Convert an issue into a discussion: its number leads nowhere, and no `issues` event says so."""
        self.actions.vanish(issue, None)

    def open_pull(
        self, repo: Repository, *, head: str, by: Who, title: str = "A change", body: str = "", draft: bool = False
    ) -> Pull:
        """Open a pull request into the default branch; `head` is a branch or `owner:branch` of a fork."""
        owner, _, branch = head.rpartition(":")
        forks = [each for each in self.state.repos.values() if each.fork_of is repo and each.owner.login == owner]
        head_repo = forks[0] if forks else repo
        sha, base_sha = head_repo.branch_sha(branch), repo.branch_sha(repo.default_branch)
        if sha is None or base_sha is None:
            raise LookupError(f"no branch {head}")
        check_new(repo, head_repo, (branch, sha), (repo.default_branch, base_sha))
        now = self.state.clock()
        stub = Issue(0, repo, 0, title, body, self.person(by), now, now)
        return self.actions.open_pull(Pull(stub, head_repo, branch, sha, repo.default_branch, base_sha, draft))

    def ready(self, pull: Pull, *, by: Who) -> None:
        pull.draft = False
        self.actions.pull_changed(pull, self.person(by), "ready_for_review")

    def request_team_review(self, pull: Pull, team: str, *, by: Who) -> None:
        pull.requested_teams.append(team)
        asked = payloads.team(self.state, pull.issue.repo.owner, team)
        self.actions.pull_changed(pull, self.person(by), "review_requested", requested_team=asked)

    def request_review(self, pull: Pull, reviewer: Who, *, by: Who) -> None:
        """Request a review of somebody who may read the repository and did not open the pull request."""
        who = self.person(reviewer)
        if who is pull.issue.author or pull.issue.repo.role(who) == "none":
            raise LookupError(f"{who.login} cannot review this")
        pull.requested.append(who)
        asked = payloads.user(self.state, who)
        self.actions.pull_changed(pull, self.person(by), "review_requested", requested_reviewer=asked)

    def review(
        self,
        pull: Pull,
        body: str,
        *,
        by: Who,
        state: str = "COMMENTED",
        lines: Sequence[tuple[str, int, str]] = (),
    ) -> Review:
        """Submit a review; `lines` has path, line of the new side and words of each comment in it."""
        now = self.state.clock()
        comments = [self._at_line(pull, (path, line), words) for path, line, words in lines]
        review = Review(self.state.new_id(), pull, self.person(by), state, body, pull.head_sha, now, comments)
        self.actions.submit_review(review)
        return review

    def review_line(
        self, pull: Pull, place: tuple[str, int], body: str, *, by: Who, side: str = "RIGHT"
    ) -> ReviewComment:
        """Comment at a line, which GitHub treats as a review without words."""
        now, words = self.state.clock(), self._at_line(pull, place, body, side)
        review = Review(self.state.new_id(), pull, self.person(by), "COMMENTED", "", pull.head_sha, now, [words])
        self.actions.submit_review(review)
        return words

    def _at_line(self, pull: Pull, place: tuple[str, int], body: str, side: str = "RIGHT") -> ReviewComment:
        path, line = place
        repo, now = pull.issue.repo, self.state.clock()
        files = pull_payloads.changed_files(self.state, repo, pull.base_sha, pull.head_sha)
        patch = next((str(each.get("patch", "")) for each in files if each["filename"] == path), "")
        if (side, line) not in pull_payloads.commentable(patch):
            raise LookupError(f"the diff does not show line {line} of {path}")
        hunk = pull_payloads.hunk_at(patch, side, line)
        return ReviewComment(self.state.new_id(), path, body, line, side, None, now, hunk)

    def answer_review(self, to: ReviewComment, pull: Pull, body: str, *, by: Who) -> ReviewComment:
        found = self.state.review_comment(pull.issue.repo, to.id)
        if found is None:
            raise LookupError("no such comment")
        return self.actions.reply_in_review(to.reply_to or to, found[0], self.person(by), body)[1]

    def merge(self, pull: Pull, *, by: Who) -> str:
        """Merge with a merge commit, and return its sha."""
        repo, who = pull.issue.repo, self.person(by)
        base = repo.branch_sha(pull.base)
        if base is None:
            raise LookupError(f"no branch {pull.base}")
        tree = gitstore.merge_tree(repo.path, base, pull.head_sha)
        message = f"Merge pull request #{pull.number} from {pull.label.replace(':', '/')}"
        parents, now = [base, pull.head_sha], self.state.clock()
        sha = gitstore.write_commit(repo.path, tree, parents, message, who=who.login, when=now)
        ref = f"refs/heads/{pull.base}"
        gitstore.set_ref(repo.path, ref, sha)
        self.actions.refs_changed(repo, {ref: base}, {ref: sha}, who)
        return sha

    def press(self, check: CheckRun, identifier: str, *, by: Who) -> None:
        """Press a button of a check run, which GitHub tells only the App that made it."""
        if identifier not in [each["identifier"] for each in check.actions]:
            raise LookupError(f"there is no button {identifier}")
        self._asked_of_check(check, "requested_action", by, requested_action={"identifier": identifier})

    def rerequest(self, check: CheckRun, *, by: Who) -> None:
        """Press GitHub's button to run a check again."""
        self._asked_of_check(check, "rerequested", by)

    def _asked_of_check(self, check: CheckRun, action: str, by: Who, **more: object) -> None:
        payload = {"action": action, "check_run": payloads.check_run(self.state, check), **more}
        events = self.actions.events
        for installation in self.state.installations_of(check.repo):
            if installation.app is check.app:
                common = events.common(check.repo, installation, self.person(by))
                events.webhooks.emit(installation, "check_run", payload | common)
