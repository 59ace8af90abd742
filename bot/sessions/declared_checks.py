"""Runs the checks that a repository declares, within limits, and keeps their output.

They run in a clean room: a fresh environment with one commit and nothing from an agent. Like every environment of a
turn, it has a row before it exists, is metered, and ends in all cases.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot import repo_config
from bot.errors import BotError
from bot.git.quarantine import Had, Quarantine, RepositoryPack
from bot.models import SessionId
from bot.proposal import verification
from bot.proposal.verification import CheckedCommand, CheckPlace
from bot.sessions import environments, packages
from bot.sessions.environments import meter, warm_start
from bot.sessions.moves import stop_command_if_disk_fills
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store import sessions
from bot.store.files import KeptFiles
from bot.store.sessions import Turn
from bot.store.snapshots import StoredSnapshot
from sandbox.agents.base import clean
from sandbox.clients import PackageClients
from sandbox.errors import EnvironmentBusy, EnvironmentGone, KeyRefused, SandboxError
from sandbox.execution import CheckResult, ExecutionEnvironment
from sandbox.primitives import EnvironmentPrimitives

log = logging.getLogger(__name__)

PORTION = 32 << 10
"""Bytes of output to redact before other tasks get their turn."""
COMMAND_SECONDS = 900.0
WHOLE_SECONDS = 1800.0
MOST_TAIL = 8_000
MOST_PASSED_TAIL = 500
"""The store keeps less output of a command that has passed."""
BROKEN = 125
"""Stands for an exit code if the command left nothing behind that shows how it ended."""
ROOM_SECONDS = 30.0
"""The agent's environment holds room during the wait for more, so nobody waits for long."""
END_SECONDS = 5.0
"""After this time the sweep ends the environment, which is already given up."""


OUTPUTS = "checks"


def output_name(turn: Turn) -> str:
    """Name the turn's output file; checks of fixed work have a second one."""
    return f"{OUTPUTS}/{turn.key.session}-{turn.key.n:06}-{int(turn.mending is not None)}.log"


async def output_names(files: KeptFiles, session: SessionId) -> list[str]:
    return await files.names(f"{OUTPUTS}/{session}-")


async def outputs_of(files: KeptFiles, session: SessionId) -> list[Path]:
    found = [await files.fetch(name) for name in await output_names(files, session)]
    return [path for path in found if path is not None]


def _text(printed: Path) -> str:
    try:
        return clean(printed.read_bytes().decode("utf-8", "replace"))
    except FileNotFoundError:
        return ""


@asynccontextmanager
async def checking(services: Services, turn: Turn, where: CheckPlace, sha: str) -> AsyncIterator[Checking]:
    """Begin the turn's output again, and store it once, however the checks end.

    A crash loses what is not stored yet; the step then runs the checks again."""
    name = output_name(turn)
    await services.files.forget(name)
    try:
        has_registries = bool(repo_config.load(turn.config).registries)
        opened = packages.opened(services, turn, WHOLE_SECONDS) if has_registries else nullcontext()
        async with opened as clients:
            yield Checking(services, turn, where, sha, clients)
    finally:
        try:
            if services.files.path(name).exists():
                await services.files.save(name)
        except (OSError, BotError) as error:
            log.warning("output is not stored", extra={"turn": turn.key.workflow_id, "error": str(error)})


@dataclass
class Checking:
    """A run of the declared checks in one environment."""

    services: Services
    turn: Turn
    where: CheckPlace
    sha: str
    clients: PackageClients | None = None
    done: list[CheckedCommand] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + WHOLE_SECONDS
        self._output = self.services.files.path(output_name(self.turn))
        self._changed: set[str] = set()

    async def set_up(self, environment: ExecutionEnvironment, commands: tuple[str, ...]) -> bool:
        """Return whether all of them succeeded; no check can run after one that fails."""
        for command in commands:
            found = replace(await self._run(environment, command), setup=True)
            if not found.passed:
                await self._note(found)
                return False
        return True

    async def run(self, environment: ExecutionEnvironment, commands: tuple[str, ...]) -> None:
        for command in commands:
            await self.run_one(environment, command)

    async def run_one(self, environment: ExecutionEnvironment, command: str, *, setup: bool = False) -> CheckedCommand:
        found = replace(await self._run(environment, command), setup=setup)
        await self._note(found)
        return found

    @property
    def may_compare(self) -> bool:
        """Tell whether something has failed that may also fail without the work, and there is time to see."""
        return bool(self._red()) and self._left() > 0

    def _red(self) -> list[int]:
        return [at for at, one in enumerate(self.done) if one.is_ours and not one.setup]

    async def compare(self, environment: ExecutionEnvironment, setup: tuple[str, ...]) -> None:
        """Try the failed checks in an environment without the work: the work did not cause what fails there too.

        The checks before them run first, as one may need what another has made."""
        for command in setup:
            if not (await self._run(environment, command, "on the base")).passed:
                return  # it proves nothing about the checks
        red = self._red()
        for at in range(red[-1] + 1):
            found = await self._run(environment, self.done[at].command, "on the base")
            ran_short = found.timed_out and self._left() <= 0  # it might have passed
            if at in red and not ran_short:
                self.done[at] = replace(self.done[at], base_exit_code=found.exit_code)
        await self._store()

    async def _run(self, environment: ExecutionEnvironment, command: str, beside: str = "") -> CheckedCommand:
        if self._left() <= 0:
            return CheckedCommand(command, None, self.where, self.sha)
        await meter.look(self.services.store, self.turn.key, environment.primitives)
        printed, began = self.services.made_turn_folder(self.turn.key.workflow_id) / "check.out", time.monotonic()
        verifying = self._result(environment, command, printed)
        try:
            result = await stop_command_if_disk_fills(self.services, environment, command, verifying)
        except (EnvironmentGone, KeyRefused):
            raise
        except SandboxError as error:  # a command that breaks our script, or its machine, has failed
            result = CheckResult(command, BROKEN, str(error), time.monotonic() - began)
        check = self._check(result)
        await self._keep(f"{command}{f'   ({beside})' if beside else ''}", printed, check)
        return check

    async def _result(self, environment: ExecutionEnvironment, command: str, printed: Path) -> CheckResult:
        """Run the command, once more if no answer came: the connection may have failed, not the command."""
        commit = self.sha or None
        try:
            return await environment.verify(command, min(COMMAND_SECONDS, self._left()), printed, commit, self.clients)
        except EnvironmentBusy:
            if self._left() <= 0:
                raise
        return await environment.verify(command, min(COMMAND_SECONDS, self._left()), printed, commit, self.clients)

    async def _keep(self, head: str, printed: Path, check: CheckedCommand) -> None:
        """Append the output between two lines of ours; a failure here does not end the turn."""
        redactor = self.services.redactor
        stream, parts = redactor.stream(), [f"$ {redactor.redact(head)}\n"]
        try:
            text = await asyncio.to_thread(_text, printed)
            for at in range(0, len(text), PORTION):
                parts.append(stream.feed(text[at : at + PORTION]))
                await asyncio.sleep(0)
            end = "" if not text or text.endswith("\n") else "\n"
            foot = f"{stream.end()}{end}[{verification.ending(check)}]\n\n"
            await asyncio.to_thread(self._append, "".join([*parts, foot]))
            await asyncio.to_thread(printed.unlink, missing_ok=True)
        except OSError as error:
            log.warning("output is not kept", extra={"turn": self.turn.key.workflow_id, "error": error.strerror})

    def _append(self, text: str) -> None:
        self._output.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            file.write(text.encode("utf-8", "replace"))

    def _check(self, result: CheckResult) -> CheckedCommand:
        code = result.exit_code or (BROKEN if result.timed_out else 0)
        redact, most = self.services.redactor.redact, MOST_TAIL if code else MOST_PASSED_TAIL
        changed = [path for path in result.changed if path not in self._changed]
        self._changed.update(changed)
        return CheckedCommand(
            command=result.command,
            exit_code=code,
            where=self.where,
            sha=self.sha,
            seconds=round(result.seconds, 1),
            tail=redact(result.tail)[-most:],
            timed_out=result.timed_out,
            changed=tuple(redact(path) for path in changed),
        )

    def _left(self) -> float:
        return self._ends - time.monotonic()

    async def _note(self, check: CheckedCommand) -> None:
        self.done.append(check)
        await self._store()

    async def _store(self) -> None:
        await sessions.update_turn(self.services.store, self.turn.key, verified=verification.dump(self.done))
        self.services.board.touch(self.turn.key)


class NoCleanRoom(Exception):
    """There is no room for another environment, its provider refused, or the commit cannot be checked out in it."""

    def __init__(self, why: str, error: BaseException) -> None:
        """`why` is for people, the error's own words for the log."""
        super().__init__(f"{why}: {error}")
        self.why = why


@asynccontextmanager
async def clean_room(
    services: Services, turn: Turn, quarantine: Quarantine, commit: str
) -> AsyncIterator[ExecutionEnvironment]:
    """Open a clean checkout of the commit, which is in the quarantine; end the room of an earlier try first."""
    await _end_left(services, turn)
    try:
        thread = (await sessions.session(services.store, turn.key.session)).thread
        snapshot = await warm_start.warm_snapshot(services, turn, thread)
        environment = ExecutionEnvironment(await _created(services, turn, snapshot), services.agent)
        try:
            await _bring_in(services, turn, environment, (quarantine, commit), snapshot)
            await _bring_more(services, turn, environment, (quarantine, commit))
        except (EnvironmentGone, EnvironmentBusy, KeyRefused):
            raise
        except SandboxError as error:
            raise NoCleanRoom(verification.NOT_FURNISHED, error) from error
        yield environment
    finally:
        await leave_clean_room(services, turn)


async def leave_clean_room(services: Services, turn: Turn) -> None:
    """End the clean room, or leave that to the sweep; safe to repeat."""
    row = await rows.for_checks(services.store, turn.key)
    if row is None:
        return
    await rows.give_up(services.store, row.id)
    try:
        async with asyncio.timeout(END_SECONDS):
            await _end_left(services, turn)
    except (TimeoutError, SandboxError) as error:
        log.warning("an environment is left to the sweep", extra={"id": row.id, "error": str(error)})


async def _end_left(services: Services, turn: Turn) -> None:
    async with services.environment_locks.of(turn.key.session):
        if (row := await rows.for_checks(services.store, turn.key)) is not None:
            await environments.give_up(services, row.id)


async def _created(services: Services, turn: Turn, snapshot: StoredSnapshot | None) -> EnvironmentPrimitives:
    spec = await environments.spec_of(services, turn)
    # Goes ahead of sessions that have not begun: this one is nearly done, and then gives back two places.
    spec = replace(spec, labels={**spec.labels, "purpose": rows.EnvironmentPurpose.CHECKS.value}, ahead=True)
    async with services.environment_locks.of(turn.key.session):
        row = await rows.take_for_checks(services.store, turn.key, services.here)
    try:
        async with asyncio.timeout(ROOM_SECONDS):
            primitives = await environments.created(services, row, spec, snapshot)
    except KeyRefused:
        raise
    except TimeoutError as error:
        raise NoCleanRoom(verification.NO_ROOM, error) from error
    except SandboxError as error:
        raise NoCleanRoom(verification.NOT_MADE, error) from error
    await services.egress.open(row.id, None if spec.egress is None else frozenset(spec.egress))
    await meter.look(services.store, turn.key, primitives)
    return primitives


async def _bring_more(
    services: Services, turn: Turn, environment: ExecutionEnvironment, source: tuple[Quarantine, str]
) -> None:
    """Bring in what is not in git's own data. Forgehand has said before the work what is missing."""
    if not repo_config.load(turn.config).brings_more:
        return
    from bot.sessions import contents

    await contents.bring(services, turn, environment, contents.Source(source[0].git_dir, source[1], source[0].large))


async def _bring_in(
    services: Services,
    turn: Turn,
    environment: ExecutionEnvironment,
    source: tuple[Quarantine, str],
    snapshot: StoredSnapshot | None,
) -> None:
    folder = services.made_turn_folder(turn.key.workflow_id)
    quarantine, commit = source

    async def packed(had: Had | None) -> RepositoryPack:
        return await quarantine.pack(commit, folder / "checks.pack", had=had)

    if snapshot is not None and await warm_start.grown(services, turn, environment, snapshot, packed):
        return
    pack = await packed(None)
    try:
        assert turn.base is not None
        await environment.prepare(pack.path, pack.sha, pack.shallow, turn.base, turn=turn.key.n, fresh=True)
    finally:
        pack.path.unlink(missing_ok=True)
