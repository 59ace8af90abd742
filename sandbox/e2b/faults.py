"""The one place where what goes wrong with E2B is put into our own words.

The SDK raises its own errors, some of which are time-outs by class and ends by meaning, and lets through errors of the
three libraries below it and bare exceptions. So only what is certain is decided by class; of everything else the state
of the sandbox decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sandbox.errors import EnvironmentBusy, EnvironmentGone, KeyRefused, NotThere, SandboxError

WORDS = 300
CONFLICT = 409  # it is being paused, resumed, snapshotted or killed
OVERDUE = "Max instance length exceeded"


class Unclear(EnvironmentBusy):
    """The call may have had its effect or not; it may be repeated where a repetition does no harm."""


class Paused(EnvironmentBusy):
    """The sandbox is there and frozen: it has to be attached to anew."""


def heed(error: Exception) -> None:
    """The libraries below may turn a cancellation into an error of their own: it is a cancellation all the same."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def of_service(error: Exception, what: str) -> SandboxError:
    """What a call to E2B's API has come to."""
    heed(error)
    return _certain(error, what) or Unclear(f"{what}: E2B did not answer ({_said(error)})")


async def of_sandbox(error: Exception, what: str, look: Callable[[], Awaitable[str]]) -> SandboxError:
    """What a call into a sandbox has come to; `look` gives the sandbox's state, or raises EnvironmentGone."""
    from e2b import AuthenticationException, SandboxNotFoundException

    heed(error)
    # A machine that comes back, or boots, does not know its own token yet: our key is as good as before.
    found = None if isinstance(error, AuthenticationException) else _certain(error, what)
    if found is not None and not isinstance(error, SandboxNotFoundException):
        return found
    try:
        state = await look()
    except EnvironmentGone as gone:
        return gone
    except SandboxError:
        return Unclear(f"{what}: the sandbox does not answer, nor does E2B say how it is")
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
    """Refused for now, and certainly without effect."""
    import e2b
    from e2b.exceptions import ServiceBusyException

    if getattr(error, "status_code", None) == CONFLICT:
        return EnvironmentBusy(f"{what}: E2B is busy with the sandbox; it is tried again")
    if OVERDUE in str(error):
        return Paused(f"{what}: the sandbox has run for as long as the plan lets it, and is about to be paused")
    if isinstance(error, e2b.NotEnoughSpaceException):
        return EnvironmentBusy(f"{what}: the sandbox's disk is full")
    if isinstance(error, e2b.RateLimitException):
        return EnvironmentBusy(f"{what}: a limit of the E2B plan is reached; it is tried again")
    if isinstance(error, ServiceBusyException):
        return EnvironmentBusy(f"{what}: E2B is busy; it is tried again")
    return None


def _said(error: Exception) -> str:
    """The class and first words; the SDK's texts hold neither keys nor tokens."""
    return f"{type(error).__name__}: {str(error)[:WORDS]}".strip(": ")
