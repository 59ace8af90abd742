"""Creates, finds and ends environments in E2B's cloud; keeps one sandbox per key, even after errors."""

from __future__ import annotations

import asyncio
import secrets
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.agents.claude_binary import version_in
from sandbox.e2b import faults
from sandbox.e2b.cloud import Cloud, ListedSandbox, TemplateGone
from sandbox.e2b.environment import E2BEnvironment, Ends
from sandbox.e2b.inside import places
from sandbox.e2b.line import SandboxLine
from sandbox.e2b.marks import Marking, Remembered
from sandbox.e2b.operations import PYTHON
from sandbox.e2b.settings import E2BSettings
from sandbox.e2b.slots import OwnPlaces, Slots
from sandbox.e2b.tunnel import Tunnels
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError, SnapshotGone
from sandbox.primitives import (
    EnvironmentOverview,
    EnvironmentPrimitives,
    EnvironmentSpec,
    EnvironmentState,
    Lease,
    Marks,
    PlanPlaces,
    Witness,
)

if TYPE_CHECKING:
    from e2b import AsyncSandbox

KEY, INSTANCE, EGRESS = "forgehand-key", "forgehand-instance", "forgehand-egress"
CLOSED = "-"  # in place of hosts: only the gateway
LOOKS = (0.0, 0.3, 1.0, 2.0)  # pauses before looking for a sandbox after a create without an answer
END_SECONDS = 20.0
VERSION_SECONDS = 30.0
NEEDED = (PYTHON, "/usr/bin/git", "/bin/bash")
SOURCES = {places.RUNNER: Path(__file__).parents[1] / "runner", places.HANDS: Path(__file__).parent / "inside"}


class E2BProvider:
    """One bot's sandboxes in one account."""

    def __init__(
        self,
        settings: E2BSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        witness: Witness | None = None,
        marks: Marks | None = None,
        room: PlanPlaces | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._witness = witness
        self._marking = Marking(marks or Remembered())
        self._cloud = Cloud(settings)
        self._slots = Slots(settings.sandboxes, settings.creations_per_second, self._running, room or OwnPlaces())
        self._locks: dict[str, asyncio.Lock] = {}
        self._open: weakref.WeakSet[E2BEnvironment] = weakref.WeakSet()
        self._tunnels = Tunnels(settings, self._line)
        self._code: dict[str, bytes] = {}

    async def create(self, key: str, spec: EnvironmentSpec) -> EnvironmentPrimitives:
        """Find or create; bring our scripts in again, in case an agent changed them."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            line = await self._found(key) or await self._created(key, spec)
            await self._furnish(key, line, spec.egress)
            await self._tunnels.open(key, line, spec.egress)
            return self._environment(key, line, spec.egress)

    async def find(self, labels: Mapping[str, str]) -> list[EnvironmentPrimitives]:
        listed = await self._cloud.list({**labels, INSTANCE: self._settings.instance})
        found = {one.metadata[KEY]: one for one in reversed(listed) if KEY in one.metadata}
        return [self._environment(key, self._line(one.id), egress_of(one)) for key, one in sorted(found.items())]

    async def overview(self, labels: Mapping[str, str]) -> list[EnvironmentOverview]:
        """List all sandboxes; a lost answer may leave several for one key for a moment."""
        found = []
        for one in await self._cloud.list({**labels, INSTANCE: self._settings.instance}):
            if KEY in one.metadata:
                known = {name: value for name, value in one.metadata.items() if name not in (KEY, INSTANCE)}
                state, since = EnvironmentState(one.state), one.started_at.timestamp()
                found.append(EnvironmentOverview(one.metadata[KEY], "e2b", state, known, since))
        return sorted(found, key=lambda one: one.id)

    async def attach(self, environment_id: str) -> EnvironmentPrimitives:
        """Resume a paused one, and end what was frozen in it, because its connections are dead."""
        chosen, line = await self._connected(environment_id, await self._existing(environment_id))
        try:
            await self._woken(environment_id, line, was_paused=chosen.state == "paused")
        except EnvironmentGone:
            await self._end_unasked(environment_id, await self._listed(environment_id))
            await self._end(environment_id)
            raise
        egress = egress_of(chosen)
        await self._tunnels.open(environment_id, line, egress, replace=chosen.state == "paused")
        return self._environment(environment_id, line, egress)

    async def _woken(self, key: str, line: SandboxLine, *, was_paused: bool) -> None:
        """Check what woke; EnvironmentGone if it is not what went to sleep."""
        woken = await line.call("wake", key=key, end=was_paused, seconds=60.0)
        if not woken["marked"]:
            raise EnvironmentGone(f"the environment {key} came back from a pause without its files")
        is_settled = await self._marking.check(key, woken.get("mark"))
        if was_paused or not is_settled:
            await self._marking.renew(key, line)

    async def rest(self, environment_id: str) -> None:
        """Pause it, after ending the agent's processes, because E2B keeps its memory."""
        chosen = await self._chosen(environment_id, await self._existing(environment_id))
        if chosen.state == "running":
            await self._let_go(environment_id)
            environment = self._environment(environment_id, self._line(chosen.id), egress_of(chosen))
            await environment.still()
            await environment.pause()
        await self._slots.give(environment_id)

    async def leases(self, environment_id: str) -> list[Lease]:
        return [one.lease(self._settings) for one in await self._listed(environment_id)]

    async def end(self, environment_id: str) -> None:
        await self._let_go(environment_id)
        await self._end(environment_id)

    async def take_snapshot(self, environment_id: str, name: str) -> str:
        """Take a snapshot for other environments, after ending all processes and removing our marks."""
        sandbox_id = (await self._existing(environment_id))[0].id
        await self._tunnels.close(environment_id)
        await self._line(sandbox_id).call("strip", seconds=60.0)
        return await self._cloud.snapshot(sandbox_id, name)

    async def remove_snapshot(self, snapshot_id: str) -> None:
        await self._cloud.forget(snapshot_id)

    async def close(self) -> None:
        await self._tunnels.close_all()
        for environment in list(self._open):
            await environment.detach()
        self._open.clear()

    async def _let_go(self, key: str) -> None:
        """Close our streams into it: after a pause, a half-dead reader would block all others."""
        for environment in [one for one in self._open if one.id == key]:
            await environment.detach()

    async def _found(self, key: str) -> SandboxLine | None:
        listed = await self._listed(key)
        return (await self._connected(key, listed))[1] if listed else None

    async def _connected(self, key: str, listed: list[ListedSandbox]) -> tuple[ListedSandbox, SandboxLine]:
        chosen = await self._chosen(key, listed)
        await self._slots.take(key)
        line = self._line(chosen.id)
        await line.connect()
        await self._slots.hold(key)
        return chosen, line

    async def _created(self, key: str, spec: EnvironmentSpec) -> SandboxLine:
        await self._slots.take(key, ahead=spec.ahead)
        metadata = {**spec.labels, KEY: key, INSTANCE: self._settings.instance}
        if spec.egress != ():
            metadata[EGRESS] = CLOSED if spec.egress is None else ",".join(spec.egress)
        await self._marking.forget(key)
        # The key alone is not enough: after its sandbox was ended, the same key must get a new one.
        once = f"{key}-{secrets.token_hex(8)}"
        try:
            sandbox = await self._make(once, metadata, spec)
        except faults.Unclear as unclear:
            return await self._found_after(key, unclear)
        except BaseException:
            await self._slots.give(key)
            raise
        await self._slots.hold(key)
        return self._line(sandbox.sandbox_id, sandbox)

    async def _make(self, once: str, metadata: Mapping[str, str], spec: EnvironmentSpec) -> AsyncSandbox:
        network, template = self._settings.network(spec.egress), spec.template or self._settings.template
        if self._cloud.secrets is not None:
            await self._cloud.secrets.keep()
        try:
            return await self._cloud.create(once, metadata, network, spec.snapshot or template)
        except TemplateGone as error:
            if spec.snapshot:
                raise SnapshotGone("the snapshot no longer exists") from None
            words = "`forgehand sandbox template build` makes the template."
            raise SandboxError(f"{error}. {words}") from None

    async def _found_after(self, key: str, unclear: faults.Unclear) -> SandboxLine:
        """Look for a sandbox whose creation had no answer."""
        for pause in LOOKS:
            await asyncio.sleep(pause)
            if (line := await self._found(key)) is not None:
                return line
        await self._slots.give(key)
        raise EnvironmentBusy(str(unclear))

    async def _chosen(self, key: str, listed: list[ListedSandbox]) -> ListedSandbox:
        """Choose the sandbox that was furnished for this key, and end all others."""
        chosen = listed[0]
        if len(listed) > 1:
            for one in (one for one in listed if one.state == "running"):
                with suppress(SandboxError):
                    if (await self._line(one.id).call("wake", key=key, end=False))["marked"]:
                        chosen = one
                        break
            await self._end_unasked(key, [one for one in listed if one is not chosen])
        return chosen

    async def _end_unasked(self, key: str, listed: list[ListedSandbox]) -> None:
        for one in listed:
            lease = one.lease(self._settings)
            if self._witness is not None:
                await self._witness.ending(key, lease)
            await self._cloud.kill(one.id)
            if self._witness is not None:
                await self._witness.ended(key, lease)

    async def _furnish(self, key: str, line: SandboxLine, egress: Sequence[str] | None) -> None:
        self._code = self._code or await asyncio.to_thread(_sources)
        await line.install(self._code)
        answer = await self._marking.furnished(key, line, [*NEEDED, self._settings.agent])
        if not answer["known"] and self._settings.floor is not None:
            await _check_version(self._environment(key, line, egress), self._settings)

    async def _end(self, key: str) -> None:
        """End all sandboxes of the key, and check that they are gone."""
        await self._tunnels.close(key)
        try:
            async with asyncio.timeout(END_SECONDS):
                failed: dict[tuple[str, str], EnvironmentBusy] = {}
                while listed := await self._listed(key):
                    for one in listed:
                        if (error := failed.get((one.id, one.state))) is not None:
                            raise error
                    errors = await asyncio.gather(*(self._killed(one.id) for one in listed))
                    failed = {(one.id, one.state): error for one, error in zip(listed, errors, strict=True) if error}
        except TimeoutError:
            raise EnvironmentBusy(f"the sandbox of {key} could not be ended; Forgehand tries again") from None
        await self._marking.forget(key)
        await self._slots.give(key)
        self._locks.pop(key, None)

    async def _killed(self, sandbox_id: str) -> EnvironmentBusy | None:
        """End a sandbox, or return the error. E2B fails and forgets a sandbox if it lost its node: look again."""
        try:
            await self._cloud.kill(sandbox_id)
        except EnvironmentBusy as error:
            return error
        return None

    async def _existing(self, key: str) -> list[ListedSandbox]:
        if listed := await self._listed(key):
            return listed
        raise EnvironmentGone(f"the environment {key} is not there any more")

    async def _listed(self, key: str) -> list[ListedSandbox]:
        return await self._cloud.list({KEY: key, INSTANCE: self._settings.instance})

    async def _running(self) -> set[str]:
        listed = await self._cloud.list({INSTANCE: self._settings.instance})
        return {one.metadata.get(KEY, one.id) for one in listed if one.state == "running"}

    def _line(self, sandbox_id: str, sandbox: Any = None) -> SandboxLine:
        return SandboxLine(self._cloud, sandbox_id, self._settings.lifetime_seconds, sandbox, clock=self._clock)

    async def _resting(self, key: str, line: SandboxLine) -> None:
        await self._marking.renew(key, line)
        await self._tunnels.close(key)

    async def _roused(self, key: str, line: SandboxLine, egress: Sequence[str] | None) -> None:
        await self._woken(key, line, was_paused=False)
        await self._marking.renew(key, line)
        await self._tunnels.open(key, line, egress)

    def _environment(self, key: str, line: SandboxLine, egress: Sequence[str] | None) -> E2BEnvironment:
        ends = Ends(
            terminate=lambda: self._end(key),
            resting=lambda: self._resting(key, line),
            rested=lambda: self._slots.give(key),
            rousing=lambda: self._slots.take(key),
            roused=lambda line: self._roused(key, line, egress),
        )
        found = E2BEnvironment(key, line, self._cloud, self._settings, ends, egress)
        self._open.add(found)
        return found


def egress_of(one: ListedSandbox) -> tuple[str, ...] | None:
    """Return the sandbox's hosts in addition to everybody's; None: it may reach only the gateway."""
    if one.metadata.get(EGRESS) == CLOSED:
        return None
    return tuple(host for host in one.metadata.get(EGRESS, "").split(",") if host)


def _sources() -> dict[str, bytes]:
    found = ((folder, path) for folder, source in SOURCES.items() for path in source.glob("*.py"))
    return {f"{folder}/{path.name}": path.read_bytes() for folder, path in found}


async def _check_version(environment: EnvironmentPrimitives, settings: E2BSettings) -> None:
    """Refuse a template whose agent is too old, before the agent gets any work."""
    done = await environment.exec([settings.agent, "--version"], timeout=VERSION_SECONDS, cwd="/")
    found = version_in(done.stdout[:100].decode("ascii", "replace")) if done.stdout[:1].isdigit() else ()
    if settings.floor is not None and found < settings.floor:
        words = ".".join(map(str, found)) if found else "of an unknown version"
        least = ".".join(map(str, settings.floor))
        raise SandboxError(
            f"Claude Code in the template {settings.template!r} is {words}, and {least} is needed: "
            "`forgehand sandbox template build` makes a new one."
        )
