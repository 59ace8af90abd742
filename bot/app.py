"""The composition root: puts the service together, starts it, and ends it so that the next process can continue."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount

from bot import events, logs, vault
from bot.engine.durable import DurableEngine
from bot.errors import BotError, SettingsError
from bot.git.cache import RepositoryCache
from bot.github.client import GitHubApp
from bot.handlers import changes
from bot.handlers.ci_rounds import CheckWatches
from bot.handlers.cli_requests import CliRequests
from bot.handlers.desk import Desk
from bot.handlers.intake import Intake
from bot.keyring import KeyRing
from bot.live.board import LiveBoard
from bot.live.check_runs import CheckBoard
from bot.live.edit_quota import EditQuotas
from bot.live.page import Page, PageSettings
from bot.live.state import Folds
from bot.loops import background
from bot.models import TurnKey
from bot.outbound import Outbound, Redactor
from bot.sessions.admission import Admission, QueuePlaces
from bot.sessions.environments import meter
from bot.sessions.environments.meter import MachineWitness
from bot.sessions.environments.warm_start import Warming
from bot.sessions.flow import Flow
from bot.sessions.money.budget import Prices
from bot.sessions.money.spending_limits import Ceilings
from bot.sessions.retention import Retention
from bot.sessions.rights import SessionEgress
from bot.sessions.services import Services, TurnSignals
from bot.settings import Address, Settings
from bot.store import spend
from bot.store.base import Clock, Store
from bot.store.data_directory import DataDirLock
from bot.store.environments import EnvironmentMarks
from bot.store.files import KeptFiles
from bot.vault import NAMES, Vault
from bot.web.credentials import NONE, from_vault
from bot.web.delivery_log import DeliveryLog, LogReading
from bot.web.gateway import Credentials, Dialect, Gateway
from bot.web.gateway.clients import closed
from bot.web.health import Health, Parts
from bot.web.overload import Sturdy
from bot.web.pages.site import Site
from bot.web.schema import schema_routes
from bot.web.server import Server, tcp_socket
from bot.web.webhooks import webhook_routes
from sandbox.agents.claude import Claude
from sandbox.choice import EnvironmentChoice, choose
from sandbox.e2b.settings import E2BSettings
from sandbox.egress import EgressProxy

log = logging.getLogger(__name__)

SETTLED_SECONDS = (0.0, 2.0, 30.0)
"""Times after the start, because some libraries are loaded on first use."""
UNMETERED = (
    "FORGEHAND_E2B_UNMETERED=1: AGENTS REACH THE MODEL PAST THE GATEWAY. NO BUDGET OF A TURN, PERSON, REPOSITORY OR "
    "INSTALLATION IS ENFORCED, SPENDING IS NOT COUNTED, AND WHATEVER RUNS IN A SANDBOX MAY USE YOUR KEY. "
    "Set a limit at your provider."
)

OpenStore = Callable[[Address], Awaitable[Store]]


@dataclass(frozen=True)
class Running:
    """The service as its caller sees it."""

    url: str
    isolation: str
    """The kind of environments, in words for the operator."""


@asynccontextmanager
async def running(
    settings: Settings, open_store: OpenStore = Store.open, clock: Clock = time.time
) -> AsyncIterator[Running]:
    """Serve until the block ends; running sessions stay as they are for the next process."""
    redactor = Redactor(secret.reveal() for secret in settings.secrets())
    logs.configure(redactor.redact)
    async with AsyncExitStack() as stack:
        stack.enter_context(DataDirLock(settings.data_dir))
        database, ring = settings.database, KeyRing(settings.secret_keys)
        await asyncio.to_thread(vault.verify, database, ring)
        store = await _opened(stack, open_store, database)
        began, health = store.now(), Health(store, settings.metrics_token, is_reached=settings.is_reached)
        logs.configure(redactor.redact, on_record=health.metrics.count)
        await stack.enter_async_context(background(health.metrics.lateness.run()))
        kept, site = Vault(store, ring, redactor.register), Site()
        credentials = await _credentials(settings, kept)
        await spend.abandon_open(store)
        gateway = _gateway(store, credentials, settings, clock)
        stack.push_async_callback(gateway.close)
        health.metrics.refused, health.metrics.left_out = gateway.refusals, gateway.left_out
        wakes = asyncio.Event()
        doors = [*health.routes(), _gateway_door(settings.e2b, gateway), *schema_routes(), *site.routes()]
        server = await stack.enter_async_context(_edge(settings, store, doors, wakes.set, health.metrics.webhook))
        choice = await _chosen(settings, store, await _reachable(stack, settings.e2b, gateway))
        stack.push_async_callback(choice.provider.close)
        if settings.e2b is None:
            await _open_sockets(stack, settings, gateway, choice)
        services = await _assemble(stack, settings, store, redactor, choice, clock)
        desk, parts = await _work(stack, services, wakes, site.doubt, began)
        health.ready(parts, choice.provider)
        await stack.enter_async_context(site.opened(desk, kept, services.agent))
        yield Running(server.url, choice.words)


async def _opened(stack: AsyncExitStack, open_store: OpenStore, database: Address) -> Store:
    store = await open_store(database)
    stack.push_async_callback(store.close)
    await stack.enter_async_context(store.claimed())
    return store


def spare_the_collector() -> None:
    """Keep the garbage collector from searching all that the start has made, in a process that only serves. Each such
    search blocks the loop for up to a tenth of a second."""
    loop = asyncio.get_running_loop()
    for seconds in SETTLED_SECONDS:
        loop.call_later(seconds, gc.freeze)


async def _credentials(settings: Settings, stored: Vault) -> Credentials:
    """Return the gateway's source of credentials; without any, the service would be useless."""
    await stored.prepare()
    kept = [one for one in await stored.entries() if one.name in NAMES]
    if settings.model.api_key is None and settings.model.oauth_token is None and not kept:
        raise SettingsError(NONE)
    return from_vault(stored, settings.model)


def _edge(
    settings: Settings,
    store: Store,
    doors: list[BaseRoute],
    on_stored: Callable[[], None],
    on_answered: Callable[[int], None],
) -> Server:
    """Open the edge first, so that arriving webhooks are stored while the rest still starts."""
    hooks: list[BaseRoute] = []
    if secrets := settings.github.webhook_secrets:
        handled = events.HANDLED_EVENTS
        hooks = webhook_routes(store, secrets, handled=handled, on_stored=on_stored, on_answered=on_answered)
    doors_and_hooks = Starlette(routes=[*hooks, *doors], middleware=[Middleware(Sturdy)])
    return Server(doors_and_hooks, tcp_socket(settings.host, settings.port))


def _gateway(store: Store, credentials: Credentials, settings: Settings, clock: Clock) -> Gateway:
    table, ceilings = Prices(settings.model.prices), Ceilings.of(settings.limits)
    dialect = Dialect(settings.model.admitted)
    return Gateway(store, credentials, settings.model.upstream, clock, table=table, ceilings=ceilings, dialect=dialect)


def _gateway_door(e2b: E2BSettings | None, gateway: Gateway) -> Mount:
    """Open the gateway only to sandboxes that reach it by our public address."""
    from_outside = e2b is not None and e2b.gateway_url is not None and e2b.unmetered is None
    return Mount("/gateway", app=gateway if from_outside else closed)


async def _reachable(stack: AsyncExitStack, e2b: E2BSettings | None, gateway: Gateway) -> E2BSettings | None:
    """Open a local door to the gateway for cloud sandboxes that we connect to by a tunnel."""
    if e2b is not None and e2b.unmetered is not None:
        log.warning(UNMETERED)
    if e2b is None or not e2b.by_tunnel(None):
        return e2b
    listener = tcp_socket("127.0.0.1", 0)
    await stack.enter_async_context(Server(gateway, listener))
    return replace(e2b, gateway_address=listener.getsockname()[:2])


async def _chosen(settings: Settings, store: Store, e2b: E2BSettings | None) -> EnvironmentChoice:
    rooms, witness = settings.data_dir / "environments", MachineWitness(store)
    marks = EnvironmentMarks(store)
    choice = await choose(rooms, e2b=e2b, witness=witness, marks=marks, newest_in=settings.newest_agent)
    if choice.not_newest:
        log.warning("Claude Code could not be updated", extra={"error": choice.not_newest})
    return choice


async def _open_sockets(stack: AsyncExitStack, settings: Settings, gateway: Gateway, choice: EnvironmentChoice) -> None:
    """Open the two ways out of a local environment: to the gateway, and to the hosts that the operator allows."""
    await stack.enter_async_context(Server(gateway, choice.sockets / "gateway.sock"))
    egress = EgressProxy(
        choice.sockets / "egress.sock", lambda host: host.lower() in settings.egress, admits=choice.admits
    )
    await egress.start()
    stack.push_async_callback(egress.close)


async def _assemble(
    stack: AsyncExitStack, settings: Settings, store: Store, redactor: Redactor, choice: EnvironmentChoice, clock: Clock
) -> Services:
    github = GitHubApp(settings.github, on_secret=redactor.register, on_retired=redactor.forget)
    stack.push_async_callback(github.close)
    quotas = EditQuotas(store, clock)
    outbound = Outbound(github, redactor, on_made=quotas.note)
    folds = Folds(store, Claude())
    shown = PageSettings(settings.command, settings.limits, settings.public_url or "")
    places = QueuePlaces(store, settings.limits, clock)
    page = Page(store, folds, shown, find_place=places.of, clock=clock)
    board = LiveBoard(store, outbound, folds, page, quotas, clock)
    stack.push_async_callback(board.stop)
    session_egress = SessionEgress(choice.ways, settings.egress, choice.admits)
    stack.push_async_callback(session_egress.close_all)
    cache = RepositoryCache(settings.data_dir / "repositories")
    await cache.sweep()
    return Services(
        settings=settings,
        store=store,
        github=github,
        outbound=outbound,
        redactor=redactor,
        cache=cache,
        environments=choice.provider,
        snapshots=choice.snapshots,
        agent=Claude(),
        board=board,
        files=KeptFiles.of(store, settings.data_dir, settings.database),
        signals=TurnSignals(),
        clock=clock,
        egress=session_egress,
        disks=() if settings.e2b is not None else (choice.sockets,),
    )


async def _work(
    stack: AsyncExitStack, services: Services, wakes: asyncio.Event, doubt: Callable[[int | None], None], began: float
) -> tuple[Desk, Parts]:
    """Start the loops. They end in reverse: nothing new may start while running turns are drained."""
    flow = Flow(services)
    admission: Admission | None = None

    async def advance(key: TurnKey) -> None:
        await flow.advance(key)
        assert admission is not None
        admission.loop.wake()

    engine = DurableEngine(services.settings.data_dir / "engine.db", advance)
    limits, sweeps = services.settings.limits, meter.sweeps(services)
    admission = Admission(services.store, engine, services.board, limits)
    await engine.start()
    stack.push_async_callback(engine.drain)
    desk = Desk(
        settings=services.settings,
        store=services.store,
        github=services.github,
        outbound=services.outbound,
        board=services.board,
        cache=services.cache,
        files=services.files,
        admit=admission.loop.wake,
        poke=services.signals.poke,
        sweep=sweeps.wake,
        doubt=doubt,
        clock=services.clock,
    )
    await services.board.say_unsaid()
    await stack.enter_async_context(background(_warm_up(desk)))
    reading = LogReading(services.settings.github.app_id, wakes.set, services.settings.poll_seconds, since=began)
    delivery_log = DeliveryLog(services.github, services.store, reading)
    loops = [admission.loop, sweeps, delivery_log.loop, Intake(desk, wakes).loop, CliRequests(desk).loop]
    loops += [CheckWatches(desk).loop, Retention(services).loop, CheckBoard(services.store, services.outbound).loop]
    if services.snapshots is not None:
        loops.append(Warming(services, services.snapshots).loop)
    for loop in loops:
        await stack.enter_async_context(background(loop.run()))
    settings, named = services.settings, {loop.name: loop for loop in loops}
    return desk, Parts(services.store, settings.data_dir, services.github, named, settings.poll_seconds)


async def _warm_up(desk: Desk) -> None:
    """Ask GitHub who we are, so that the first comment need not wait for imports and a request."""
    try:
        await desk.github.identity()
        await changes.look(desk)
    except BotError as error:
        log.warning("GitHub could not be asked who we are; it will be asked again", extra={"error": str(error)})
