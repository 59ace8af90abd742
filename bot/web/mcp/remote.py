"""One session with an MCP server over Streamable HTTP: opened when it is needed, used by one turn, and ended.

Every trouble becomes one sentence about the server, which the agent reads as the result of its call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from bot.errors import BotError, UserError
from bot.outside.client import OutsideAnswer, OutsideClient, OutsideRequest, OutsideTrouble, Patience
from bot.settings import Secret
from bot.web.mcp import messages
from bot.web.mcp.event_stream import EventReader
from bot.web.mcp.messages import McpRefused, Nonsense
from sandbox.agents.base import one_line

CALL_SECONDS = 120.0
HELLO_SECONDS = 20.0
LISTING_SECONDS = 30.0
"""For all pages together: an agent, or an owner at a page, waits for them."""
END_SECONDS = 5.0
MOST_BYTES = 4 << 20
"""The most of one answer with everything beside it. A result that passes is smaller."""
LARGE = 64 << 10
"""Larger texts are decoded in a thread, because nothing may hold the loop."""
MOST_PAGES = 20
MOST_LISTED = 1_000
MOST_SESSION_ID = 1_000
JSON, STREAM = "application/json", "text/event-stream"
SESSION, VERSION = "mcp-session-id", "mcp-protocol-version"
CLIENT = {"name": "forgehand", "version": "1"}

Header = tuple[str, Secret]
FindCredential = Callable[[bool], Awaitable[Header | None]]
"""Returns the header of a request; True: the one before was refused, so a new one is needed."""


class McpTrouble(BotError):
    """The server gave no usable answer. The text says so in one sentence, without a secret."""


class _SessionLost(Exception):
    """The server does not know our session any more, so it did not act."""


class _NotLetIn(Exception):
    """The server did not take the credential, so it did not act."""


class RemoteServer:
    def __init__(self, name: str, url: str, client: OutsideClient, credential: FindCredential) -> None:
        self.name = name
        self.seconds = CALL_SECONDS
        self._url = url
        self._client = client
        self._credential = credential
        self._opening = asyncio.Lock()
        self._open = False
        self._session: str | None = None
        self._version = messages.VERSIONS[0]
        self._number = 0
        self._renews = False
        """The next request needs another credential than the last."""

    async def tools(self) -> list[Any]:
        """List what the server says of its tools, page by page. Raise McpTrouble."""
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                return await self._listed()
        except TimeoutError:
            raise self._trouble(f"did not list its tools within {LISTING_SECONDS:.0f} seconds") from None

    async def _listed(self) -> list[Any]:
        found: list[Any] = []
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = await self._asked("tools/list", params, HELLO_SECONDS)
            found += page["tools"] if isinstance(page.get("tools"), list) else []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or len(cursor) > MOST_SESSION_ID or len(found) >= MOST_LISTED:
                break
            params = {"cursor": cursor}
        return found[:MOST_LISTED]

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return its result as it may pass. Raise McpTrouble."""
        found = await self._asked("tools/call", {"name": tool, "arguments": arguments}, self.seconds)
        try:
            return messages.outcome(found)
        except Nonsense as nonsense:
            raise self._nonsense(nonsense) from None

    async def end(self) -> None:
        """Tell the server that the session is over; it may not listen."""
        session, self._session, self._open = self._session, None, False
        if session is None:
            return
        with contextlib.suppress(BotError, TimeoutError, _NotLetIn, _SessionLost):
            async with asyncio.timeout(END_SECONDS), self._sent("DELETE", b"", session):
                pass

    async def _asked(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request; begin again once if the server forgot us, or took the credential for an old one."""
        try:
            async with asyncio.timeout(seconds):
                return await self._tried(method, params)
        except TimeoutError:
            raise self._trouble(f"did not answer within {seconds:.0f} seconds") from None
        except McpRefused as refused:
            raise self._trouble(f"refused: {refused}" if str(refused) else "refused, without a reason") from None
        except Nonsense as nonsense:
            raise self._nonsense(nonsense) from None
        except (OutsideTrouble, UserError) as trouble:
            raise self._trouble(f"is out of reach: {trouble}") from None
        except _SessionLost:
            raise self._trouble("forgets its sessions as soon as they have begun") from None
        except _NotLetIn:
            raise self._trouble("does not accept the stored credential") from None

    async def _tried(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            await self._begin()
            return await self._request(method, params)
        except (_SessionLost, _NotLetIn) as lost:
            self._open, self._session = False, None
            self._renews = isinstance(lost, _NotLetIn)
        await self._begin()
        return await self._request(method, params)

    async def _begin(self) -> None:
        async with self._opening:
            if self._open:
                return
            hello = {"protocolVersion": messages.VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT}
            self._session = None
            found = await self._request("initialize", hello)
            version = found.get("protocolVersion")
            if version not in messages.VERSIONS:
                raise Nonsense("speaks another version of the protocol")
            self._version = version
            async with self._sent("POST", messages.notification("notifications/initialized"), self._session) as answer:
                self._judge(answer)
            self._open = True

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        number, session = self._number, None if method == "initialize" else self._session
        body = messages.request(number, method, params)
        async with self._sent("POST", body, session) as answer:
            self._judge(answer)
            if method == "initialize":
                self._session = _session_of(answer)
            async for message in _messages(answer):
                if (found := messages.answered(message, number)) is not None:
                    return found
        raise Nonsense("ends before the answer")

    @contextlib.asynccontextmanager
    async def _sent(self, method: str, body: bytes, session: str | None) -> AsyncIterator[OutsideAnswer]:
        headers = [("accept", f"{JSON}, {STREAM}"), ("accept-encoding", "identity"), ("user-agent", "forgehand")]
        if body:
            headers.append(("content-type", JSON))
        if session is not None or self._open:
            headers.append((VERSION, self._version))
        if session is not None:
            headers.append((SESSION, session))
        renews, self._renews = self._renews, False
        credential = await self._credential(renews)
        address, patience = self._client.address(self._url), Patience(read_seconds=self.seconds)
        request = OutsideRequest(method, address, headers, body, credential, patience)
        async with self._client.ask(request) as answer:
            yield answer

    def _judge(self, answer: OutsideAnswer) -> None:
        """Raise unless the status promises an answer."""
        status = answer.status
        if status in (401, 403):
            raise _NotLetIn
        if status == 404 and self._session is not None:
            raise _SessionLost
        if 300 <= status < 400:
            raise self._trouble("redirects to another address, which must be stored instead")
        if not 200 <= status < 300:
            raise self._trouble(f"answered with the status {status}")

    def _trouble(self, what: str) -> McpTrouble:
        return McpTrouble(one_line(f"The MCP server {self.name} {what.rstrip('.')}.", 600))

    def _nonsense(self, nonsense: Nonsense) -> McpTrouble:
        return self._trouble(f"sent nonsense: its answer {nonsense}")


def _session_of(answer: OutsideAnswer) -> str | None:
    session = answer.headers.get(SESSION)
    if session is None:
        return None
    if not (session.isascii() and session.isprintable() and 0 < len(session) <= MOST_SESSION_ID):
        raise Nonsense("names a session with odd characters")
    return session


async def _messages(answer: OutsideAnswer) -> AsyncIterator[Any]:
    """Yield the messages of an answer; a stream may hold others before it."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON:
        yield await _decoded(await answer.whole(MOST_BYTES))
    elif kind == STREAM:
        reader = EventReader()
        async for chunk in answer.chunks(MOST_BYTES):
            for data in reader.feed(chunk):
                yield await _decoded(data)
    else:
        raise Nonsense("is neither JSON nor a stream of events")


async def _decoded(body: bytes) -> Any:
    return await asyncio.to_thread(messages.decode, body) if len(body) > LARGE else messages.decode(body)
