"""Runs uvicorn in a running event loop, with limits for a request's head. Nothing else uses uvicorn's internals."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bot.errors import SettingsError
from bot.web import overload
from bot.web.overload import Sturdy, Watchman


@dataclass(frozen=True)
class HeadLimits:
    most_bytes: int = 64 * 1024
    url_bytes: int = 16 * 1024
    headers: int = 200
    seconds: float = 20.0
    short_seconds: float = 0.5
    """For a connection on one of the last descriptors, because others wait for it."""
    waiting: int = 400
    """Connections without a complete head; beyond that, the oldest one is closed..."""
    patience: float = 2.0
    """...unless it is younger than this: the server accepts a burst of requests before it reads any of them."""


class Connections:
    """Keeps a server's connections that have not completed a head yet, oldest first."""

    def __init__(self, limits: HeadLimits) -> None:
        self.limits = limits
        self._waiting: dict[GuardedProtocol, float] = {}
        self.one_lost = asyncio.Event()

    def add(self, connection: GuardedProtocol, now: float) -> None:
        if len(self._waiting) >= self.limits.waiting:
            oldest, since = next(iter(self._waiting.items()))
            if now - since >= self.limits.patience:
                oldest.give_up()
        if connection.short:  # silent ones get half of the last descriptors: asyncio must find one when it accepts
            silent = [one for one in self._waiting if one.short]
            if len(silent) >= overload.spare_descriptors() // 2:
                silent[0].give_up()
        self._waiting[connection] = now

    def remove(self, connection: GuardedProtocol) -> None:
        self._waiting.pop(connection, None)

    async def none_open(self, connections: Collection[object]) -> None:
        """Wait until uvicorn's collection is empty."""
        while connections:
            self.one_lost.clear()
            await self.one_lost.wait()


class BadHead(Exception):
    """Raised in the parser's callbacks, so that uvicorn answers 400 and closes."""


class GuardedProtocol(HttpToolsProtocol):
    """Each server makes a subclass with its `peers`, because uvicorn takes a class."""

    peers: Connections
    short = False  # it has one of the last descriptors
    _timer: asyncio.TimerHandle | None = None
    _in_head = True
    _head_bytes = 0
    _url_bytes = 0
    _counted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn narrows the type
        if overload.few_left(transport.get_extra_info("socket").fileno()):
            self.short = True
            self.app = overload.Shedding(self.app)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_done()
        super().connection_lost(exc)
        self.peers.one_lost.set()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and not self.transport.is_closing() and self._head_bytes:
            if self._head_bytes > self.peers.limits.most_bytes:
                self.send_400_response("The head of the request is too large.")
            elif self._timer is None:  # a later request on a kept connection has begun
                self._await_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._url_bytes = 0
        self._counted = 0

    def on_url(self, url: bytes) -> None:
        """Accept only a path: a whole address would name a second host beside the one in the header."""
        if b"#" in url or not (self._url_bytes or url.startswith(b"/")):
            raise BadHead
        self._url_bytes += len(url)
        if self._url_bytes > self.peers.limits.url_bytes:
            raise BadHead
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._counted += len(name) + len(value)
        limits = self.peers.limits
        if self._counted > limits.most_bytes or len(self.headers) >= limits.headers:
            raise BadHead
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_done()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True  # of the next request, which need not come
        self._head_bytes = 0

    def give_up(self) -> None:
        """Close without an answer: there is no request yet."""
        self._head_done()
        self.transport.abort()

    def _await_head(self) -> None:
        limits = self.peers.limits
        self._timer = self.loop.call_later(limits.short_seconds if self.short else limits.seconds, self.give_up)
        self.peers.add(self, self.loop.time())

    def _head_done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.peers.remove(self)


_BACKLOG = 2048
_AT_A_TIME = 16
"""Connections that asyncio accepts before it does anything else; if descriptors run out, it logs each try."""


def tcp_socket(host: str, port: int) -> socket.socket:
    """Bind a socket (port 0: a free one); connections queue on it even before the server starts."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise SettingsError(f"FORGEHAND_HOST {host!r} is not an address of this host: {error.strerror}.") from None
    # asyncio sets TCP_NODELAY only if the protocol is named; without it each answer takes 40 ms more.
    listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        used = error.errno == errno.EADDRINUSE
        why = "is used by another program" if used else f"is not available ({error.strerror})"
        raise SettingsError(f"{host}:{port} {why}. Set FORGEHAND_HOST and FORGEHAND_PORT to a free address.") from None
    return listener


class Server:
    """Use it with `async with`, or start and stop it. `stop` gives requests `grace_seconds` to end, then cuts them."""

    def __init__(
        self,
        app: ASGIApp,
        listen: socket.socket | Path,
        *,
        grace_seconds: float = 5.0,
        head_limits: HeadLimits = HeadLimits(),
    ) -> None:
        self._listen = listen
        self._grace_seconds = grace_seconds
        self._connections = Connections(head_limits)
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                Sturdy(app),
                uds=str(listen) if isinstance(listen, Path) else None,
                http=type("Guarded", (GuardedProtocol,), {"peers": self._connections}),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_AT_A_TIME,
                timeout_keep_alive=15,
            )
        )
        self._ticks: asyncio.Task[None] | None = None
        self._watchman = None if isinstance(listen, Path) else Watchman(listen)

    @property
    def url(self) -> str:
        assert isinstance(self._listen, socket.socket)
        host, port = self._listen.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self) -> None:
        """Return when connections are accepted."""
        self._uvicorn.config.load()
        self._uvicorn.lifespan = self._uvicorn.config.lifespan_class(self._uvicorn.config)
        if isinstance(self._listen, Path):
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISSOCK(self._listen.lstat().st_mode):
                    self._listen.unlink()  # left behind by a killed process; anything else stays
            await self._uvicorn.startup()
            self._listen.chmod(0o666)  # its folder decides who may reach it
        else:
            await self._uvicorn.startup(sockets=[self._listen])
            self._listen.listen(_BACKLOG)  # uvicorn has made the system's queue as short as the loop's
        if self._watchman is not None:
            self._watchman.start()
        self._ticks = asyncio.create_task(self._tick(), name="server-date")

    async def stop(self) -> None:
        """Accept no new connections, let the open ones end, or cut them; idempotent."""
        if self._ticks is None:
            return
        self._ticks.cancel()
        self._ticks = None
        if self._watchman is not None:
            await asyncio.to_thread(self._watchman.stop)
        for server in self._uvicorn.servers:
            server.close()
        await self._let_end()
        if isinstance(self._listen, Path):
            self._listen.unlink(missing_ok=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _let_end(self) -> None:
        state = self._uvicorn.server_state
        for connection in list(state.connections):
            connection.shutdown()  # closes an idle one; a busy one after its answer
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace_seconds):
                await self._connections.none_open(state.connections)
        for task in list(state.tasks):
            task.cancel()
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.gather(*state.tasks, return_exceptions=True)

    async def _tick(self) -> None:
        """Keep the Date header current. uvicorn's own loop would also take signals, which must not happen here."""
        while True:
            await self._uvicorn.on_tick(0)
            if self._watchman is not None:
                self._watchman.beat()
            await asyncio.sleep(1.0)
