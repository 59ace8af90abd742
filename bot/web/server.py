"""Serving an application with uvicorn in the loop that already runs, on a TCP port or a unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from bot.errors import SettingsError
from bot.web.overload import Sturdy
from bot.web.protocol import Connections, HeadLimits, guarded
from bot.web.watchman import Watchman

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
        head_limits: HeadLimits = HeadLimits(),  # noqa: B008 - frozen
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
