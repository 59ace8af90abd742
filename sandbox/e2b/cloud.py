"""Calls E2B's control plane: create, list, connect, pause, kill; each with a time-out and our own errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sandbox.e2b import faults
from sandbox.e2b.secret import Secrets
from sandbox.e2b.settings import E2BSettings
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError
from sandbox.primitives import EnvironmentMetrics, Lease

if TYPE_CHECKING:
    from e2b import E2B, AsyncSandbox, SandboxInfo

ASK_SECONDS = 30.0
CREATE_SECONDS = 90.0
PAUSE_SECONDS = 120.0
SNAPSHOT_SECONDS = 300.0
RETRIES = 2
PAGE = 100
MEASURED_SECONDS = 60.0  # the greatest age of a sample. Without it E2B reports a sandbox's whole life in coarse steps.
BAD_REQUEST = 400

T = TypeVar("T")


@dataclass(frozen=True)
class ListedSandbox:
    id: str
    metadata: Mapping[str, str]
    state: str  # running or paused
    started_at: datetime
    end_at: datetime
    cpus: int
    memory_mb: int

    def lease(self, settings: E2BSettings) -> Lease:
        since, until = self.started_at.timestamp(), self.end_at.timestamp()
        return Lease(since, until, self.cpus, self.memory_mb / 1024, settings.cpu_usd, settings.gib_usd)


class TemplateGone(SandboxError):
    """There is neither a template nor a snapshot with that name."""


class Cloud:
    def __init__(self, settings: E2BSettings) -> None:
        self._settings = settings

    @cached_property
    def _client(self) -> E2B:
        try:
            from e2b import E2B
        except ImportError:
            raise SandboxError("E2B's SDK is not installed: pip install 'forgehand[e2b]' brings it.") from None
        settings = self._settings
        names = ("api_url", "sandbox_url", "domain")
        given: dict[str, Any] = {name: value for name in names if (value := getattr(settings, name))}
        return E2B(api_key=settings.api_key, debug=False, retries=RETRIES, request_timeout=ASK_SECONDS, **given)

    @cached_property
    def _sandboxes(self) -> type[AsyncSandbox]:
        return self._client.AsyncSandbox

    @cached_property
    def secrets(self) -> Secrets | None:
        """Return E2B's store of secrets, if E2B keeps the model's key."""
        unmetered = self._settings.unmetered
        return Secrets(self._client.AsyncSecret, self._settings.secret, unmetered.key) if unmetered else None

    async def create(
        self, key: str, metadata: Mapping[str, str], network: Mapping[str, object], template: str
    ) -> AsyncSandbox:
        """Create a sandbox; faults.Unclear if there may be one now, TemplateGone if its source does not exist."""
        given: Any = dict(network)
        call = self._sandboxes.create(
            template=template,
            timeout=self._settings.lifetime_seconds,
            metadata=dict(metadata),
            network=given,
            lifecycle={"on_timeout": "pause", "auto_resume": False},
            idempotency_key=key,
        )
        try:
            return await self._ask("creating a sandbox", call, CREATE_SECONDS)
        except SandboxError as error:
            if "template" in str(error) and not isinstance(error, EnvironmentBusy):
                raise TemplateGone(str(error)) from None
            raise

    async def connect(self, sandbox_id: str) -> AsyncSandbox:
        """Connect; this resumes a paused sandbox, and prolongs the life of a running one."""
        from e2b import GuestUnresponsiveException

        what, seconds = "connecting to a sandbox", self._settings.lifetime_seconds
        try:
            return await self._ask(what, self._sandboxes.connect(sandbox_id, timeout=seconds), CREATE_SECONDS)
        except SandboxError as error:
            if not isinstance(error.__cause__, GuestUnresponsiveException):
                raise
        # It hung when it was paused, and would go on hanging; only its disk is usable.
        call = self._sandboxes.connect(sandbox_id, timeout=seconds, on_resume="reboot")
        return await self._ask(what, call, CREATE_SECONDS)

    async def list(self, metadata: Mapping[str, str]) -> list[ListedSandbox]:
        """List sandboxes from all pages, the oldest first."""
        from e2b import SandboxQuery

        pages = self._sandboxes.list(query=SandboxQuery(metadata=dict(metadata)), limit=PAGE)
        found: list[ListedSandbox] = []
        while pages.has_next:
            found += [_listed(one) for one in await self._ask("listing sandboxes", pages.next_items(), ASK_SECONDS)]
        return sorted(found, key=lambda one: (one.started_at, one.id))

    async def state(self, sandbox_id: str) -> str:
        """Return running or paused; EnvironmentGone if it does not exist."""
        return (await self.look(sandbox_id)).state

    async def look(self, sandbox_id: str) -> ListedSandbox:
        return _listed(await self._ask("looking at a sandbox", self._sandboxes.get_info(sandbox_id), ASK_SECONDS))

    async def left(self, sandbox_id: str) -> float:
        """Return the seconds until the plan's limit without a pause, by E2B's clock at the start and ours now."""
        ran = (datetime.now(UTC) - (await self.look(sandbox_id)).started_at).total_seconds()
        return max(0.0, self._settings.longest_seconds - ran)

    async def snapshot(self, sandbox_id: str, name: str) -> str:
        """Take a snapshot of the disk; if E2B cannot do that, of disk and memory. The name finds it again."""
        from e2b import SandboxException

        try:
            return await self._snapshot(sandbox_id, name, "filesystem")
        except SandboxError as error:
            cause = error.__cause__
            if not isinstance(cause, SandboxException) or getattr(cause, "status_code", 0) not in (400, 409):
                raise
            return await self._snapshot(sandbox_id, name, "full")

    async def forget(self, snapshot_id: str) -> None:
        """Remove a snapshot; EnvironmentBusy while a sandbox, running or paused, uses it."""
        try:
            await self._ask("removing a snapshot", self._sandboxes.delete_snapshot(snapshot_id), ASK_SECONDS)
        except SandboxError as error:
            if getattr(error.__cause__, "status_code", 0) != BAD_REQUEST:
                raise
            raise EnvironmentBusy("removing a snapshot: a sandbox still uses it") from error.__cause__

    async def _snapshot(self, sandbox_id: str, name: str, mode: Literal["filesystem", "full"]) -> str:
        call = self._sandboxes.create_snapshot(sandbox_id, name=name, mode=mode)
        return (await self._ask("taking a snapshot", call, SNAPSHOT_SECONDS)).snapshot_id

    async def kill(self, sandbox_id: str) -> None:
        await self._ask("ending a sandbox", self._sandboxes.kill(sandbox_id), ASK_SECONDS)

    async def pause(self, sandbox_id: str) -> None:
        """Pause; no error if it is paused already."""
        done = await self._ask("pausing a sandbox", self._sandboxes.pause(sandbox_id), PAUSE_SECONDS)
        if not done and await self.state(sandbox_id) != "paused":
            raise EnvironmentBusy("pausing a sandbox: E2B is busy with it; Forgehand tries again")

    async def keep(self, sandbox_id: str, seconds: float) -> None:
        whole = max(1, round(min(seconds, self._settings.longest_seconds)))
        try:
            await self._ask("prolonging a sandbox", self._sandboxes.set_timeout(sandbox_id, whole), ASK_SECONDS)
        except EnvironmentGone:
            if await self.state(sandbox_id) == "paused":  # the call answers 404 for this too
                raise faults.Paused("the sandbox is paused") from None
            raise

    async def metrics(self, sandbox_id: str) -> EnvironmentMetrics | None:
        since = datetime.now(UTC) - timedelta(seconds=MEASURED_SECONDS)
        call = self._sandboxes.get_metrics(sandbox_id, start=since)
        found = await self._ask("measuring a sandbox", call, ASK_SECONDS)
        if not found:
            return None
        last = max(found, key=lambda one: one.timestamp)
        return EnvironmentMetrics(last.cpu_used_pct * last.cpu_count, last.mem_used, last.disk_used)

    async def _ask(self, what: str, call: Awaitable[T], seconds: float) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await call
        except Exception as error:  # any error of the SDK and its libraries
            raise faults.of_service(error, what) from error


def _listed(one: SandboxInfo) -> ListedSandbox:
    size = (one.cpu_count, one.memory_mb)
    return ListedSandbox(one.sandbox_id, dict(one.metadata or {}), one.state.value, one.started_at, one.end_at, *size)
