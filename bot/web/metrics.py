"""Serves `/metrics` for Prometheus, to this machine or with a token; measures how late the event loop is."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import BotError
from bot.loops import Loop, LoopName
from bot.replicas import Replicas
from bot.settings import LOOPBACK, Secret
from bot.store import figures, operations
from bot.store.base import Store
from bot.store.figures import Figures
from bot.web.webhooks import STATUSES

LOOK_SECONDS = 0.25
STORE_SECONDS = 5.0
LATENESS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
NOT_YOURS = """\
Send FORGEHAND_METRICS_TOKEN as a bearer token. Without a token, only requests from this machine are answered, and only
if the service polls and has no public URL.
"""
FORWARDED = ("forwarded", "x-forwarded", "x-real-ip", "x-original", "via", "cf-", "true-client-ip", "x-client-ip")
"""Headers of a proxy on this machine, which asks for somebody else."""
SECONDS = (1, 5, 15, 60, 180, 600, 1800, 3600, 7200)
LEVELS = ("warning", "error", "critical")


def metrics_routes(metrics: ServiceMetrics, token: Secret | None, *, is_reached: bool) -> list[BaseRoute]:
    """`is_reached`: as far as the settings tell, other machines can reach the service."""

    async def answer(request: Request) -> Response:
        if not _may_read(request, token, is_reached=is_reached):
            return PlainTextResponse(NOT_YOURS, 401)
        return Response(await metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return [Route("/metrics", answer)]


class ServiceMetrics:
    """One per process. Each label has a closed set of values; nothing that outsiders name becomes one."""

    def __init__(self, store: Store) -> None:
        self.sandboxes: Callable[[], Awaitable[int | None]] | None = None
        """Counts those alive, once the provider is ready."""
        self.refused: Mapping[str, int] = {}  # the gateway's live count of refused requests, by reason
        self.left_out: Mapping[str, int] = {}
        """The gateway's live count of betas, fields and query parts that it left out of requests."""
        self.packages: Mapping[str, int] = {}
        """The live count of requests to registries, by what became of them."""
        self.package_bytes: Mapping[str, int] = {}
        self._store = store
        self._registry = CollectorRegistry()
        self._after = store.now()
        histogram = partial(Histogram, registry=self._registry)
        counter = partial(Counter, registry=self._registry)
        words = "Time from a request to the start of its turn."
        self._waits = histogram("forgehand_queue_wait_seconds", words, buckets=SECONDS)
        self._steps = histogram("forgehand_step_seconds", "How long a step took.", ["step"], buckets=SECONDS)
        words = "How late the event loop is, measured four times a second."
        self._late = histogram("forgehand_loop_late_seconds", words, buckets=LATENESS_SECONDS)
        self.lateness = Loop("lateness", self._measure_lateness, 0.0)
        self.loops: Mapping[LoopName, Loop] = {}
        """The loops of this process; a replica that begins to lead has more."""
        self.replicas: Replicas | None = None
        self.turns_here: Callable[[], int] = lambda: 0
        self._records = counter("forgehand_log_records", "Log lines of this process.", ["level"])
        for level in LEVELS:
            self._records.labels(level)
        self._webhooks = counter("forgehand_webhooks", "Requests at the webhook by their answer.", ["status"])
        for status in STATUSES:
            self._webhooks.labels(str(status))

    async def _measure_lateness(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() + LOOK_SECONDS
        await asyncio.sleep(LOOK_SECONDS)
        self._late.observe(max(0.0, clock() - due))

    def webhook(self, status: int) -> None:
        """Count an answer of the webhook."""
        if status in STATUSES:
            self._webhooks.labels(str(status)).inc()

    def count(self, record: logging.LogRecord) -> None:
        """Count a log line."""
        level = record.levelname.lower()
        if level in LEVELS:
            self._records.labels(level).inc()

    async def text(self) -> bytes:
        """Without the figures of the store, if it does not answer."""
        now = CollectorRegistry()
        now.register(_Here(self, await self.sandboxes() if self.sandboxes else None))
        try:
            async with asyncio.timeout(STORE_SECONDS):
                now.register(await self._stored())
        except (BotError, TimeoutError):
            pass
        return generate_latest(self._registry) + generate_latest(now)

    async def _stored(self) -> _Stored:
        for ended in await figures.ended_since(self._store, self._after):
            self._after = ended.finished_at
            self._waits.observe(ended.waited_seconds)
            for step, seconds in ended.step_seconds.items():
                self._steps.labels(step).observe(seconds)
        paused = await operations.paused_at(self._store) is not None
        return _Stored(await figures.read(self._store), self._store.now(), paused)


@dataclass(frozen=True, eq=False)
class _Stored(Collector):
    """Figures of the store, which every replica shows alike."""

    found: Figures
    now: float
    paused: bool

    def collect(self) -> Iterable[Metric]:
        found = self.found
        yield _by("forgehand_turns", "Turns by state.", "state", found.turns)
        yield _by("forgehand_turns_ended", "Turns by outcome.", "outcome", found.outcomes, total=True)
        yield _by("forgehand_deliveries", "Webhooks in the ledger.", "state", found.deliveries)
        yield _by("forgehand_bulletins", "Bulletins to receivers that are kept.", "state", found.bulletins)
        yield _by("forgehand_installations", "Installations of the App.", "state", found.installations)
        yield _by("forgehand_model_requests", "Model requests by result.", "status", found.model_requests, total=True)
        yield _by("forgehand_tokens", "Tokens that the gateway counted.", "kind", found.tokens, total=True)
        yield CounterMetricFamily("forgehand_spend_usd", "Dollars spent at the model.", found.usd)
        yield CounterMetricFamily("forgehand_comment_edits", "Edits of live comments.", found.edits)
        waits = self.now - found.oldest_waiting_at if found.oldest_waiting_at else 0.0
        yield GaugeMetricFamily("forgehand_queue_oldest_seconds", "Age of the oldest waiting turn.", max(0.0, waits))
        yield GaugeMetricFamily("forgehand_reserved_usd", "Dollars held by open requests.", found.reserved_usd)
        yield GaugeMetricFamily("forgehand_comments_due", "Live comments without a final form.", found.comments_due)
        yield GaugeMetricFamily("forgehand_allowances_paused", "Installations that must wait.", found.allowances_paused)
        yield GaugeMetricFamily("forgehand_paused", "Whether the operator has paused it.", int(self.paused))
        if found.allowance_least is not None:
            help_ = "Edits left of the installation with the fewest."
            yield GaugeMetricFamily("forgehand_allowance_least", help_, found.allowance_least)


@dataclass(frozen=True, eq=False)
class _Here(Collector):
    """Figures of this process."""

    metrics: ServiceMetrics
    sandboxes: int | None

    def collect(self) -> Iterable[Metric]:
        metrics = self.metrics
        yield _by("forgehand_gateway_refusals", "Requests not forwarded.", "reason", metrics.refused, total=True)
        yield _by("forgehand_gateway_left_out", "Parts left out of requests.", "kind", metrics.left_out, total=True)
        yield _by("forgehand_packages", "Requests to registries.", "outcome", metrics.packages, total=True)
        yield _by("forgehand_package_bytes", "Bytes of packages.", "source", metrics.package_bytes, total=True)
        loops = [metrics.lateness, *metrics.loops.values()]
        failures: dict[str, int] = {loop.name: loop.failures for loop in loops}
        yield _by("forgehand_loop_failures", "Failed rounds of a background loop.", "loop", failures, total=True)
        succeeded: dict[str, int] = {loop.name: int(loop.succeeded_at or 0) for loop in loops}
        help_ = "When a background loop last finished a round without an error; 0: not yet."
        yield _by("forgehand_loop_last_success_timestamp_seconds", help_, "loop", succeeded)
        yield GaugeMetricFamily("forgehand_turns_here", "Turns that this process runs.", metrics.turns_here())
        if metrics.sandboxes is not None:
            yield GaugeMetricFamily("forgehand_sandboxes", "Sandboxes alive.", self.sandboxes)
        if metrics.replicas is not None:
            yield from _among(metrics.replicas)


def _among(replicas: Replicas) -> Iterable[Metric]:
    yield GaugeMetricFamily("forgehand_replicas", "Replicas alive at the last confirmed beat.", len(replicas.found))
    yield GaugeMetricFamily("forgehand_replica_leads", "Whether this replica leads.", int(replicas.leads))
    help_ = "Time since the database last confirmed a beat of this replica."
    yield GaugeMetricFamily("forgehand_replica_beat_lag_seconds", help_, replicas.lag_seconds)
    help_ = "How long the database took to confirm the last beat."
    yield GaugeMetricFamily("forgehand_database_round_trip_seconds", help_, replicas.round_trip_seconds)
    help_ = "How often this replica lost its connection for notices and made another."
    yield CounterMetricFamily("forgehand_notice_reconnects", help_, replicas.reconnects)


def _by(name: str, help_: str, label: str, values: Mapping[str, int], *, total: bool = False) -> Metric:
    kind = CounterMetricFamily if total else GaugeMetricFamily
    family = kind(name, help_, labels=[label])
    for value, number in sorted(values.items()):
        family.add_metric([value], number)
    return family


def _may_read(request: Request, token: Secret | None, *, is_reached: bool) -> bool:
    """Require the token if a proxy may run on this machine: it may hide on whose behalf it asks."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if token is not None and scheme.lower() == "bearer":
        return hmac.compare_digest(given.strip().encode(), token.reveal().encode())
    if is_reached or request.client is None or request.client.host not in LOOPBACK:
        return False
    return request.url.hostname in LOOPBACK and not any(name.startswith(FORWARDED) for name in request.headers)
