"""Makes one connection into a sandbox's switchboard, proves who we are, and joins it with the gateway when needed."""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from sandbox.e2b.inside import proofs
from sandbox.e2b.inside.frames import MOST_BYTES, Broken
from sandbox.runner import web

CONNECT_SECONDS = 15.0
PING_SECONDS = 20.0
SILENCE_SECONDS = 50.0  # every ping is answered at once; after this long a silence the other end is gone
MOST_WAITING = 4  # messages that the gateway has not taken yet; then the sandbox waits
BLOCK = 1 << 16

_log = logging.getLogger(__name__)
_log.setLevel(logging.WARNING)  # below, websockets logs each header, and with them the traffic token


class HostCall:
    """One connection: `connect`, `until_wanted`, `serve`; `abort` ends it at any time."""

    def __init__(self, target: web.Target, key: bytes, gateway: tuple[str, int]) -> None:
        self._target = target
        self._key = key
        self._gateway = gateway
        self._opened: ClientConnection | None = None

    async def connect(self, path: str) -> None:
        """Connect; OSError, TimeoutError or Broken if that fails or the other end does not have our key."""
        target = self._target
        async with asyncio.timeout(CONNECT_SECONDS):
            with _broken("the sandbox's proxy did not let us through", ValueError):
                self._opened = await connect(
                    f"{'wss' if target.tls else 'ws'}://{target.authority}{target.path}{path}",
                    host=target.host,  # named, so that a redirect to another host is a ValueError
                    port=target.port,
                    ssl=tls() if target.tls else None,
                    additional_headers=target.headers,
                    user_agent_header=None,
                    proxy=None,
                    compression=None,
                    open_timeout=None,
                    ping_interval=PING_SECONDS,
                    ping_timeout=SILENCE_SECONDS - PING_SECONDS,
                    close_timeout=SILENCE_SECONDS,
                    max_size=MOST_BYTES,
                    max_queue=MOST_WAITING,
                    logger=_log,
                )
            with _broken("the sandbox's proxy hung up"):
                await self._prove(self._opened)

    async def until_wanted(self) -> None:
        """Wait until an agent inside uses this connection."""
        with _broken("the sandbox hung up"):
            if await self._connection.recv() != "open":
                raise Broken("no call was expected")

    async def serve(self) -> None:
        reader, writer = await asyncio.open_connection(*self._gateway)
        try:
            with _broken("the sandbox hung up"):
                await self._connection.send("taken")
                answers = asyncio.create_task(self._answers(reader))
                try:
                    await self._requests(writer)
                finally:
                    answers.cancel()
                    await asyncio.gather(answers, return_exceptions=True)
        finally:
            writer.transport.abort()

    def abort(self) -> None:
        if self._opened is not None:
            self._opened.transport.abort()

    @property
    def _connection(self) -> ClientConnection:
        assert self._opened is not None
        return self._opened

    async def _prove(self, connection: ClientConnection) -> None:
        """Prove both ends, so that no process of the agent can take the switchboard's place unnoticed."""
        theirs, ours = await connection.recv(), secrets.token_hex(16)
        nonces = f"{str(theirs)[:64]} {ours}"
        await connection.send(f"{ours} {proofs.proof(self._key, proofs.HOST, nonces)}")
        if not proofs.holds(self._key, proofs.INSIDE, nonces, str(await connection.recv())):
            raise Broken("this is not our switchboard")

    async def _requests(self, gateway: asyncio.StreamWriter) -> None:
        """Pass requests on to the gateway, until the inside closes the connection."""
        async for said in self._connection:
            if isinstance(said, bytes):
                gateway.write(said)
                await gateway.drain()
            elif said == "end":
                gateway.write_eof()

    async def _answers(self, gateway: asyncio.StreamReader) -> None:
        """Pass answers on, then let the inside hang up; if we did, the last bytes might be lost on the way."""
        with suppress(Broken, OSError), _broken("the sandbox hung up"):
            while data := await gateway.read(BLOCK):
                await self._connection.send(data)
            await self._connection.close()


@contextmanager
def _broken(words: str, other: type[Exception] = WebSocketException) -> Iterator[None]:
    """Turn the library's errors into Broken."""
    try:
        yield
    except (WebSocketException, other):
        raise Broken(words) from None


@cache
def tls() -> ssl.SSLContext:
    """Return one context for all connections, because each context takes a megabyte."""
    return ssl.create_default_context()
