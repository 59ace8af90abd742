"""Defines the errors of environments. Each vendor's package translates its errors into these."""

from __future__ import annotations


class SandboxError(Exception):
    """Base of the package's errors."""


class KeyRefused(SandboxError):
    """The provider's service does not accept our key; only the operator can fix that."""


class EnvironmentGone(SandboxError):
    """The environment no longer exists, and only work that was collected is left."""


class SnapshotGone(SandboxError):
    """The snapshot from which an environment should start no longer exists."""


class EnvironmentBusy(SandboxError):
    """No environment is free, or it did not answer in time; a later try may work."""


class NotThere(SandboxError):
    """The path has no regular file; we do not follow links or open FIFOs and devices."""


class TooLarge(SandboxError):
    """A file is larger than the reader's cap."""


class IsolationMissing(SandboxError):
    """This host cannot isolate an environment; the text says why and what to do."""
