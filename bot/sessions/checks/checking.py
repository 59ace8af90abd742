"""Runs the declared commands in an environment, each and all within their limits, and keeps what came of them."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.proposal import verification
from bot.proposal.verification import CheckedCommand, CheckPlace
from bot.sessions.beside import spared
from bot.sessions.checks import outputs
from bot.sessions.environments import metering
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from sandbox.errors import EnvironmentBusy, EnvironmentGone, KeyRefused, SandboxError
from sandbox.execution import CheckResult, ExecutionEnvironment

log = logging.getLogger(__name__)

COMMAND_SECONDS = 900.0
WHOLE_SECONDS = 1800.0
MOST_TAIL = 8_000
MOST_PASSED_TAIL = 500
"""Of what a command printed that has passed: nobody needs more of it in the store."""
BROKEN = 125
"""In the place of an exit code: the command left nothing behind that could say how it ended."""


@dataclass
class Checking:
    """One round of checks: on which commit, and `where` they run."""

    services: Services
    turn: Turn
    where: CheckPlace
    sha: str
    done: list[CheckedCommand] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + WHOLE_SECONDS
        data_dir = self.services.settings.data_dir
        self._output = outputs.Output(outputs.path(data_dir, self.turn), self.services.redactor)
        self._changed: set[str] = set()

    async def set_up(self, environment: ExecutionEnvironment, commands: tuple[str, ...]) -> bool:
        """Whether all of them succeeded; one that fails says that nothing can be checked."""
        for command in commands:
            found = replace(await self._run(environment, command), setup=True)
            if not found.passed:
                await self._note(found)
                return False
        return True

    async def run(self, environment: ExecutionEnvironment, commands: tuple[str, ...]) -> None:
        for command in commands:
            await self._note(await self._run(environment, command))

    @property
    def may_compare(self) -> bool:
        """Something has failed that may fail without the work too, and there is time to see."""
        return bool(self._red()) and self._left() > 0

    def _red(self) -> list[int]:
        return [at for at, one in enumerate(self.done) if one.is_ours and not one.setup]

    async def compare(self, environment: ExecutionEnvironment, setup: tuple[str, ...]) -> None:
        """Those that failed are tried where the work is not and never was: what fails there too is not its doing.

        After those before them, as they ran: one may need what another has made."""
        for command in setup:
            if not (await self._run(environment, command, "on the base")).passed:
                return  # nothing can be said of it
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
        await metering.look(self.services.store, self.turn.key, environment.primitives)
        printed, began = self._printed(), time.monotonic()
        try:
            result = await spared(self.services, environment, command, self._result(environment, command, printed))
        except (EnvironmentGone, KeyRefused):
            raise
        except SandboxError as error:  # what the command did to our own script, or to its machine, is its failure
            result = CheckResult(command, BROKEN, str(error), time.monotonic() - began)
        check = self._check(result)
        await self._keep(f"{command}{f'   ({beside})' if beside else ''}", printed, check)
        return check

    async def _result(self, environment: ExecutionEnvironment, command: str, printed: Path) -> CheckResult:
        """Once more where there was no answer: that may be the way there, and no failure of the command."""
        commit = self.sha or None
        try:
            return await environment.verify(command, min(COMMAND_SECONDS, self._left()), printed, commit)
        except EnvironmentBusy:
            if self._left() <= 0:
                raise
        return await environment.verify(command, min(COMMAND_SECONDS, self._left()), printed, commit)

    async def _keep(self, head: str, printed: Path, check: CheckedCommand) -> None:
        """That it cannot be kept is no reason to end the turn."""
        foot = verification.ending(check)
        try:
            await self._output.add(head, printed, foot)
            await asyncio.to_thread(printed.unlink, missing_ok=True)
        except OSError as error:
            log.warning("output is not kept", extra={"turn": self.turn.key.workflow_id, "error": error.strerror})

    def _check(self, result: CheckResult) -> CheckedCommand:
        code = result.exit_code or (BROKEN if result.timed_out else 0)
        tail = self.services.redactor.redact(result.tail)
        most = MOST_TAIL if code else MOST_PASSED_TAIL
        changed = [path for path in result.changed if path not in self._changed]
        self._changed.update(changed)
        return CheckedCommand(
            command=result.command,
            exit_code=code,
            where=self.where,
            sha=self.sha,
            seconds=round(result.seconds, 1),
            tail=tail[-most:],
            timed_out=result.timed_out,
            changed=tuple(self.services.redactor.redact(path) for path in changed),
        )

    def _printed(self) -> Path:
        folder = self.services.turn_folder(self.turn.key.workflow_id)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder / "check.out"

    def _left(self) -> float:
        return self._ends - time.monotonic()

    async def _note(self, check: CheckedCommand) -> None:
        self.done.append(check)
        await self._store()

    async def _store(self) -> None:
        """As they come, so that people can watch."""
        await sessions.update_turn(self.services.store, self.turn.key, verified=verification.dump(self.done))
        self.services.board.touch(self.turn.key)
