"""Takes a turn from its stored step to its end. A kill between any two lines does no harm: call it again.

**Invariant:** a step is find-or-create, and one transaction stores its result and the next step. Only this module
moves `turns.step`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

from bot import logs
from bot.errors import BotError, CommandError, GitHubRefused, TransientError, UserError
from bot.git.errors import MirrorLost
from bot.live.sections import stop_said_from
from bot.models import Outcome, Step, TurnKey, TurnState
from bot.sessions import environments, moves, setbacks
from bot.sessions.moves import End, Move, To
from bot.sessions.services import Services
from bot.sessions.starting_point import follow_rename, restore_mirror
from bot.sessions.steps import collect, furnish, prepare, publish, settle, verify, work
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings
from sandbox.errors import EnvironmentBusy, KeyRefused, SandboxError

log = logging.getLogger(__name__)

AT_ONCE_SECONDS = 0.05
"""The comment is written this long after it may say that the turn was stopped."""
MOST_TRIES = 8
MOST_TRIES_WITH_WORK = 12
"""Ten minutes: after the agent has worked, there is something to lose."""
LONGEST_PAUSE_SECONDS = 120.0
STORE_PAUSE_SECONDS = 1.0
LOOK_SECONDS = 2.0
INTERRUPTIBLE = (Step.PREPARE, Step.FURNISH, Step.VERIFY)
"""Steps that a stop cuts short: they may take long, and repeating or skipping them does no harm."""
SAVING = (Step.COLLECT, Step.PUBLISH, Step.SETTLE)
"""Steps that save the work and go on after a stop; meanwhile the comment confirms the stop."""

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
    """Advances turns, and turns every error of a step into an outcome; nothing else does either."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def advance(self, key: TurnKey) -> None:
        failures = 0
        with logs.about(session=key.session, turn=key.workflow_id):
            while True:
                try:
                    turn = await sessions.turn(self._services.store, key)
                    if turn.state is TurnState.DONE:
                        log.info("a turn has ended", extra={"outcome": turn.outcome})
                        break
                    if turn.replica != self._services.store.replica:
                        await sessions.update_turn(self._services.store, key, replica=self._services.store.replica)
                    failures = await self._try_step(turn, failures)
                except TransientError as error:  # from the store itself, which never ends a turn
                    log.warning("the store has to be asked again", extra={"turn": key.workflow_id, "error": str(error)})
                    await asyncio.sleep(STORE_PAUSE_SECONDS)
        self._services.signals.forget(key)
        self._services.board.leave(key)

    async def _try_step(self, turn: Turn, failures: int) -> int:
        """Try the step once; after a failure that may pass, wait. Return the failures since the last success."""
        self._services.board.touch(turn.key)
        began = time.monotonic()
        try:
            move, failures = await self._run_step(turn), 0
            log.info("a step is done", extra={"step": turn.step, "seconds": round(time.monotonic() - began, 2)})
        except TransientError as error:
            failures += 1
            move = await self._try_later(turn, error, failures)
        await self._apply(turn, move)
        return failures

    async def _run_step(self, turn: Turn) -> Move:
        try:
            if turn.step not in (Step.WORK, Step.SETTLE) and moves.is_to_stop(turn):
                return moves.stopped(turn)
            if turn.step in INTERRUPTIBLE:
                return await self._interruptible(turn)
            if turn.step in SAVING:
                return await self._saving(turn)
            return await STEPS[turn.step](self._services, turn)
        except (TransientError, asyncio.CancelledError):
            raise
        except UserError as error:
            kind = endings.IN_THE_COMMAND if isinstance(error, CommandError) else endings.OUTSIDE
            return End(Outcome.FAILED, str(error), {"agent_error": kind})
        except EnvironmentBusy as error:
            raise TransientError(str(error)) from error
        except (BotError, SandboxError) as error:
            return await self._failed(turn, error)
        except Exception:  # a bug: the traceback goes to the log, people get a reference
            log.exception("bug in a step", extra={"turn": turn.key.workflow_id, "step": turn.step})
            words = endings.something_broke(turn.key.workflow_id)
            return await moves.failed(self._services, turn, Outcome.FAILED, words)

    async def _failed(self, turn: Turn, error: BotError | SandboxError) -> Move:
        if isinstance(error, GitHubRefused):
            await follow_rename(self._services, turn, error)
        log.error("turn failed", extra={"turn": turn.key.workflow_id, "step": turn.step, "error": str(error)})
        outcome, words = Outcome.FAILED, endings.step_failed(turn.step, str(error))
        if isinstance(error, KeyRefused):
            words = endings.sandboxes_refused()
        elif isinstance(error, SandboxError) and await environments.is_gone(self._services, turn, error):
            if turn.step in (Step.WORK, Step.COLLECT):
                return await setbacks.environment_lost(self._services, turn)
            outcome, words = Outcome.KILLED, endings.environment_lost()
        return await moves.failed(self._services, turn, outcome, words)

    async def _interruptible(self, turn: Turn) -> Move:
        """Run the step, unless somebody asks to stop before it is done."""
        working = asyncio.ensure_future(STEPS[turn.step](self._services, turn))
        stop = asyncio.ensure_future(self._once(turn.key, moves.is_to_stop))
        try:
            await asyncio.wait({working, stop}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            return moves.stopped(stop.result())
        finally:
            for task in (working, stop):
                task.cancel()
            await asyncio.gather(working, stop, return_exceptions=True)

    async def _saving(self, turn: Turn) -> Move:
        saying = asyncio.ensure_future(self._confirm_stop(turn.key))
        try:
            return await STEPS[turn.step](self._services, turn)
        finally:
            saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)

    async def _confirm_stop(self, key: TurnKey) -> None:
        services = self._services
        turn = await self._once(key, lambda now: now.stop_requested is not None and now.stop_at is not None)
        words = endings.stopped_by(str(turn.stop_requested))
        if await sessions.decide_stopped(services.store, key, words) is Outcome.STOPPED:
            await asyncio.sleep(max(0.0, stop_said_from(turn) - services.clock()) + AT_ONCE_SECONDS)
            services.board.touch(key, pressing=True)

    async def _once(self, key: TurnKey, is_met: Callable[[Turn], bool]) -> Turn:
        """Wait until the stored turn meets the condition."""
        while True:
            with contextlib.suppress(TransientError):
                if is_met(turn := await sessions.turn(self._services.store, key)):
                    return turn
            await self._services.signals.wait(key, LOOK_SECONDS)

    async def _try_later(self, turn: Turn, error: TransientError, failures: int) -> Move:
        """Wait before the next try, or give up after too many. A settling turn never gives up."""
        most = MOST_TRIES if turn.step in (Step.PREPARE, Step.FURNISH) else MOST_TRIES_WITH_WORK
        if failures >= most and turn.step is not Step.SETTLE:
            if turn.step in (Step.WORK, Step.COLLECT) and isinstance(error.__cause__, EnvironmentBusy):
                return await setbacks.out_of_reach(self._services, turn)
            words = endings.gave_up(turn.step, str(error))
            return await moves.failed(self._services, turn, Outcome.FAILED, words)
        pause = error.retry_after if error.retry_after is not None else min(0.25 * 2**failures, LONGEST_PAUSE_SECONDS)
        about = {"turn": turn.key.workflow_id, "step": turn.step, "pause": pause, "error": str(error)}
        log.warning("step will be repeated", extra=about)
        await self._services.signals.wait(turn.key, pause)
        if isinstance(error, MirrorLost):
            with contextlib.suppress(BotError):  # the step itself will name the problem
                await restore_mirror(self._services, turn)
        return To(turn.step)

    async def _apply(self, turn: Turn, move: Move) -> None:
        store, move = self._services.store, moves.with_clean_words(move, self._services.redactor.redact)
        if isinstance(move, To):
            if move.step is not turn.step or move.columns or move.parts or move.ending:
                await sessions.advance(store, turn.key, move.step, move.result, **move.columns)
        elif turn.step is Step.SETTLE:
            # Settling itself has failed; the turn must still end.
            await sessions.finish(store, turn.key, move.outcome, move.detail)
            self._services.board.touch(turn.key, final=True)
        else:
            await sessions.advance(store, turn.key, Step.SETTLE, move.result, **move.columns)
