"""Acts of people and Apps on threads and branches: each changes the state and sends its webhooks."""

from __future__ import annotations

from bot.simulation.github import gitstore, payloads, pull_payloads
from bot.simulation.github.accounts import Account, App
from bot.simulation.github.events import Events
from bot.simulation.github.state import Repository, State
from bot.simulation.github.threads import Comment, Issue, Label, Pull, Reaction, Review, ReviewComment


class Actions:
    """Acts that take effect at once; the caller has checked permissions."""

    def __init__(self, state: State, events: Events) -> None:
        self.state = state
        self.events = events

    def _new_issue(self, repo: Repository, author: Account, title: str, body: str | None, app: App | None) -> Issue:
        now = self.state.clock()
        number = max([0, *repo.issues, *repo.gone]) + 1
        issue = Issue(self.state.new_id(), repo, number, title, body, author, now, now, app=app)
        issue.history.append((now, body or ""))
        repo.issues[number] = issue
        return issue

    def open_issue(
        self, repo: Repository, author: Account, title: str, body: str | None, app: App | None = None
    ) -> Issue:
        issue = self._new_issue(repo, author, title, body, app)
        self.events.tell(repo, author, "issues", self.events.issue(issue, "opened"))
        return issue

    def comment(self, issue: Issue, author: Account, body: str, app: App | None = None) -> Comment:
        now = self.state.clock()
        comment = Comment(self.state.new_id(), issue, author, body, now, now, app)
        comment.history.append((now, body))
        issue.comments.append(comment)
        issue.updated_at = now
        self.events.tell(issue.repo, author, "issue_comment", self.events.comment(comment, "created"))
        return comment

    def edit_comment(self, comment: Comment, by: Account, body: str, via: App | None = None) -> None:
        """Edit a comment; `via` is an App that does it in a person's name."""
        old, comment.body = comment.body, body
        comment.updated_at = self.state.clock()
        comment.history.append((comment.updated_at, body))
        payload = self.events.comment(comment, "edited", {"body": {"from": old}})
        if via is not None:
            payload["comment"]["performed_via_github_app"] = payloads.app(self.state, via)
        self.events.tell(comment.issue.repo, by, "issue_comment", payload)

    def delete_comment(self, comment: Comment, by: Account) -> None:
        payload = self.events.comment(comment, "deleted")
        comment.deleted = True
        comment.issue.comments.remove(comment)
        self.events.tell(comment.issue.repo, by, "issue_comment", payload)

    def react(self, subject: Comment | Issue | ReviewComment, by: Account, content: str) -> tuple[Reaction, bool]:
        """Return the reaction, and whether it is new."""
        for each in subject.reactions:
            if each.user is by and each.content == content:
                return each, False
        reaction = Reaction(self.state.new_id(), by, content, self.state.clock())
        subject.reactions.append(reaction)
        self.state.touch()
        return reaction, True

    def submit_review(self, review: Review) -> None:
        """Send an event for the review and for each comment at a line. A reply is a separate review, without words."""
        pull, repo = review.pull, review.pull.issue.repo
        pull.reviews.append(review)
        shown = pull_payloads.review(self.state, review)
        told = self.events.pull(pull, "submitted", review=shown | {"state": review.state.lower()})
        self.events.tell(repo, review.author, "pull_request_review", told)
        for each in review.comments:
            told = self.events.pull(pull, "created", comment=pull_payloads.review_comment(self.state, review, each))
            self.events.tell(repo, review.author, "pull_request_review_comment", told)

    def reply_in_review(
        self, to: ReviewComment, review: Review, by: Account, body: str
    ) -> tuple[Review, ReviewComment]:
        now = self.state.clock()
        words = ReviewComment(
            self.state.new_id(), to.path, body, to.line, to.side, to.start_line, now, to.hunk, reply_to=to
        )
        own = Review(self.state.new_id(), review.pull, by, "COMMENTED", "", review.commit_id, now, [words])
        self.submit_review(own)
        return own, words

    def label(self, issue: Issue, name: str, by: Account) -> None:
        label = issue.repo.labels.setdefault(name.lower(), Label(self.state.new_id(), name))
        if label in issue.labels:
            return
        issue.labels.append(label)
        self._told(issue, by, "labeled", label=payloads.label(self.state, issue.repo, label))

    def unlabel(self, issue: Issue, label: Label, by: Account) -> None:
        issue.labels.remove(label)
        self._told(issue, by, "unlabeled", label=payloads.label(self.state, issue.repo, label))

    def edit(self, issue: Issue, by: Account, *, title: str | None = None, body: str | None = None) -> None:
        changes: dict[str, object] = {}
        if title is not None and title != issue.title:
            changes["title"], issue.title = {"from": issue.title}, title
        if body is not None and body != issue.body:
            changes["body"], issue.body = {"from": issue.body or ""}, body
            issue.history.append((self.state.clock(), body))
        if changes:
            self._told(issue, by, "edited", changes=changes)

    def set_state(self, issue: Issue, by: Account, state: str) -> None:
        if issue.state != state:
            issue.state = state
            issue.closed_at = self.state.clock() if state == "closed" else None
            self._told(issue, by, "closed" if state == "closed" else "reopened")

    def remove(self, issue: Issue, by: Account, target: Repository | None) -> Issue | None:
        """Delete an issue, or transfer it with its comments, so that its number is gone or leads to the new one."""
        moved = None
        if target:
            moved = self._new_issue(target, issue.author, issue.title, issue.body, issue.app)
            for comment in issue.comments:
                comment.issue = moved
            moved.comments, issue.comments = issue.comments, []
        self.vanish(issue, moved)
        changes = {}
        if moved:
            new_repository = payloads.repository(self.state, moved.repo)
            changes = {"new_issue": payloads.issue(self.state, moved), "new_repository": new_repository}
        payload = self.events.issue(issue, "transferred" if moved else "deleted", changes=changes)
        self.events.tell(issue.repo, by, "issues", payload)
        return moved

    def vanish(self, issue: Issue, successor: Issue | None) -> None:
        del issue.repo.issues[issue.number]
        issue.repo.gone[issue.number] = successor

    def set_locked(self, issue: Issue, by: Account, locked: bool) -> None:
        issue.locked = locked
        self._told(issue, by, "locked" if locked else "unlocked")

    def _told(self, issue: Issue, by: Account, action: str, **more: object) -> None:
        issue.updated_at = self.state.clock()
        if issue.pull:
            self.events.tell(issue.repo, by, "pull_request", self.events.pull(issue.pull, action, **more))
        else:
            self.events.tell(issue.repo, by, "issues", self.events.issue(issue, action, **more))

    def pull_changed(self, pull: Pull, by: Account, action: str, **more: object) -> None:
        self._told(pull.issue, by, action, **more)

    def open_pull(self, pull: Pull, app: App | None = None) -> Pull:
        """Open a pull request, and number its issue, which was only a stub."""
        draft = pull.issue
        issue = self._new_issue(draft.repo, draft.author, draft.title, draft.body, app)
        issue.pull, pull.issue = pull, issue
        self._follow(pull)
        self.pull_changed(pull, issue.author, "opened")
        return pull

    def _follow(self, pull: Pull) -> None:
        """Copy the head's objects into the base repository, where GitHub shows them under refs/pull."""
        base = pull.issue.repo
        if pull.head_repo and pull.head_repo is not base:
            gitstore.git(base.path, "fetch", "--quiet", "--no-tags", str(pull.head_repo.path), pull.head_sha)
        gitstore.set_ref(base.path, f"refs/pull/{pull.number}/head", pull.head_sha)

    def refs_changed(self, repo: Repository, before: dict[str, str], after: dict[str, str], by: Account) -> None:
        """Send an event for each pushed ref (named `refs/…`), and move the pull requests along."""
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name, gitstore.NO_SHA), after.get(name, gitstore.NO_SHA)
            if old == new:
                continue
            repo.pushed_at = self.state.clock()
            if name.startswith(("refs/heads/", "refs/tags/")):
                self._told_push(repo, by, name, (old, new))
            if name.startswith("refs/heads/"):
                self._move_pulls(repo, name.removeprefix("refs/heads/"), new, by)
        self.state.touch()

    def _told_push(self, repo: Repository, by: Account, name: str, move: tuple[str, str]) -> None:
        listeners = [each for each in self.state.installations_of(repo) if "push" in each.app.events]
        if listeners:
            pusher = {"name": by.login, "email": f"{by.login}@users.noreply.github.com"}
            self.events.tell(repo, by, "push", self.events.push(repo, name, *move) | {"pusher": pusher})

    def _move_pulls(self, repo: Repository, branch: str, sha: str, by: Account) -> None:
        for base in list(self.state.repos.values()):
            for pull in base.pulls.values():
                if pull.state == "open" and pull.head_repo is repo and pull.head == branch:
                    self._move_head(pull, sha, by)
        for pull in repo.pulls.values():
            if pull.state == "open" and pull.base == branch and sha != gitstore.NO_SHA:
                self._merged_by_push(pull, sha, by)

    def _move_head(self, pull: Pull, sha: str, by: Account) -> None:
        if sha == gitstore.NO_SHA:
            self.set_state(pull.issue, by, "closed")
            return
        old, pull.head_sha = pull.head_sha, sha
        pull.base_sha = pull.issue.repo.branch_sha(pull.base) or pull.base_sha
        self._follow(pull)
        self.pull_changed(pull, by, "synchronize", before=old, after=sha)

    def _merged_by_push(self, pull: Pull, sha: str, by: Account) -> None:
        if gitstore.merge_base(pull.issue.repo.path, pull.head_sha, sha) == pull.head_sha:
            pull.merged_at, pull.merged_by = self.state.clock(), by
            self.set_state(pull.issue, by, "closed")
