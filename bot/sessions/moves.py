"""A step's answer: move to another step, or end. Also judges how a run ended, and keeps work beside it going."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bot import funds
from bot.errors import BotError
from bot.kinds.shape import TurnPart
from bot.live.state import REFUSED_STATUSES, LiveState
from bot.models import Outcome, Step, TurnKey
from bot.sessions.services import Services
from bot.store import gateway, sessions, spend
from bot.store.base import Store
from bot.store.sessions import StepResult, Turn
from bot.words import endings
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment, RunState, RunStatus

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class To:
    """Go on to a step, with the columns of the turn that this one found out."""

    step: Step
    columns: dict[str, Any] = field(default_factory=dict)
    ending: tuple[Outcome, str | None] | None = None
    """The final outcome, if it is clear while there is still work to bring home."""
    note: str | None = None
    """A line of ours among the agent's."""
    parts: tuple[TurnPart, ...] = ()
    """Parts of the turn that this step found out."""

    @property
    def result(self) -> StepResult:
        return StepResult(self.ending, parts=self.parts, note=self.note)


@dataclass(frozen=True)
class End:
    """Nothing further to bring home: settle with this outcome."""

    outcome: Outcome
    detail: str
    columns: dict[str, Any] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)
    """Columns of the session, stored in the same transaction, so that a repetition never finds half of them."""
    parts: tuple[TurnPart, ...] = ()

    @property
    def result(self) -> StepResult:
        return StepResult((self.outcome, self.detail), self.session, self.parts)


Move = To | End


def with_clean_words(move: Move, clean: Callable[[str], str]) -> Move:
    """Clean the words that will be stored: those of an error may hold anything."""
    if isinstance(move, End):
        return replace(move, detail=clean(move.detail))
    if move.ending is None or move.ending[1] is None:
        return move
    return replace(move, ending=(move.ending[0], clean(move.ending[1])))


_SAVED_BY = {Step.WORK: Step.COLLECT, Step.COLLECT: Step.COLLECT, Step.VERIFY: Step.PUBLISH, Step.PUBLISH: Step.PUBLISH}
"""The next step after a turn was ended in one. Before `work` there is nothing to save."""


def is_to_stop(turn: Turn) -> bool:
    """Decide whether a stop still comes in time: no outcome is known and no push has begun.

    A push whose answer was lost may have arrived; only going on with it finds that out."""
    return bool(turn.stop_requested) and turn.outcome is None and turn.push_began is None


def stopped(turn: Turn) -> Move:
    assert turn.stop_requested is not None
    words = endings.stopped_by(turn.stop_requested)
    if turn.step not in _SAVED_BY:
        return End(Outcome.STOPPED, words)
    return To(_SAVED_BY[turn.step], ending=(Outcome.STOPPED, words))


async def failed(services: Services, turn: Turn, outcome: Outcome, words: str) -> Move:
    """Go on from a hopeless step to the next one that saves something. A finished push stays the outcome."""
    if turn.step in (Step.WORK, Step.VERIFY):
        return To(_SAVED_BY[turn.step], ending=(outcome, words))
    now = await sessions.turn(services.store, turn.key)
    if turn.step is Step.PUBLISH and now.commit_sha is not None and now.outcome is None:
        branch = now.branch or (await sessions.session(services.store, turn.key.session)).branch
        return End(Outcome.PUSHED, endings.pull_not_opened(branch or "", words))
    return End(outcome, words)


KILLED_CODES = (-9, 137, 143)
NO_CREDIT = "Credit balance is too low"
"""The agent's client prints this both at our limits and when the provider has no credit left for us."""


class RunTerms(Protocol):
    """The facts by which `judge` decides; a stored turn has them, and so has a run without a store."""

    @property
    def stop_requested(self) -> str | None: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def budget_usd(self) -> float: ...


@dataclass(frozen=True)
class RunVerdict:
    """Without an `outcome`, the agent finished by itself, and later steps decide."""

    outcome: Outcome | None
    detail: str | None = None
    error: str | None = None


def judge(terms: RunTerms, status: RunStatus, state: LiveState, *, exhausted: bool) -> RunVerdict:
    """Judge causes before their effects: a stop explains a kill, never the reverse."""
    if terms.stop_requested:
        return RunVerdict(Outcome.STOPPED, endings.stopped_by(terms.stop_requested))
    if status.timed_out:
        return RunVerdict(Outcome.TIMED_OUT, endings.timed_out(terms.timeout_seconds))
    if state.ended is not None and state.ended.ok:
        return RunVerdict(None)
    if exhausted or (state.ended is not None and state.ended.reason == "budget_exhausted"):
        return RunVerdict(Outcome.OVER_BUDGET, endings.over_budget(terms.budget_usd), funds.BUDGET)
    return _unfinished(status, state)


def has_no_credit(state: LiveState) -> bool:
    return state.ended is not None and not state.ended.ok and state.ended.text.startswith(NO_CREDIT)


def _unfinished(status: RunStatus, state: LiveState) -> RunVerdict:
    refused = state.refused_status or (state.ended.api_status if state.ended else None)
    if refused in REFUSED_STATUSES:
        return RunVerdict(Outcome.FAILED, endings.provider_refused(), f"provider_{refused}")
    if has_no_credit(state):
        return RunVerdict(Outcome.FAILED, endings.provider_out_of_credit(), "out_of_credit")
    if state.ended is not None:
        words = endings.agent_failed(state.ended.reason, state.ended.text)
        return RunVerdict(Outcome.FAILED, words, state.ended.reason)
    if status.state is RunState.LOST or status.exit_code in KILLED_CODES:
        return RunVerdict(Outcome.KILLED, endings.agent_killed(), "killed")
    return RunVerdict(Outcome.FAILED, endings.agent_left_no_result(status.exit_code), "no_result")


PROVIDERS = ("provider_401", "provider_403")
ANY_ERROR = "api_error"
OURS = ("field", "storm")
"""Reasons of the gateway that end a run, whatever happened to its other requests."""


async def blame_gateway_or_provider(store: Store, key: TurnKey, verdict: RunVerdict) -> RunVerdict:
    """A request that the gateway refused has reached no provider, and has no row of spending."""
    if verdict.error not in (*PROVIDERS, ANY_ERROR):
        return verdict
    reason = await gateway.last_refusal(store, key)
    if reason in endings.PROVIDER_TROUBLES and verdict.error in PROVIDERS:
        return RunVerdict(Outcome.FAILED, endings.provider_refused(reason), verdict.error)
    if reason not in OURS and (verdict.error == ANY_ERROR or await spend.was_refused(store, key)):
        return verdict
    if reason is None and verdict.error == "provider_403":
        return verdict
    ended = reason in (None, "ended")
    words = endings.token_ended() if ended else endings.gateway_refused(str(reason))
    return RunVerdict(Outcome.FAILED, words, "token_ended" if ended else f"gateway_{reason}")


AGAIN_SECONDS = 0.5
DISK_LOOK_SECONDS = 1.0
STOP_GRACE_SECONDS = 3.0
SPARE_BYTES = 4 << 30
SPARE_SHARE = 0.1
"""The smaller of the two must stay free on the host's disk."""
SPARE_FILES = 200_000
"""The same for the number of files that it can still hold."""
SMALL_BYTES = 1 << 30
SMALL_FILES = 50_000
"""An environment that takes less is not the one that fills it."""


class DiskFilled(SandboxError):
    """Forgehand ended a command because the disk was running full."""


BesideRun = Callable[[Services, Turn, ExecutionEnvironment], Awaitable[None]]


async def retry_until_done(task: BesideRun, services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    while True:
        try:
            await task(services, turn, environment)
        except EnvironmentGone:
            return  # the follower of the run meets it too, and reports it
        except (BotError, SandboxError) as error:
            log.warning("will be tried again", extra={"turn": turn.key.workflow_id, "error": str(error)})
        except Exception:  # a bug here must not leave a run without its limits
            log.exception("bug beside a run", extra={"turn": turn.key.workflow_id})
        else:
            return
        await asyncio.sleep(AGAIN_SECONDS)


async def stop_agent_if_disk_fills(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Stop it while the store can still write: local boxes share its disk."""
    if services.settings.e2b is not None:
        return
    while True:
        if await _fills_the_disk(services, environment):
            break
        await asyncio.sleep(DISK_LOOK_SECONDS)
    await sessions.decide(services.store, turn.key, Outcome.KILLED, endings.filled_the_disk())
    await environment.stop(turn.key.n, STOP_GRACE_SECONDS)


async def stop_command_if_disk_fills(
    services: Services, environment: ExecutionEnvironment, command: str, work: Coroutine[Any, Any, T]
) -> T:
    """Run `work`; raises DiskFilled after ending the command with everything that it started."""
    doing = asyncio.ensure_future(work)
    try:
        while not doing.done():
            await asyncio.wait({doing}, timeout=DISK_LOOK_SECONDS)
            if doing.done() or services.settings.e2b is not None:
                continue
            with contextlib.suppress(SandboxError):  # the command meets it too, and reports it
                if await _fills_the_disk(services, environment):
                    break
        else:
            return doing.result()
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
    await environment.primitives.still()
    raise DiskFilled(endings.command_filled_the_disk(command))


async def _fills_the_disk(services: Services, environment: ExecutionEnvironment) -> bool:
    """Files that cannot be counted are too many."""
    places = (services.settings.data_dir, *services.disks)
    short_of_bytes, short_of_files = await asyncio.to_thread(_short, places)
    if not (short_of_bytes or short_of_files):
        return False
    used = await environment.primitives.metrics()
    large = (short_of_bytes and used.disk_bytes > SMALL_BYTES) or (short_of_files and used.disk_files > SMALL_FILES)
    return large or not used.disk_counted


def _short(places: Sequence[Path]) -> tuple[bool, bool]:
    """Return whether bytes run out there, and whether files do (if the disk counts them)."""
    found = [os.statvfs(place) for place in places]
    in_bytes = [(one.f_bavail * one.f_frsize, one.f_blocks * one.f_frsize) for one in found]
    in_files = [(one.f_favail, one.f_files) for one in found if one.f_files]
    return (
        any(free < min(SPARE_BYTES, whole * SPARE_SHARE) for free, whole in in_bytes),
        any(free < min(SPARE_FILES, whole * SPARE_SHARE) for free, whole in in_files),
    )
