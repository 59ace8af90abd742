"""Runs uvicorn in a loop that already runs, with limits for the head of a request. The one user of its internals."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
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
    """On one of the last descriptors, which others wait for."""
    waiting: int = 400
    """Connections without a complete head; past it the one that waited longest is closed..."""
    patience: float = 2.0
    """...unless it is younger than this: a burst of real requests is accepted before any of them is read."""


class Connections:
    """Those of one server: which have not completed a head yet, oldest first, and when the last one has gone."""

    def __init__(self, limits: HeadLimits) -> None:
        self.limits = limits
        self._waiting: dict[GuardedProtocol, float] = {}
        self._one_lost = asyncio.Event()

    def add(self, connection: GuardedProtocol, now: float) -> None:
        if len(self._waiting) >= self.limits.waiting:
            oldest, since = next(iter(self._waiting.items()))
            if now - since >= self.limits.patience:
                oldest.give_up()
        if connection.short:
            self._make_room()
        self._waiting[connection] = now

    def _make_room(self) -> None:
        """Half of the last descriptors for who says nothing: asyncio must find one when it accepts."""
        silent = [one for one in self._waiting if one.short]
        if len(silent) >= overload.reserve() // 2:
            silent[0].give_up()

    def remove(self, connection: GuardedProtocol) -> None:
        self._waiting.pop(connection, None)

    def lost(self) -> None:
        self._one_lost.set()

    async def none_open(self, connections: Collection[object]) -> None:
        """Returns when the collection, which uvicorn keeps, is empty."""
        while connections:
            self._one_lost.clear()
            await self._one_lost.wait()


class BadHead(Exception):
    """Raised inside the parser's callbacks: uvicorn answers 400 and closes."""


class GuardedProtocol(HttpToolsProtocol):
    """Made by `guarded`, which binds the limits."""

    peers: Connections
    short = False
    """It has one of the last descriptors."""
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
        self.peers.lost()

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
        """A path and nothing else: a whole address names a host of its own, beside the one in the header."""
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
        """Nothing is lost: there is no request yet."""
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


def guarded(connections: Connections) -> type[GuardedProtocol]:
    """A protocol class for one server."""
    return type("Guarded", (GuardedProtocol,), {"peers": connections})


_BACKLOG = 2048
_AT_A_TIME = 16
"""What asyncio accepts before it looks at anything else; where descriptors run out it logs each try of these."""


def tcp_socket(host: str, port: int) -> socket.socket:
    """A bound socket (port 0: a free one); connections already queue on it before the server is started."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise SettingsError(f"FORGEHAND_HOST {host!r} is not an address of this host: {error.strerror}.") from None
    # With the protocol named: asyncio sets TCP_NODELAY only then, and its absence costs 40 ms an answer.
    listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        used = error.errno == errno.EADDRINUSE
        why = "is used by another program" if used else f"cannot be listened on ({error.strerror})"
        raise SettingsError(f"{host}:{port} {why}. Set FORGEHAND_HOST and FORGEHAND_PORT to a free address.") from None
    return listener


class Server:
    """`async with` (or start and stop); `stop` lets requests end for `grace_seconds`, then cuts them."""

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
                http=guarded(self._connections),
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
        """The base URL on a TCP socket."""
        assert isinstance(self._listen, socket.socket)
        host, port = self._listen.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self) -> None:
        """Returns when connections are accepted."""
        self._uvicorn.config.load()
        self._uvicorn.lifespan = self._uvicorn.config.lifespan_class(self._uvicorn.config)
        if isinstance(self._listen, Path):
            _remove_stale(self._listen)
            await self._uvicorn.startup()
            self._listen.chmod(0o666)  # who may reach it is decided by the folder that it is in
        else:
            await self._uvicorn.startup(sockets=[self._listen])
            self._listen.listen(_BACKLOG)  # the queue of the system, which uvicorn has made as short as the loop's
        if self._watchman is not None:
            self._watchman.start()
        self._ticks = asyncio.create_task(self._tick(), name="server-date")

    async def stop(self) -> None:
        """No new connections, the open ones end or are cut; idempotent."""
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """uvicorn's own loop would also watch signals, which are not ours to take here; the Date header is left."""
        while True:
            await self._uvicorn.on_tick(0)
            if self._watchman is not None:
                self._watchman.beat()
            await asyncio.sleep(1.0)


def _remove_stale(path: Path) -> None:
    """A socket that a killed process left behind; nothing else is removed."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
