"""The failures of git and remotes, in our words; none of these texts ever has a token."""

from __future__ import annotations

from enum import StrEnum

from bot.errors import BotError, TransientError, UserError


class GitFailed(BotError):
    """A git command failed in a way that we do not recognise."""

    def __init__(self, command: str, exit_code: int, words: str = "") -> None:
        super().__init__(f"git {command} ended with {exit_code}: {words[-400:] or 'it said nothing'}")
        self.command = command
        self.exit_code = exit_code
        self.words = words
        self.out_of_memory = "ut of memory" in words or "attempting to allocate" in words


class GitTimedOut(TransientError):
    """A git command was killed at its time limit."""

    def __init__(self, command: str, seconds: float) -> None:
        super().__init__(f"git {command} was stopped after {seconds:g} s")
        self.command = command


class HostFull(TransientError):
    """The host's disk is full."""


class MirrorLost(TransientError):
    """The cached repository is missing, or was corrupt and is removed; another fetch brings it back."""


class RefMissing(UserError):
    """The remote does not have the branch, tag or commit."""


class RepositoryEmpty(RefMissing):
    """The repository has no commit yet."""


class RepositoryUnsupported(UserError):
    """We cannot handle a repository of this kind or size."""


class BadName(UserError):
    """Git would refuse this name of a branch or ref, or take it for an option."""


class BundleRefused(BotError):
    """The environment gave us something else than we asked for; the text is one sentence for people."""


class GitRefusal(StrEnum):
    """The reasons for which a remote refuses a push."""

    PROTECTED = "protected"
    RULES = "rules"
    SECRET = "secret"  # noqa: S105 - the kind of refusal, not a value
    WORKFLOW = "workflow"
    FILE_SIZE = "file_size"
    LFS = "lfs"
    NAME = "name"
    NON_FAST_FORWARD = "non_fast_forward"
    PERMISSION = "permission"
    UNVERIFIED = "unverified"
    """GitHub made the commit but does not vouch for it."""
    OTHER = "other"


class PushRefused(BotError):
    """The remote refused the push. `words` are its own, cleaned but not redacted, so they are not in the text."""

    def __init__(self, kind: GitRefusal, words: str) -> None:
        super().__init__(f"the push was refused ({kind.value})")
        self.kind = kind
        self.words = words


class PushRaced(BotError):
    """The branch is not where we expected it: somebody else made or moved it."""

    def __init__(self, branch: str, actual: str | None) -> None:
        super().__init__(f"the branch {branch} is at {actual or 'no commit'}, which was not expected")
        self.branch = branch
        self.actual = actual
