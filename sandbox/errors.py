"""What can go wrong with an environment, in our own words; vendor errors are translated to these in their one home."""

from __future__ import annotations


class SandboxError(Exception):
    """Root of the package's errors."""


class KeyRefused(SandboxError):
    """The service that environments come from does not accept our key: only the operator can mend that."""


class EnvironmentGone(SandboxError):
    """The environment no longer exists: what was in it is lost, what was collected is not."""


class SnapshotGone(SandboxError):
    """What an environment was to start from is not there any more."""


class EnvironmentBusy(SandboxError):
    """No environment can be had, or it did not answer in time; may pass by itself."""


class NotThere(SandboxError):
    """No regular file at that path (or something that we do not follow: a link, a FIFO, a device)."""


class TooLarge(SandboxError):
    """A file passes the cap that the reader set."""


class IsolationMissing(SandboxError):
    """This host cannot isolate an environment; the text says why and what to do."""
