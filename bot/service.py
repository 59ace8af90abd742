"""The loops of the service: those that every replica runs, and those of the one that leads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Self

from bot.dashboard.board import DashboardBoard
from bot.dashboard.picture import Gathering
from bot.engine.durable import ONLY, DurableEngine
from bot.errors import BotError
from bot.handlers import changes
from bot.handlers.ci_rounds import CheckWatches
from bot.handlers.cli_requests import CliRequests
from bot.handlers.desk import Desk
from bot.handlers.intake import Intake
from bot.live.check_runs import CheckBoard
from bot.loops import Loop, LoopName, background
from bot.models import TurnKey
from bot.notices import Notices, Topic
from bot.outside.posting import Links
from bot.outside.sending import BulletinSender
from bot.replicas import Duties, Replicas
from bot.sessions.admission import Admission
from bot.sessions.environments import meter
from bot.sessions.environments.warm_start import Warming
from bot.sessions.flow import Flow
from bot.sessions.retention import Copies, Retention
from bot.sessions.services import Services
from bot.store import environments, spend
from bot.store import replicas as rows
from bot.store.base import Store
from bot.store.replicas import REPLACED, Joining
from bot.vault import Vault
from bot.web.delivery_log import DeliveryLog, LogReading
from bot.web.health import Parts

log = logging.getLogger(__name__)

GIVEN_UP = 75
"""The exit code of a replica that the others have given up; start it again."""
CLAIMS_SECONDS = 15.0
UNSAID_SECONDS = 86_400.0
"""A notice that was missed asks for it at once; this is for comments that GitHub has refused."""


@dataclass(frozen=True)
class Colleagues:
    """The other replicas, if there can be any."""

    home: str
    """Our data directory, by its own name."""
    replicas: Replicas | None

    @classmethod
    async def joined(
        cls, stack: AsyncExitStack, store: Store, notices: Notices, home: str, patience_seconds: float
    ) -> Self:
        """Join them, and show from now on that we live."""
        loop = asyncio.get_running_loop()

        def hear(told: list[str] | None) -> None:
            loop.call_soon_threadsafe(notices.heard, told)

        membership = await stack.enter_async_context(store.joined(Joining(home, hear, _give_way)))
        if membership is None:
            return cls(home, None)
        notices.connect(membership.send)
        replicas = Replicas(store, membership, patience_seconds)
        notices.on(Topic.REPLICA, replicas.look)
        await stack.enter_async_context(background(replicas.beats.run()))
        return cls(home, replicas)

    def may_act(self) -> bool:
        return self.replicas is None or self.replicas.is_sure()


def _give_way() -> None:
    """End at once: others do our work by now, and what we still did would be done twice."""
    log.critical(REPLACED)
    os._exit(GIVEN_UP)


class ServiceLoops:
    """The loops. They end in reverse: nothing new may start while running turns are drained."""

    def __init__(
        self, services: Services, notices: Notices, vault: Vault, colleagues: Colleagues, began: float
    ) -> None:
        self.services = services
        self.desk = Desk(
            settings=services.settings,
            store=services.store,
            github=services.github,
            outbound=services.outbound,
            board=services.board,
            cache=services.cache,
            files=services.files,
            notices=notices,
            clock=services.clock,
        )
        self._notices = notices
        self._replicas = colleagues.replicas
        self._vault = vault
        self._may_act = colleagues.may_act
        self._began = began
        self._flow = Flow(services)
        self._loops: dict[LoopName, Loop] = {}
        if self._replicas is not None:
            self._loops.update({one.name: one for one in (self._replicas.beats, self._replicas.takeovers)})
        self._leading = AsyncExitStack()
        self._unsaid = Loop("unsaid", services.board.say_unsaid, UNSAID_SECONDS)
        self._engine = self._made_engine()

    def _made_engine(self) -> DurableEngine:
        settings, store = self.services.settings, self.services.store
        if not store.is_remote:
            return DurableEngine(settings.data_dir / "engine.db", self._advance)
        room, executor = settings.limits.replica_sessions, store.replica or ONLY
        on_queued = partial(self._notices.tell, Topic.ADMITTED)
        return DurableEngine(settings.database, self._advance, executor=executor, room=room, on_queued=on_queued)

    async def _advance(self, key: TurnKey) -> None:
        await self._flow.advance(key)
        self._notices.tell(Topic.QUEUE)

    async def begin(self, stack: AsyncExitStack) -> None:
        services = self.services
        self._notices.on(Topic.ADMITTED, self._engine.look)
        self._notices.on_missed(self._engine.look)
        self._loops[self._engine.queue.name] = self._engine.queue
        await self._engine.start()
        stack.push_async_callback(self._engine.drain)
        self._notices.on(Topic.TURN, lambda turn: services.signals.poke(TurnKey.parse(turn)))
        self._notices.on_missed(services.signals.poke_all)
        await stack.enter_async_context(background(_warm_up(self.desk)))
        sweeps = meter.sweeps(services)
        self._notices.on(Topic.ENVIRONMENT, sweeps.wake)
        if self._replicas is not None:
            await self._start(stack, [Copies(services).loop, Loop("claims", self._reclaim, CLAIMS_SECONDS)])
        if services.settings.e2b is None:
            await self._start(stack, [sweeps])
        else:
            self._loops[sweeps.name] = sweeps
        stack.push_async_callback(self._step_down)
        if self._replicas is None:
            await self._lead()
        else:
            await stack.enter_async_context(self._replicas.on_duty(Duties(self._lead, self._adopt)))

    async def _start(self, stack: AsyncExitStack, loops: list[Loop]) -> None:
        for loop in loops:
            self._loops[loop.name] = loop
            await stack.enter_async_context(background(loop.run()))

    async def _lead(self) -> None:
        """Begin what only one replica does."""
        services, desk, notices = self.services, self.desk, self._notices
        await services.board.say_unsaid()  # before anything new
        notices.lead()
        admission = Admission(services.store, self._engine, services.board, services.settings.limits)
        notices.on(Topic.QUEUE, admission.loop.wake)
        intake = Intake(desk)
        notices.on(Topic.DELIVERY, intake.loop.wake)
        settings = services.settings
        reading = LogReading(settings.github.app_id, intake.loop.wake, settings.poll_seconds, since=self._began)
        loops = [self._unsaid, admission.loop, DeliveryLog(services.github, services.store, reading).loop, intake.loop]
        loops += [CliRequests(desk).loop, CheckWatches(desk).loop, Retention(services).loop]
        loops.append(CheckBoard(services.store, services.outbound).loop)
        shown = Gathering(services.store, settings.limits, settings.command, services.clock)
        quotas = services.board.quotas
        loops.append(self._bulletins())
        loops.append(DashboardBoard(shown, services.github, services.outbound, quotas, notices).loop)
        if "strays" in self._loops and settings.e2b is not None:
            loops.append(self._loops["strays"])
        if services.snapshots is not None:
            loops.append(Warming(services, services.snapshots).loop)
        for loop in loops:
            notices.on_missed(loop.wake)
        await self._start(self._leading, loops)

    def _bulletins(self) -> Loop:
        services, settings = self.services, self.services.settings
        links = Links(settings.github.url, settings.pages_url)
        sender = BulletinSender(services.store, self._vault, settings.inside, links, self._may_act)
        self._leading.push_async_callback(sender.close)
        self._notices.on(Topic.QUEUE, sender.loop.wake)
        return sender.loop

    async def _step_down(self) -> None:
        """Hand over at once: what ends from here on is for the next leader."""
        await self._leading.aclose()
        if self._replicas is not None:
            self._notices.follow()
            with contextlib.suppress(BotError):  # the end of our row says it, too
                await self._replicas.step_down()
            self._notices.tell(Topic.REPLICA)

    async def _adopt(self) -> None:
        """Take over what dead replicas left. Their rows are gone, so they write nothing more."""
        store = self.services.store
        await spend.abandon_open(store)
        await environments.forget_lost(store, self.services.here)

        async def living() -> frozenset[str]:
            return frozenset(one.id for one in await rows.living(store))

        if count := await self._engine.adopt(living):
            log.warning("turns of dead replicas are taken over", extra={"replicas": count})
            self._unsaid.wake()  # one may have ended a turn, and died before it told us

    async def _reclaim(self) -> None:
        if count := await self._engine.reclaim():
            log.warning("turns that were claimed and not begun are queued again", extra={"count": count})

    def parts(self) -> Parts:
        services, settings = self.services, self.services.settings
        return Parts(
            store=services.store,
            files=services.files,
            data_dir=settings.data_dir,
            github=services.github,
            loops=self._loops,
            poll_seconds=settings.poll_seconds,
            turns_here=lambda: self._engine.running,
            replicas=self._replicas,
        )


async def _warm_up(desk: Desk) -> None:
    """Ask GitHub who we are, so that the first comment need not wait for imports and a request."""
    try:
        await desk.github.identity()
        await changes.look(desk)
    except BotError as error:
        log.warning("GitHub could not be asked who we are; it will be asked again", extra={"error": str(error)})
