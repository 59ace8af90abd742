"""Asks addresses that accounts have named. It resolves a name once, judges what it means, and connects to that.

httpcore speaks HTTP, over a network that checks. httpx would add decoding, cookies, proxies from the environment and
redirects by itself; the client of the model's gateway knows one host and only POST.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import httpcore

from bot.errors import BotError
from bot.outside import addresses
from bot.outside.addresses import IP, BadAddress, OutsideAddress
from bot.settings import Secret
from bot.settings.inside import NAME, InsideHosts

MAX_CONNECTIONS = 128
MOST_KEPT = 32
KEPT_SECONDS = 15.0
RESOLVERS = 8
"""Separate threads: a slow name server must not hold those that the rest of the service uses."""
MOST_ADDRESSES = 4
MOST_HOPS = 5
MOST_HEADERS = 100
REDIRECTS = (301, 302, 303, 307, 308)
_CLOSED = frozenset({"authorization", "cookie", "host", "content-length", "transfer-encoding", "connection"})
"""Headers that callers cannot give: they are the credential's, or make a second request out of one."""

Header = tuple[str, str]
Follows = Callable[[OutsideAddress], bool]


class OutsideTrouble(BotError):
    """No answer, or none that can be used; the text says why, without the address's path."""


@dataclass(frozen=True)
class Patience:
    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    """Between two pieces of an answer."""


@dataclass(frozen=True)
class OutsideRequest:
    method: str
    address: OutsideAddress
    headers: Sequence[Header] = ()
    body: bytes = b""
    credential: tuple[str, Secret] | None = None
    """A header's name and value; it goes only to the host, scheme and port of `address`."""
    patience: Patience = field(default_factory=Patience)


class OutsideAnswer:
    def __init__(self, response: httpcore.Response, address: OutsideAddress) -> None:
        self.status = response.status
        self.address = address
        """The address that answered, after redirects."""
        self._response = response

    @cached_property
    def headers(self) -> dict[str, str]:
        """The headers by their names in lower case; of several with one name, the first."""
        found: dict[str, str] = {}
        for name, value in self._response.headers[:MOST_HEADERS]:
            found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        return found

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body as it was sent, perhaps compressed. Raise OutsideTrouble beyond the limit or if it breaks."""
        size = 0
        with _troubles(self.address):
            async for chunk in self._response.aiter_stream():
                size += len(chunk)
                if size > limit:
                    raise OutsideTrouble(f"{self.address.host} sent more than {limit:,} bytes.")
                yield chunk

    async def whole(self, limit: int) -> bytes:
        return b"".join([chunk async for chunk in self.chunks(limit)])


class OutsideClient:
    """Keeps connections by host; `close` it. It knows no proxy: that could carry a credential elsewhere."""

    def __init__(self, inside: InsideHosts) -> None:
        self.inside = inside
        self._network = _CheckedNetwork(inside)
        self._pool: httpcore.AsyncConnectionPool | None = None

    def address(self, url: str) -> OutsideAddress:
        return addresses.read(url, self.inside)

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()
        self._network.close()

    @asynccontextmanager
    async def ask(self, request: OutsideRequest, follows: Follows | None = None) -> AsyncIterator[OutsideAnswer]:
        """Send a request and give its answer; leaving early closes the connection.

        A redirect of a GET or HEAD is followed if `follows` says so; otherwise it is the answer. Raise BadAddress for
        an address that may not be asked, and OutsideTrouble if no answer comes."""
        for _ in range(MOST_HOPS + 1):
            async with self._sent(request) as answer:
                further = self._further(request, answer) if follows else None
                if further is None or follows is None or not follows(further.address):
                    yield answer
                    return
            request = further
        raise OutsideTrouble(f"{request.address.host} redirects again and again.")

    def _further(self, request: OutsideRequest, answer: OutsideAnswer) -> OutsideRequest | None:
        location = answer.headers.get("location")
        if request.method not in ("GET", "HEAD") or answer.status not in REDIRECTS or not location:
            return None
        there = request.address.joined(location, self.inside)
        stays = there.origin == request.address.origin
        return replace(request, address=there, credential=request.credential if stays else None)

    @asynccontextmanager
    async def _sent(self, request: OutsideRequest) -> AsyncIterator[OutsideAnswer]:
        at, patience = request.address, request.patience
        url = httpcore.URL(
            scheme=at.scheme.encode(), host=at.host.encode(), port=at.port, target=at.target.encode("latin-1")
        )
        reads = patience.read_seconds
        times = {"connect": patience.connect_seconds, "pool": reads, "read": reads, "write": reads}
        with _troubles(at):
            pool, headers = self._opened(), _headers(request)
            wanted = httpcore.Request(
                request.method, url, headers=headers, content=request.body, extensions={"timeout": times}
            )
            response = await pool.handle_async_request(wanted)
        try:
            yield OutsideAnswer(response, at)
        finally:
            await response.aclose()

    def _opened(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=ssl.create_default_context(),
                max_connections=MAX_CONNECTIONS,
                max_keepalive_connections=MOST_KEPT,
                keepalive_expiry=KEPT_SECONDS,
                network_backend=self._network,
            )
        return self._pool


class _CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to the very addresses that it has judged: asked again, a name server could say something else."""

    def __init__(self, inside: InsideHosts) -> None:
        self._inside = inside
        self._beneath = httpcore.AnyIOBackend()
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="resolver")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        try:
            async with asyncio.timeout(timeout):
                for ip in await self._checked(host, port):
                    try:
                        return await self._beneath.connect_tcp(str(ip), port, timeout, None, socket_options)
                    except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                        failure = error
        except TimeoutError:
            raise httpcore.ConnectTimeout from None
        raise failure or httpcore.ConnectError("the name has no address")

    async def _checked(self, host: str, port: int) -> list[IP]:
        def resolve() -> list[Any]:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, resolve)
        except (OSError, UnicodeError):
            raise OutsideTrouble(f"The name of the host {host} has no address.") from None
        known = [ipaddress.ip_address(address[0]) for *_, address in found]
        if not all(addresses.may_reach(host, ip, self._inside) for ip in known):
            raise BadAddress(
                f"{host} is an address inside the operator's network, which accounts cannot reach. The operator can "
                f"name it in {NAME}."
            )
        return known[:MOST_ADDRESSES]


@contextmanager
def _troubles(address: OutsideAddress) -> Iterator[None]:
    """Say in our words what httpcore reports."""
    host = address.host
    try:
        yield
    except httpcore.TimeoutException:
        raise OutsideTrouble(f"{host} did not answer in time.") from None
    except (httpcore.ConnectError, ssl.SSLError) as error:
        cause = error.__cause__ or error.__context__
        refused = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else ""
        why = f": its certificate is refused ({refused})" if refused else ""
        raise OutsideTrouble(f"{host} could not be reached{why}.") from None
    except (httpcore.NetworkError, httpcore.ProtocolError):
        raise OutsideTrouble(f"The answer of {host} broke off.") from None


def _headers(request: OutsideRequest) -> list[tuple[bytes, bytes]]:
    at = request.address
    found = [("host", at.origin.partition("//")[2]), *request.headers]
    if request.body or request.method not in ("GET", "HEAD"):
        found.append(("content-length", str(len(request.body))))
    if any(name.lower() in _CLOSED for name, _ in request.headers):
        raise ValueError("this header is not the caller's to give")
    if request.credential is not None:
        name, value = request.credential
        found = [one for one in found if one[0].lower() != name.lower()] + [(name, value.reveal())]
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in found]
