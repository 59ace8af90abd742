"""Takes a turn from where the store says it stands to its end; may be killed and called again between any two lines.

**Invariant:** a step is find-or-create, and its result and the next step are written in one transaction. Only this
module moves `turns.step`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from bot import endings
from bot.errors import BotError, TransientError, UserError
from bot.git.errors import MirrorLost
from bot.models import Outcome, Step, TurnKey, TurnState
from bot.sessions.moves import End, Move, To
from bot.sessions.remote import restore_mirror
from bot.sessions.services import Services
from bot.sessions.steps import collect, furnish, prepare, publish, settle, verify, work
from bot.store import sessions
from bot.store.sessions import Turn
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 8
LONGEST_PAUSE_SECONDS = 120.0

StepFunction = Callable[[Services, Turn], Awaitable[Move]]
STEPS: dict[Step, StepFunction] = {
    Step.PREPARE: prepare.run,
    Step.FURNISH: furnish.run,
    Step.WORK: work.run,
    Step.COLLECT: collect.run,
    Step.VERIFY: verify.run,
    Step.PUBLISH: publish.run,
    Step.SETTLE: settle.run,
}


class Flow:
    """The one place where a turn is advanced, and so the one border where every error becomes an outcome."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def advance(self, key: TurnKey) -> None:
        attempts = 0
        while (turn := await sessions.turn(self._services.store, key)).state is not TurnState.DONE:
            self._services.board.touch(key)
            try:
                move = await self._step(turn)
            except TransientError as error:
                attempts += 1
                move = await self._again(turn, error, attempts)
            else:
                attempts = 0
            await self._apply(turn, move)
        self._services.signals.forget(key)

    async def _step(self, turn: Turn) -> Move:
        try:
            if turn.stop_requested and turn.outcome is None and turn.step in (Step.PREPARE, Step.FURNISH):
                return End(Outcome.STOPPED, endings.stopped_by(turn.stop_requested))
            return await STEPS[turn.step](self._services, turn)
        except (TransientError, asyncio.CancelledError):
            raise
        except UserError as error:
            return End(Outcome.FAILED, str(error))
        except EnvironmentBusy as error:
            raise TransientError(str(error)) from error
        except EnvironmentGone:
            return End(Outcome.KILLED, endings.environment_lost())
        except (BotError, SandboxError) as error:
            log.error("turn failed", extra={"turn": turn.key.workflow_id, "step": turn.step, "error": str(error)})
            return End(Outcome.FAILED, endings.step_failed(turn.step, str(error)))
        except Exception:  # a bug: the traceback goes to the log, people get a reference
            log.exception("bug in a step", extra={"turn": turn.key.workflow_id, "step": turn.step})
            return End(Outcome.FAILED, endings.something_broke(turn.key.workflow_id))

    async def _again(self, turn: Turn, error: TransientError, attempts: int) -> Move:
        """Wait and repeat the step; when the tries run out, end (a settling turn never gives up)."""
        if attempts >= MOST_ATTEMPTS and turn.step is not Step.SETTLE:
            return End(Outcome.FAILED, endings.gave_up(turn.step, str(error)))
        pause = error.retry_after if error.retry_after is not None else min(0.25 * 2**attempts, LONGEST_PAUSE_SECONDS)
        log.warning("step will be repeated", extra={"turn": turn.key.workflow_id, "step": turn.step, "pause": pause})
        await self._services.signals.wait(turn.key, pause)
        if isinstance(error, MirrorLost):
            with contextlib.suppress(BotError):  # the step itself will say what is wrong
                await restore_mirror(self._services, turn)
        return To(turn.step)

    async def _apply(self, turn: Turn, move: Move) -> None:
        store = self._services.store
        if isinstance(move, To):
            if move.step is not turn.step or move.columns:
                await sessions.advance(store, turn.key, move.step, move.found, **move.columns)
        elif turn.step is Step.SETTLE:
            # Settling itself is what failed; the turn must end all the same.
            await sessions.finish(store, turn.key, move.outcome, move.detail)
            self._services.board.touch(turn.key, final=True)
        else:
            await sessions.advance(store, turn.key, Step.SETTLE, move.found, **move.columns)
