"""All our errors; anything else is a bug, of which people only see a reference."""

from __future__ import annotations


class BotError(Exception):
    """Root of all errors that we raise on purpose."""


class UserError(BotError):
    """The person can fix it; the text is markdown for them. It is posted unchanged and never retried."""


class CommandError(UserError):
    """The command was malformed."""


class NotAllowed(UserError):
    """The person, the repository or the policy does not permit it."""


class Hidden(NotAllowed):
    """Not there, or not for this person: both look the same from outside."""


class BadRepoConfig(UserError):
    """`.github/forgehand.yml` is not valid."""


class TransientError(BotError):
    """May pass by itself: try again after `retry_after` seconds (None: the usual back-off)."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class GitHubUnavailable(TransientError):
    """GitHub did not answer, or asked us to wait."""


class Unrecognised(GitHubUnavailable):
    """GitHub answered 401. That may pass: a new token takes seconds to be known everywhere at GitHub."""

    def __init__(self, message: str) -> None:
        super().__init__(f"GitHub answered 401: {message}")


class EnvironmentUnavailable(TransientError):
    """No environment is available, or it did not answer."""


class GitHubRefused(BotError):
    """GitHub answered and said no (4xx that is neither a rate limit nor a missing thing)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"GitHub answered {status}: {message}")
        self.status = status
        self.message = message


class NotFound(GitHubRefused):
    """The thing is not there, or the App may not see it."""

    def __init__(self, message: str) -> None:
        super().__init__(404, message)


class SettingsError(BotError):
    """A setting is missing or wrong: the text names it and says what to do; `serve` does not start."""


class StoreError(BotError):
    """The data directory cannot be used as it is; the text says what to do."""


class VaultError(BotError):
    """A secret cannot be stored or read; the text says what to do, without any part of the secret."""
