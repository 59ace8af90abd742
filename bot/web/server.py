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
from typing import Self, TypeVar

import msgspec
import uvicorn
from starlette.types import ASGIApp, Receive
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bot.errors import SettingsError
from bot.models import DeliveryId
from bot.store.deliveries import DeliveryState, NewDelivery
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


MEGABYTE = 1024 * 1024


class BodyRefused(Exception):
    """Answer with this status and close; the sentence is for the sender."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Disconnected(Exception):
    """Nobody is there to be answered."""


@dataclass(frozen=True)
class BodyLimits:
    most_bytes: int = 25 * MEGABYTE
    """GitHub's own cap."""
    seconds: float = 10.0
    all_bytes: int = 128 * MEGABYTE
    """Of bodies being read at the same time: who sends has not proved yet to be GitHub. Past it the largest goes."""
    linger_seconds: float = 5.0


@dataclass(eq=False)
class _Reading:
    """One body on its way."""

    deadline: asyncio.Timeout
    size: int = 0
    evicted: bool = False

    def evict(self) -> None:
        self.evicted = True
        with contextlib.suppress(RuntimeError):  # its time is up already
            self.deadline.reschedule(asyncio.get_running_loop().time())


class BodyReader:
    """One for all requests of a route: it counts what they hold together."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._readings: set[_Reading] = set()

    async def read(self, receive: Receive, declared: int | None) -> bytes | bytearray:
        """The whole body. A declared length over the cap is refused unread; a lying or absent one while reading."""
        if declared is not None and declared > self._limits.most_bytes:
            raise self._too_large()
        mine = _Reading(asyncio.timeout(self._limits.seconds))
        self._readings.add(mine)
        try:
            async with mine.deadline:
                return await self._read(receive, mine)
        except TimeoutError:
            if mine.evicted:
                raise _too_much() from None
            raise BodyRefused(408, "The body did not arrive in time.") from None
        finally:
            self._readings.discard(mine)

    async def linger(self, receive: Receive) -> None:
        """Drop what is still being sent, for a while: closing upon it would destroy our answer on its way."""
        with contextlib.suppress(TimeoutError, Disconnected):
            async with asyncio.timeout(self._limits.linger_seconds):
                more = True
                while more:
                    _, more = await _chunk(receive)

    async def _read(self, receive: Receive, mine: _Reading) -> bytes | bytearray:
        first, more = await _chunk(receive)
        self._hold(len(first), mine)
        if not more:
            return first
        body = bytearray(first)
        while more:
            chunk, more = await _chunk(receive)
            self._hold(len(chunk), mine)
            body += chunk
        return body

    def _hold(self, count: int, mine: _Reading) -> None:
        """Room is made by whoever holds most of it: strangers who fill it must not keep GitHub's small bodies out."""
        mine.size += count
        if mine.size > self._limits.most_bytes:
            raise self._too_large()
        while sum(one.size for one in self._readings if not one.evicted) > self._limits.all_bytes:
            largest = max((one for one in self._readings if not one.evicted), key=lambda one: one.size)
            if largest is mine:
                raise _too_much()
            largest.evict()

    def _too_large(self) -> BodyRefused:
        return BodyRefused(413, f"The body is larger than {self._limits.most_bytes // MEGABYTE} MB.")


def _too_much() -> BodyRefused:
    return BodyRefused(503, "Too much is being received at once.")


async def _chunk(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] != "http.request":
        raise Disconnected
    body: bytes = message.get("body", b"")
    return body, message.get("more_body", False)


T = TypeVar("T")

_LARGEST = 2**63 - 1
_LONGEST = 100


class NotJson(ValueError):
    """Not a JSON object."""


@dataclass(frozen=True)
class Envelope:
    """What a delivery is about; a field that is missing or nonsense is None."""

    action: str | None = None
    installation_id: int | None = None
    repo_id: int | None = None
    number: int | None = None
    sender: str | None = None


class _Id(msgspec.Struct):
    id: int | None = None


class _Numbered(msgspec.Struct):
    number: int | None = None


class _Login(msgspec.Struct):
    login: str | None = None


class _Payload(msgspec.Struct):
    action: str | None = None
    installation: _Id | None = None
    repository: _Id | None = None
    issue: _Numbered | None = None
    pull_request: _Numbered | None = None
    sender: _Login | None = None
    number: int | None = None


_NULL = msgspec.Raw(b"null")


class _Loose(msgspec.Struct):
    action: msgspec.Raw = _NULL
    installation: msgspec.Raw = _NULL
    repository: msgspec.Raw = _NULL
    issue: msgspec.Raw = _NULL
    pull_request: msgspec.Raw = _NULL
    sender: msgspec.Raw = _NULL
    number: msgspec.Raw = _NULL


_STRICT = msgspec.json.Decoder(_Payload)
_LOOSE = msgspec.json.Decoder(_Loose)


def read(body: bytes | bytearray) -> Envelope:
    """NotJson when the body is not a JSON object; never another error."""
    try:
        payload = _STRICT.decode(body)
    except msgspec.ValidationError:
        payload = _salvage(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise NotJson("The body is not JSON.") from None
    about = payload.issue or payload.pull_request
    return Envelope(
        action=_text(payload.action),
        installation_id=_whole(payload.installation.id if payload.installation else None),
        repo_id=_whole(payload.repository.id if payload.repository else None),
        number=_whole(about.number if about else payload.number),
        sender=_text(payload.sender.login if payload.sender else None),
    )


def _salvage(body: bytes | bytearray) -> _Payload:
    """Field by field: one of a wrong type does not cost the others."""
    try:
        loose = _LOOSE.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise NotJson("The body is not a JSON object.") from None
    return _Payload(
        action=_as(str, loose.action),
        installation=_as(_Id, loose.installation),
        repository=_as(_Id, loose.repository),
        issue=_as(_Numbered, loose.issue),
        pull_request=_as(_Numbered, loose.pull_request),
        sender=_as(_Login, loose.sender),
        number=_as(int, loose.number),
    )


def _as(kind: type[T], raw: msgspec.Raw) -> T | None:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _whole(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= _LARGEST else None


def _text(value: str | None) -> str | None:
    return value[:_LONGEST] if value else None


def is_wanted(event: str, action: str | None, handled: Collection[str]) -> bool:
    """`handled` names events, or actions of events: `issues.opened`."""
    return event in handled or f"{event}.{action}" in handled


def ledger_entry(guid: str, event: str, body: bytes | bytearray, sha256: str, handled: Collection[str]) -> NewDelivery:
    """What nobody acts upon is noted without its body. NotJson or UnicodeDecodeError when it is not JSON."""
    seen = read(body)
    wanted = is_wanted(event, seen.action, handled)
    text = body.decode() if wanted else None
    named = f"`{event}` ({seen.action})" if seen.action else f"`{event}`"
    return NewDelivery(
        guid=DeliveryId(guid),
        event=event,
        body_sha256=sha256,
        body=text,
        action=seen.action,
        state=DeliveryState.RECEIVED if wanted else DeliveryState.IGNORED,
        reason=None if wanted else f"Nothing is done upon {named}.",
        installation_id=seen.installation_id,
        repo_id=seen.repo_id,
        number=seen.number,
        sender=seen.sender,
    )
