"""The composition root: puts the service together, starts it, and ends it so that the next process can continue."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from bot import checkup, events, logs, vault
from bot.errors import SettingsError
from bot.git.cache import RepositoryCache
from bot.github.client import GitHubApp
from bot.keyring import KeyRing
from bot.live.board import LiveBoard
from bot.live.edit_quota import EditQuotas
from bot.live.page import Page, PageSettings
from bot.live.state import Folds
from bot.loops import background
from bot.notices import Notices, Topic
from bot.outbound import Outbound, Redactor
from bot.service import Colleagues, ServiceLoops
from bot.sessions.admission import QueuePlaces
from bot.sessions.environments.meter import MachineWitness
from bot.sessions.money.budget import Prices
from bot.sessions.money.spending_limits import Ceilings
from bot.sessions.rights import SessionEgress
from bot.sessions.services import Services, TurnSignals
from bot.settings import Address, Settings
from bot.store import cloud, spend
from bot.store.base import Clock, Store
from bot.store.cloud import CloudPlaces
from bot.store.data_directory import DataDirLock
from bot.store.environments import EnvironmentMarks
from bot.store.files import KeptFiles
from bot.store.package_cache import PackageCache
from bot.vault import NAMES, Vault
from bot.vendors.identity import SecretWitness
from bot.web.credentials import NONE, from_vault
from bot.web.gateway import Dialect, Gateway, ModelProvider
from bot.web.gateway.clients import closed
from bot.web.gateway.providers.choice import chosen
from bot.web.health import Health
from bot.web.mcp import PATH as MCP_PATH
from bot.web.metrics import ServiceMetrics
from bot.web.overload import Sturdy
from bot.web.packages import PATH as packages_path
from bot.web.packages import PackageGateway
from bot.web.packages.fetching import PackageFetcher
from bot.web.pages.site import Site, SiteParts
from bot.web.schema import schema_routes
from bot.web.server import Server, tcp_socket
from bot.web.ways_in import WaysIn
from bot.web.webhooks import webhook_routes
from sandbox.agents.claude import Claude
from sandbox.choice import CloudRecords, EnvironmentChoice, choose, instance_of
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
    replica: str | None
    """Its name among the replicas, if there can be any."""


@asynccontextmanager
async def running(
    settings: Settings, open_store: OpenStore = Store.open, clock: Clock = time.time
) -> AsyncIterator[Running]:
    """Serve until the block ends; running sessions stay as they are for the next process."""
    redactor = Redactor(secret.reveal() for secret in settings.secrets())
    logs.configure(redactor.redact)
    async with AsyncExitStack() as stack:
        lock, ring = stack.enter_context(DataDirLock(settings.data_dir)), KeyRing(settings.secret_keys)
        await asyncio.to_thread(vault.verify, settings.database, ring)
        store = await open_store(settings.database)
        stack.push_async_callback(store.close)
        notices = Notices()
        found = await Colleagues.joined(stack, store, notices, lock.home, settings.replica_seconds)
        began, health = store.now(), Health(store, settings.metrics_token, is_reached=settings.is_reached)
        logs.configure(redactor.redact, on_record=health.metrics.count)
        await stack.enter_async_context(background(health.metrics.lateness.run()))
        kept, site = await Vault.opened(store, ring, redactor.register), Site()
        await spend.abandon_open(store)
        model = await _provider(settings, kept, redactor)
        gateway, packages = _gateway(store, model, settings, clock), _packages(store, kept, settings, clock)
        ways_in = _ways_in(stack, health.metrics, gateway, packages, _mcp_door(stack, store, kept, settings))
        doors = [*health.routes(), _gateway_door(settings.e2b, ways_in), *schema_routes(), *site.routes()]
        on_stored, on_answered = partial(notices.tell, Topic.DELIVERY), health.metrics.webhook
        server = await stack.enter_async_context(_edge(settings, store, doors, on_stored, on_answered))
        choice = await _chosen(stack, settings, store, ways_in)
        stack.callback(ways_in.closing)
        services = await _assemble(stack, _Given(settings, store, redactor, notices, found), choice, clock)
        notices.on(Topic.ACCESS, site.doubt)
        work = ServiceLoops(services, notices, kept, found, began)
        await work.begin(stack)
        health.ready(work.parts(), choice.provider)
        await stack.enter_async_context(
            site.opened(
                SiteParts(
                    work.desk,
                    kept,
                    services.agent,
                    services.redactor,
                    parts=work.parts(),
                    examine=partial(checkup.examine, settings),
                )
            )
        )
        yield Running(server.url, choice.words, store.replica)


def spare_the_collector() -> None:
    """Keep the garbage collector from searching all that the start has made, in a process that only serves. Each such
    search blocks the loop for up to a tenth of a second."""
    loop = asyncio.get_running_loop()
    for seconds in SETTLED_SECONDS:
        loop.call_later(seconds, gc.freeze)


async def _provider(settings: Settings, stored: Vault, redactor: Redactor) -> ModelProvider:
    """Return the model's provider; without any credential for it, the service would be useless."""
    kept = [one for one in await stored.entries() if one.name in NAMES]
    model = settings.model
    if model.api_key is None and model.oauth_token is None and model.provider.at is None and not kept:
        raise SettingsError(NONE)
    return chosen(model, from_vault(stored, model), SecretWitness(redactor.register, redactor.forget))


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


def _ways_in(
    stack: AsyncExitStack, metrics: ServiceMetrics, gateway: Gateway, packages: PackageGateway, mcp: ASGIApp
) -> WaysIn:
    """Join what answers environments: the model's gateway, and those for packages and MCP servers."""
    stack.push_async_callback(gateway.close)
    stack.push_async_callback(packages.close)
    metrics.refused, metrics.left_out = gateway.refusals, gateway.left_out
    metrics.packages, metrics.package_bytes = packages.outcomes, packages.bytes
    return WaysIn(gateway, {packages_path: packages, MCP_PATH: mcp}, gateway.closing)


def _gateway(store: Store, provider: ModelProvider, settings: Settings, clock: Clock) -> Gateway:
    table, ceilings = Prices.at(settings.model), Ceilings.of(settings.limits)
    return Gateway(store, provider, clock, table=table, ceilings=ceilings, dialect=Dialect(settings.model.admitted))


def _mcp_door(stack: AsyncExitStack, store: Store, kept: Vault, settings: Settings) -> ASGIApp:
    """Return the door to MCP servers. The first request makes it, because most repositories open none."""
    made: list[ASGIApp] = []

    async def enter(scope: Scope, receive: Receive, send: Send) -> None:
        if not made:
            from bot.outside.client import OutsideClient
            from bot.web.mcp.door import McpDoor

            client = OutsideClient(settings.inside)
            made.append(door := McpDoor(store, kept, client))
            stack.push_async_callback(client.close)
            stack.push_async_callback(door.close)
        await made[0](scope, receive, send)

    return enter


def _packages(store: Store, kept: Vault, settings: Settings, clock: Clock) -> PackageGateway:
    cache = PackageCache(settings.data_dir, settings.package_cache_bytes, clock)
    fetcher = PackageFetcher(kept, settings.inside, cache)
    return PackageGateway(store, fetcher, settings.secret_keys[0], clock)


def _gateway_door(e2b: E2BSettings | None, gateway: ASGIApp) -> Mount:
    """Open the gateway only to sandboxes that reach it by our public address."""
    from_outside = e2b is not None and e2b.gateway_url is not None and e2b.unmetered is None
    return Mount("/gateway", app=gateway if from_outside else closed)


async def _reachable(stack: AsyncExitStack, e2b: E2BSettings | None, gateway: ASGIApp) -> E2BSettings | None:
    """Open a local door to the gateway for cloud sandboxes that we connect to by a tunnel."""
    if e2b is not None and e2b.unmetered is not None:
        log.warning(UNMETERED)
    if e2b is None or not e2b.by_tunnel(None):
        return e2b
    listener = tcp_socket("127.0.0.1", 0)
    await stack.enter_async_context(Server(gateway, listener))
    return replace(e2b, gateway_address=listener.getsockname()[:2])


async def _chosen(stack: AsyncExitStack, settings: Settings, store: Store, gateway: ASGIApp) -> EnvironmentChoice:
    e2b = await _reachable(stack, settings.e2b, gateway)
    rooms = settings.data_dir / "environments"
    if e2b is not None:
        e2b = replace(e2b, instance=await cloud.instance(store, instance_of(rooms)))
    records = CloudRecords(MachineWitness(store), EnvironmentMarks(store), CloudPlaces(store))
    choice = await choose(rooms, e2b=e2b, records=records, newest_in=settings.newest_agent)
    if choice.not_newest:
        log.warning("Claude Code could not be updated", extra={"error": choice.not_newest})
    stack.push_async_callback(choice.provider.close)
    if e2b is None:
        await _open_sockets(stack, settings, gateway, choice)
    return choice


async def _open_sockets(stack: AsyncExitStack, settings: Settings, gateway: ASGIApp, choice: EnvironmentChoice) -> None:
    """Open the two ways out of a local environment: to the gateway, and to the hosts that the operator allows."""
    await stack.enter_async_context(Server(gateway, choice.sockets / "gateway.sock"))
    egress = EgressProxy(
        choice.sockets / "egress.sock", lambda host: host.lower() in settings.egress, admits=choice.admits
    )
    await egress.start()
    stack.push_async_callback(egress.close)


@dataclass(frozen=True)
class _Given:
    settings: Settings
    store: Store
    redactor: Redactor
    notices: Notices
    found: Colleagues


async def _assemble(stack: AsyncExitStack, given: _Given, choice: EnvironmentChoice, clock: Clock) -> Services:
    settings, store, redactor, notices = given.settings, given.store, given.redactor, given.notices
    github = GitHubApp(
        settings.github, on_secret=redactor.register, on_retired=redactor.forget, may_act=given.found.may_act
    )
    stack.push_async_callback(github.close)
    quotas = EditQuotas(store, clock)
    notices.on(Topic.MADE, quotas.note)
    outbound = Outbound(github, redactor, on_made=partial(notices.tell, Topic.MADE))
    folds = Folds(store, Claude())
    shown = PageSettings(settings.command, settings.limits, settings.pages_url, settings.github.url)
    places = QueuePlaces(store, settings.limits, clock)
    page = Page(store, folds, shown, find_place=places.of, clock=clock)
    board = LiveBoard(store, outbound, page, quotas, notices, clock)
    stack.push_async_callback(board.stop)
    session_egress = SessionEgress(choice.ways, settings.egress, choice.admits)
    stack.push_async_callback(session_egress.close_all)
    cache = RepositoryCache(settings.data_dir / "repositories")
    await cache.sweep()
    is_local, has_others = settings.e2b is None, given.found.replicas is not None
    files = await stack.enter_async_context(KeptFiles.opened(store, settings.data_dir, settings.bucket))
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
        files=files,
        signals=TurnSignals(),
        clock=clock,
        egress=session_egress,
        disks=(choice.sockets,) if is_local else (),
        here=given.found.home if is_local and has_others else None,
    )
