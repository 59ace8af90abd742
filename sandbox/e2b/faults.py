"""Translates E2B's errors into ours.

The SDK raises its own errors, some of which are time-outs by class but ends by meaning. It also lets through errors of
three libraries and bare exceptions. So we judge only certain cases by class, and all others by the sandbox's state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sandbox.errors import EnvironmentBusy, EnvironmentGone, KeyRefused, NotThere, SandboxError

WORDS = 300
CONFLICT = 409  # E2B is pausing, resuming, snapshotting or killing it
OVERDUE = "Max instance length exceeded"


class Unclear(EnvironmentBusy):
    """The call may have had its effect or not. Repeat it if that does no harm."""


class Paused(EnvironmentBusy):
    """The sandbox is paused: attach to it again."""


def heed(error: Exception) -> None:
    """Raise CancelledError if a library turned a cancellation into another error."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def of_service(error: Exception, what: str) -> SandboxError:
    heed(error)
    return _certain(error, what) or Unclear(f"{what}: E2B did not answer ({_said(error)})")


async def of_sandbox(error: Exception, what: str, look: Callable[[], Awaitable[str]]) -> SandboxError:
    """Translate an error of a call into a sandbox; `look` returns its state, or raises EnvironmentGone."""
    from e2b import AuthenticationException, SandboxNotFoundException

    heed(error)
    # A machine that resumes or boots does not know its token yet, so this does not mean that our key is bad.
    found = None if isinstance(error, AuthenticationException) else _certain(error, what)
    if found is not None and not isinstance(error, SandboxNotFoundException):
        return found
    try:
        state = await look()
    except EnvironmentGone as gone:
        return gone
    except SandboxError:
        return Unclear(f"{what}: neither the sandbox nor E2B answers")
    if state == "paused":
        return Paused(f"{what}: the sandbox is paused")
    return Unclear(f"{what}: the connection to the sandbox failed ({_said(error)})")


def _certain(error: Exception, what: str) -> SandboxError | None:
    if isinstance(error, SandboxError):
        return error
    return _temporary(error, what) or _refused(error, what)


def _refused(error: Exception, what: str) -> SandboxError | None:
    import e2b

    if isinstance(error, e2b.FileNotFoundException):
        return NotThere(f"{what}: not there")
    if isinstance(error, e2b.SandboxNotFoundException):
        return EnvironmentGone("the sandbox is not there any more")
    if isinstance(error, e2b.AuthenticationException):
        return KeyRefused("E2B refuses the key: check E2B_API_KEY (https://e2b.dev/dashboard?tab=keys)")
    if isinstance(error, e2b.InvalidArgumentException | e2b.TemplateException | e2b.BuildException):
        return SandboxError(f"{what}: E2B refuses it ({_said(error)})")
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 425, 429):
        return SandboxError(f"{what}: E2B refuses it ({_said(error)})")
    return None


def _temporary(error: Exception, what: str) -> SandboxError | None:
    """Recognise an error that may pass and certainly had no effect."""
    import e2b
    from e2b.exceptions import ServiceBusyException

    if getattr(error, "status_code", None) == CONFLICT:
        return EnvironmentBusy(f"{what}: E2B is busy with the sandbox; Forgehand tries again")
    if OVERDUE in str(error):
        return Paused(f"{what}: the sandbox has run for as long as the plan allows; E2B will pause it")
    if isinstance(error, e2b.NotEnoughSpaceException):
        return EnvironmentBusy(f"{what}: the sandbox's disk is full")
    if isinstance(error, e2b.RateLimitException):
        return EnvironmentBusy(f"{what}: a limit of the E2B plan is reached; Forgehand tries again")
    if isinstance(error, ServiceBusyException):
        return EnvironmentBusy(f"{what}: E2B is busy; Forgehand tries again")
    return None


def _said(error: Exception) -> str:
    """Return the class and first words; the SDK's texts contain neither keys nor tokens."""
    return f"{type(error).__name__}: {str(error)[:WORDS]}".strip(": ")
