"""What can go wrong between us, git and the remote, in our own words; no text here ever carries a token."""

from __future__ import annotations

from enum import StrEnum

from bot.errors import BotError, TransientError, UserError


class GitFailed(BotError):
    """A git command failed in a way that nothing above recognises."""

    def __init__(self, command: str, exit_code: int, words: str = "") -> None:
        super().__init__(f"git {command} ended with {exit_code}: {words[-400:] or 'it said nothing'}")
        self.command = command
        self.exit_code = exit_code
        self.words = words


class GitTimedOut(TransientError):
    """A git command was killed at its time limit."""

    def __init__(self, command: str, seconds: float) -> None:
        super().__init__(f"git {command} was stopped after {seconds:g} s")
        self.command = command


class HostFull(TransientError):
    """The host's disk has no room for what git was to write."""


class MirrorLost(TransientError):
    """The cached repository is missing or was found corrupt and removed; fetching again brings it back."""


class RefMissing(UserError):
    """The branch, tag or commit is not at the remote."""


class RepositoryEmpty(RefMissing):
    """The repository has no commit yet."""


class RepositoryUnsupported(UserError):
    """The repository is of a kind or size that is not handled."""


class BadName(UserError):
    """A branch or ref name that git would refuse, or that would be taken for an option."""


class BundleRefused(BotError):
    """What came out of the environment is not what was asked for; the text is one sentence for people."""


class GitRefusal(StrEnum):
    """Why the remote (or the state of its branches) did not take a push."""

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
    """GitHub has made the commit but does not vouch for it."""
    OTHER = "other"


class PushRefused(BotError):
    """The push was rejected. `words` are the remote's own, cleaned but not yet redacted: they are not in the text."""

    def __init__(self, kind: GitRefusal, words: str) -> None:
        super().__init__(f"the push was refused ({kind.value})")
        self.kind = kind
        self.words = words


class PushRaced(BotError):
    """The branch is not where it was expected: somebody else made or moved it."""

    def __init__(self, branch: str, actual: str | None) -> None:
        super().__init__(f"the branch {branch} is at {actual or 'no commit'}, which was not expected")
        self.branch = branch
        self.actual = actual
