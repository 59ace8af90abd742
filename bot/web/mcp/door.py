"""The agents' way to MCP servers: takes a turn's token, and calls only the tools that the turn's config has opened.

The agent takes us for the server. We ask the real one ourselves, with its credential, in a session that the agent never
sees. We trust neither the agent's requests nor the server's answers."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.errors import TransientError
from bot.outside.client import OutsideClient
from bot.sessions import tool_servers
from bot.sessions.tool_servers import OpenServer
from bot.store import gateway as rows
from bot.store import sessions, tool_calls
from bot.store.base import Store
from bot.store.gateway import Grant
from bot.store.tool_calls import CallVerdict, NewCall
from bot.vault import Vault
from bot.web.gateway import clients, dialect
from bot.web.gateway.clients import STORM, GatewayRefusal, Presence, read_body
from bot.web.mcp import PATH, messages
from bot.web.mcp.credentials import McpCredentials
from bot.web.mcp.messages import Asked, Nonsense
from bot.web.mcp.remote import LARGE, McpTrouble, RemoteServer
from bot.web.mcp.sessions import OpenSessions
from sandbox.agents.base import one_line

log = logging.getLogger(__name__)

ROUTE = re.compile(rf"{PATH}([a-z0-9](?:[a-z0-9-]{{0,38}}[a-z0-9])?)")
MOST_BODY = 1 << 20
BODY_SECONDS = 30.0
CHECK_SECONDS = 1.0
MOST_CALLS = 500
"""Of one turn."""
MOST_AT_ONCE = 8
"""Requests of one turn."""
NOT_OPEN = "The server {} is not open for this turn."
NO_YES = (
    "Nobody has said yes to this call of {tool} with exactly these arguments. Call the tool once more, as a tool of "
    "yours: people are asked then. If they were asked, the arguments are too long, or hold something secret."
)
NOT_OPENED = "The tool {tool} of {name} is not open here; the repository's config names those that are."
TOO_MANY = "This turn has made {most} calls of MCP tools, which is all that it may make."
TOO_LARGE = "The MCP server {name} answered with more than {most:,} bytes, which is too much to pass on."


@dataclass(frozen=True)
class _Caller:
    server: str
    sha256: str
    grant: Grant


class McpDoor:
    """An ASGI application below the gateway's."""

    def __init__(self, store: Store, vault: Vault, client: OutsideClient) -> None:
        self._store = store
        self._client = client
        self._credentials = McpCredentials(store, vault, client)
        self.sessions = OpenSessions(self._is_live)
        self._at_work: Counter[str] = Counter()

    async def close(self) -> None:
        await self.sessions.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller = await self._caller(scope)
            if self._at_work[caller.sha256] >= MOST_AT_ONCE:
                raise clients.too_many("turn")
            self._at_work[caller.sha256] += 1
            try:
                await self._admitted(caller, scope, receive, send)
            finally:
                self._at_work[caller.sha256] -= 1
                self._at_work += Counter()  # drops those at zero
        except GatewayRefusal as refusal:
            words = messages.error(None, messages.INVALID, refusal.message)
            await _json(words, refusal.status)(scope, receive, send)
        except TransientError as error:
            log.warning("a call of an MCP tool met an absent store", extra={"error": str(error)})
            await _json(messages.error(None, messages.INVALID, clients.BUSY), 503)(scope, receive, send)
        except ClientDisconnect:
            return

    async def _caller(self, scope: Scope) -> _Caller:
        sent = (scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")).decode("latin-1")
        found = ROUTE.fullmatch(sent)
        if found is None or scope["type"] != "http" or scope["query_string"]:
            raise GatewayRefusal(404, "path", "Not found")
        sha256 = rows.digest(dialect.token(scope["headers"]))
        grant = await rows.grant(self._store, sha256)
        is_agents = grant is not None and bool(grant.model)  # other tokens of a turn open no tools
        if grant is None or not is_agents or not grant.is_live(self._store.now()) or grant.refused == STORM:
            raise GatewayRefusal(401, "unknown", "This token is not valid, or not valid any more.")
        if scope["method"] != "POST":  # nobody here speaks unasked, and the client has no session to end
            raise GatewayRefusal(405, "path", "Only POST is possible here.")
        return _Caller(found[1], sha256, grant)

    async def _is_live(self, sha256: str) -> bool:
        try:
            grant = await rows.grant(self._store, sha256)
        except TransientError:
            return True  # it is asked again in a moment
        return grant is not None and grant.is_live(self._store.now())

    async def _admitted(self, caller: _Caller, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(scope, receive, BODY_SECONDS, _under(MOST_BODY))
        try:
            asked = await asyncio.to_thread(messages.read, body) if len(body) > LARGE else messages.read(body)
        except Nonsense as nonsense:
            code = messages.PARSE if str(nonsense) == "is not JSON" else messages.INVALID
            await _json(messages.error(None, code, f"The message {nonsense}."), 400)(scope, receive, send)
            return
        if asked.id is None:
            await Response(status_code=202)(scope, receive, send)
            return
        presence = Presence(receive, send, partial(self._is_live, caller.sha256), CHECK_SECONDS)
        await presence.during(self._serve(caller, asked, scope, receive, presence.send))

    async def _serve(self, caller: _Caller, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        match asked.method:
            case "initialize":
                answer = messages.result(asked, messages.hello(asked, caller.server))
            case "ping":
                answer = messages.result(asked, {})
            case "tools/list" | "tools/call":
                await self._about_tools(caller, asked, partial(_sent, scope, receive, send))
                return
            case _:
                answer = messages.error(asked, messages.NO_METHOD, "Method not found")
        await _sent(scope, receive, send, msgspec.json.encode(answer))

    async def _about_tools(self, caller: _Caller, asked: Asked, say: Any) -> None:
        turn = await sessions.turn(self._store, caller.grant.key)
        servers = await tool_servers.opened(self._store, turn, caller.grant.installation)
        server = servers.get(caller.server)
        if server is None:
            words = messages.error(asked, messages.BAD_PARAMS, NOT_OPEN.format(caller.server))
            await say(msgspec.json.encode(words))
        elif asked.method == "tools/list":
            found = messages.result(asked, {"tools": await self._listed(caller, server)})
            await say(await self._without(server, msgspec.json.encode(found)))
        else:
            await self._called(caller, server, asked, say)

    async def _listed(self, caller: _Caller, server: OpenServer) -> list[dict[str, Any]]:
        try:
            listed = await self._remote(caller, server).tools()
        except McpTrouble as trouble:
            log.info("an MCP server did not list its tools", extra={"server": server.name, "error": str(trouble)})
            return messages.unknown(server.tools, f"{trouble} A call tries again.")
        return await asyncio.to_thread(messages.tools, server.name, listed, server.tools)

    async def _called(self, caller: _Caller, server: OpenServer, asked: Asked, say: Any) -> None:
        tool, arguments = asked.params.get("name"), asked.params.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            words = messages.error(asked, messages.BAD_PARAMS, "A call needs the tool's name and its arguments.")
            await say(msgspec.json.encode(words))
            return
        if not messages.is_shallow(arguments):
            await say(
                msgspec.json.encode(messages.error(asked, messages.BAD_PARAMS, "The arguments are nested too deeply."))
            )
            return
        digest = tool_servers.call_digest(tool_servers.tool_name(server.name, tool), arguments)
        call = NewCall(
            caller.grant.key, server.name, one_line(tool, 80), digest, tool in server.tools, asks=server.asks
        )
        call_id, verdict = await tool_calls.begin(self._store, call, MOST_CALLS)
        if verdict is not CallVerdict.BEGUN:
            await say(msgspec.json.encode(messages.result(asked, messages.failed(_refused(call, verdict)))))
            return
        ok, size = False, 0
        try:
            body, ok = await self._answer(caller, server, asked, tool, arguments)
            size = len(body)
            await say(body)
        finally:
            await asyncio.shield(tool_calls.end(self._store, call_id, ok=ok, size=size))

    async def _answer(
        self, caller: _Caller, server: OpenServer, asked: Asked, tool: str, arguments: dict[str, Any]
    ) -> tuple[bytes, bool]:
        try:
            found = await self._remote(caller, server).call(tool, arguments)
        except McpTrouble as trouble:
            found = messages.failed(str(trouble))
        body = msgspec.json.encode(messages.result(asked, found))
        if len(body) > messages.MOST_RESULT_BYTES:
            words = TOO_LARGE.format(name=server.name, most=messages.MOST_RESULT_BYTES)
            found = messages.failed(words)
            body = msgspec.json.encode(messages.result(asked, found))
        return await self._without(server, body), not found.get("isError")

    async def _without(self, server: OpenServer, body: bytes) -> bytes:
        hidden = self._credentials.hidden(server.service)
        if len(body) > LARGE:
            return await asyncio.to_thread(messages.without, body, hidden)
        return messages.without(body, hidden)

    def _remote(self, caller: _Caller, server: OpenServer) -> RemoteServer:
        service = server.service

        def make() -> RemoteServer:
            credential = partial(self._credentials.header, service)
            return RemoteServer(server.name, service.address, self._client, credential)

        return self.sessions.of((caller.sha256, server.name), service.stored_at, make)


def _refused(call: NewCall, verdict: CallVerdict) -> str:
    match verdict:
        case CallVerdict.NO_YES:
            return NO_YES.format(tool=call.tool)
        case CallVerdict.NOT_OPEN:
            return NOT_OPENED.format(tool=call.tool, name=call.server)
    return TOO_MANY.format(most=MOST_CALLS)


def _under(most: int) -> Callable[[int], None]:
    left = most

    def take(size: int) -> None:
        nonlocal left
        left -= size
        if left < 0:
            raise GatewayRefusal(413, "too_large", f"A message may have {most:,} bytes.")

    return take


def _json(document: dict[str, Any], status: int = 200) -> Response:
    headers = {"allow": "POST"} if status == 405 else None
    return Response(msgspec.json.encode(document), status, headers, "application/json")


async def _sent(scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
    await Response(body, media_type="application/json")(scope, receive, send)
