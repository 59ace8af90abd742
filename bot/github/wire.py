"""The shapes of GitHub's JSON, as far as we read them; unknown members are skipped.

githubkit's models would take 0.11 s and 8 MB more at the first call, and twice the time for a page. They also refuse
an answer without one of up to 75 required members, which an older GitHub Enterprise Server may send.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from bot.github.types import (
    AppIdentity,
    Comment,
    Hook,
    InstallationView,
    Issue,
    LoggedDelivery,
    MadeCommit,
    OwnCheckRun,
    Pull,
    Registration,
    RepoView,
)
from bot.models import InstallationId, Person, RepoId

GHOST = Person(10137, "ghost")


class UserJson(msgspec.Struct):
    id: int
    login: str
    type: str = "User"

    def person(self) -> Person:
        return Person(self.id, self.login, self.type)


def _person(user: UserJson | None) -> Person:
    """Stand in for a deleted account, which GitHub leaves out."""
    return user.person() if user else GHOST


class OwnerJson(msgspec.Struct):
    login: str = ""
    slug: str = ""


class AppJson(msgspec.Struct):
    id: int
    slug: str
    name: str
    owner: OwnerJson | None = None
    permissions: dict[str, str] = msgspec.field(default_factory=dict)
    events: list[str] = msgspec.field(default_factory=list)
    html_url: str = ""

    def registration(self) -> Registration:
        return Registration(self.slug, self.html_url, self.permissions, frozenset(self.events))

    def identity(self, bot: UserJson, noreply_host: str) -> AppIdentity:
        owner = self.owner or OwnerJson()
        return AppIdentity(self.id, self.slug, self.name, owner.login or owner.slug, bot.login, bot.id, noreply_host)


class HookJson(msgspec.Struct):
    url: str | None = None
    content_type: str | None = None

    def hook(self) -> Hook:
        return Hook(self.url or "", self.content_type or "form")


class InstallationJson(msgspec.Struct):
    id: int
    suspended_at: str | None = None
    account: UserJson | None = None
    permissions: dict[str, str] = {}

    def view(self) -> InstallationView:
        suspended = self.suspended_at is not None
        return InstallationView(InstallationId(self.id), _person(self.account), suspended, self.permissions)


class MembershipJson(msgspec.Struct):
    user: UserJson
    state: str = ""
    role: str = ""


class RepositoryJson(msgspec.Struct):
    id: int
    name: str
    full_name: str
    private: bool
    default_branch: str
    archived: bool = False
    disabled: bool = False

    def view(self) -> RepoView:
        owner, number = self.full_name.partition("/")[0], RepoId(self.id)
        return RepoView(number, owner, self.name, self.private, self.default_branch, self.archived, self.disabled)


class Repositories(msgspec.Struct):
    repositories: list[RepositoryJson]


class RuleJson(msgspec.Struct):
    type: str


class Collaborator(msgspec.Struct):
    user: UserJson
    permission: str = "none"
    role_name: str = ""


class LabelJson(msgspec.Struct):
    name: str = ""


class AuthoredJson(msgspec.Struct, kw_only=True):
    user: UserJson | None = None
    body: str | None = None
    body_text: str | None = None
    body_html: str | None = None
    performed_via_github_app: Any = None
    created_at: str = ""
    updated_at: str = ""

    def authored(self) -> dict[str, Any]:
        """Return the fields of `types.Authored`."""
        return {
            "author": _person(self.user),
            "body": self.body or "",
            "body_text": self.body_text or "",
            "body_html": self.body_html or "",
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "via_app": self.performed_via_github_app is not None,
        }


class IssueJson(AuthoredJson):
    number: int
    title: str
    state: str
    locked: bool = False
    labels: list[LabelJson | str] = msgspec.field(default_factory=list)
    pull_request: Any = None

    def issue(self) -> Issue:
        return Issue(
            number=self.number,
            title=self.title,
            state=self.state,
            locked=self.locked,
            is_pull=self.pull_request is not None,
            labels=tuple(label if isinstance(label, str) else label.name for label in self.labels),
            **self.authored(),
        )


class MadeIssue(msgspec.Struct):
    number: int


class CommentJson(AuthoredJson):
    id: int

    def comment(self) -> Comment:
        return Comment(id=self.id, **self.authored())


class HeadRepository(msgspec.Struct):
    id: int
    full_name: str


class Branch(msgspec.Struct):
    ref: str
    sha: str
    repo: HeadRepository | None = None


class PullJson(msgspec.Struct):
    number: int
    html_url: str
    title: str
    state: str
    head: Branch
    base: Branch
    user: UserJson | None = None
    body: str | None = None
    draft: bool = False
    merged_at: str | None = None
    node_id: str = ""

    def pull(self) -> Pull:
        return Pull(
            number=self.number,
            url=self.html_url,
            title=self.title,
            body=self.body or "",
            state=self.state,
            draft=self.draft,
            merged=self.merged_at is not None,
            author=_person(self.user),
            head_branch=self.head.ref,
            head_sha=self.head.sha,
            head_repo_id=self.head.repo.id if self.head.repo else None,
            head_repo=self.head.repo.full_name if self.head.repo else None,
            base_branch=self.base.ref,
            base_sha=self.base.sha,
            node_id=self.node_id,
        )


class Created(msgspec.Struct):
    id: int


class File(msgspec.Struct):
    type: str
    encoding: str = ""
    content: str = ""


class FolderEntryJson(msgspec.Struct):
    name: str
    type: str


class RefTarget(msgspec.Struct):
    sha: str


class Verification(msgspec.Struct):
    verified: bool = False
    reason: str = "unknown"


class MadeCommitJson(msgspec.Struct):
    sha: str
    tree: RefTarget
    verification: Verification = msgspec.field(default_factory=Verification)
    parents: list[RefTarget] = msgspec.field(default_factory=list)

    def made(self) -> MadeCommit:
        parents = tuple(one.sha for one in self.parents)
        return MadeCommit(self.sha, self.tree.sha, self.verification.verified, self.verification.reason, parents)


class BranchRules(msgspec.Struct):
    protected: bool = False


class Ref(msgspec.Struct):
    object: RefTarget


class CheckOutputJson(msgspec.Struct):
    annotations_count: int = 0


class CheckRunJson(msgspec.Struct):
    id: int
    status: str
    external_id: str | None = None
    conclusion: str | None = None
    output: CheckOutputJson = msgspec.field(default_factory=CheckOutputJson)

    def check_run(self) -> OwnCheckRun:
        return OwnCheckRun(self.id, self.external_id or "", self.status, self.conclusion, self.output.annotations_count)


class CheckRuns(msgspec.Struct):
    check_runs: list[CheckRunJson]


T = TypeVar("T")


class GraphQLError(msgspec.Struct):
    message: str = ""


class GraphQLErrors(msgspec.Struct):
    errors: list[GraphQLError] = msgspec.field(default_factory=list)


class GraphQL(msgspec.Struct, Generic[T]):
    data: T | None = None


class DeliveryJson(msgspec.Struct):
    id: int
    guid: str
    event: str
    status_code: int = 0
    delivered_at: str = ""
    action: str | None = None
    installation_id: int | None = None
    repository_id: int | None = None

    def delivery(self) -> LoggedDelivery:
        return LoggedDelivery(**msgspec.structs.asdict(self))


class DeliveryRequest(msgspec.Struct):
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))


class DeliveryDetail(msgspec.Struct):
    request: DeliveryRequest
