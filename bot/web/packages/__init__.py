"""Lets package clients in environments read from the registries that their repository opens, and nothing else.

A client shows a token that opens only registries. The host adds the registry's credential, which never goes inside.
Everything that a client sends counts as hostile: only addresses that the dialect writes are asked (`bot/registries`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from bot.errors import BotError, TransientError
from bot.outside.client import OutsideTrouble
from bot.outside.registries import PATH
from bot.registries.shape import (
    MOST_OF_A_QUESTION,
    READING,
    IndexPage,
    RegistryRefusal,
    RegistryRequest,
    Use,
    token_in,
)
from bot.settings import Secret
from bot.store.base import Store
from bot.web.gateway.clients import GatewayRefusal, RequestPlace, Room, read_body
from bot.web.packages.fetched import FetchedPackages
from bot.web.packages.fetching import PackageAnswer, PackageFetcher, PackageQuestion
from bot.web.packages.opened import OpenedRegistries, Openings, shown_token

__all__ = ["PATH", "PackageGateway"]

log = logging.getLogger(__name__)

MOST_AT_ONCE = 64
"""Requests of one token; package clients open 16 to 50 connections."""
WHOLE_SECONDS = 900.0
BODY_SECONDS = 30.0
FINISHING_SECONDS = 1.0
THREADED = 16 << 10
"""Larger indexes are rewritten in a thread."""
_ROUTE = re.compile(r"([a-z0-9-]{1,40})/(.*)", re.DOTALL)
_INSIDE = re.compile(r"(?:127\.0\.0\.1|localhost):[0-9]{1,5}")
_ACCEPT = re.compile(r"[!-~ ]{0,400}")


class PackageGateway:
    """An ASGI application; the metrics read `outcomes` and `bytes`."""

    def __init__(
        self, store: Store, fetcher: PackageFetcher, key: Secret, clock: Callable[[], float] = time.time
    ) -> None:
        self._openings = Openings(store, key, clock)
        self._fetcher = fetcher
        self._room = Room()
        self._fetched = FetchedPackages(store)
        self.outcomes: Counter[str] = Counter(dict.fromkeys(("fetched", "cached", "refused", "failed"), 0))
        self.bytes: Counter[str] = Counter(dict.fromkeys(("registry", "cache"), 0))

    async def close(self) -> None:
        """Store what was noted and close the connections; call it after the last request."""
        await self._fetched.close()
        await self._fetcher.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        answering = _Answering(send)
        try:
            place = _place(scope)
            opened = await self._openings.of(place.token or shown_token(scope["headers"]))
            with self._room.place(opened.sha256, MOST_AT_ONCE, opened.installation) as room:
                question, page = await self._question(scope, receive, opened, place)
                work = self._answer(question, page, room, answering.send)
                await _while_connected(receive, work)
        except ClientDisconnect:
            return
        except (BotError, GatewayRefusal) as error:
            self.outcomes["failed" if isinstance(error, OutsideTrouble | TransientError) else "refused"] += 1
            log.info("no package for a session", extra={"error": str(error)})
            if not answering.began:  # else the client sees that the answer broke off
                await _refusal(error)(scope, receive, send)

    async def _question(
        self, scope: Scope, receive: Receive, opened: OpenedRegistries, place: RoutePlace
    ) -> tuple[PackageQuestion, IndexPage]:
        registry, path = opened.meant(place.registry, place.path)
        headers = {one.decode("latin-1").lower(): value.decode("latin-1") for one, value in scope["headers"]}
        method, query = scope["method"], scope["query_string"].decode("latin-1")
        target = registry.door.dialect.target(RegistryRequest(method, path, query), registry.signer)
        if opened.is_silent(registry, target.subject):
            raise RegistryRefusal(404, "Another registry of this repository answers for this package.")
        accept = headers.get("accept", "*/*")
        if not _ACCEPT.fullmatch(accept):
            raise RegistryRefusal(400, "The accept header is too long.")
        body, beside = b"", dict[str, str]()
        if target.use is Use.ADVICE:
            body = await _body(scope, receive)
            beside = {"content-type": "application/json"}
        inside = headers.get("x-forgehand-inside") or headers.get("host", "")
        if not _INSIDE.fullmatch(inside):
            raise RegistryRefusal(400, "The Host header must be the forwarder's own address.")
        page = IndexPage(target.url, "", f"http://{inside}{PATH}{registry.service.name}/", registry.signer)
        return PackageQuestion(method, opened, registry, target, accept, body, beside), page

    async def _answer(self, question: PackageQuestion, page: IndexPage, room: RequestPlace, send: Send) -> None:
        async with (
            asyncio.timeout(WHOLE_SECONDS),
            self._fetcher.answer(question) as answer,
        ):
            if question.target.rewritten and answer.status == 200 and question.method == "GET":
                size = await self._rewritten(question, page, answer, room, send)
            else:
                size = await _streamed(question, answer, send)
        self.outcomes["cached" if answer.cached else "fetched"] += 1
        self.bytes["cache" if answer.cached else "registry"] += size
        if (package := question.target.package) is not None and answer.status == 200 and question.method == "GET":
            self._fetched.note(question.opened.key, question.registry.service.name, package, size, cached=answer.cached)

    async def _rewritten(
        self, question: PackageQuestion, page: IndexPage, answer: PackageAnswer, room: RequestPlace, send: Send
    ) -> int:
        body = await answer.whole(room.take)
        there = IndexPage(answer.url, answer.content_type, page.inside, page.signer)
        rewrite = question.registry.door.dialect.rewrite
        if len(body) > THREADED:
            async with room.reading():  # it computes for seconds, so one at a time
                found = await asyncio.to_thread(rewrite, body, there)
        else:
            found = rewrite(body, there)
        await send(_start(200, answer.content_type, len(found)))
        await send({"type": "http.response.body", "body": found})
        return len(body)


class _Answering:
    def __init__(self, send: Send) -> None:
        self._send = send
        self.began = False

    async def send(self, message: Message) -> None:
        self.began = True
        await self._send(message)


async def _streamed(question: PackageQuestion, answer: PackageAnswer, send: Send) -> int:
    """Pass an answer on as it comes; raise our own words instead of the registry's if it says no."""
    if answer.status != 200:
        raise RegistryRefusal(404 if answer.status in (404, 410, 451) else 502, f"The registry says {answer.status}.")
    length = None if question.target.rewritten else answer.size
    await send(_start(200, answer.content_type, length, answer.encoding))
    size = 0
    if question.method != "HEAD":
        async for chunk in answer.chunks:
            size += len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    return size


def _start(status: int, content_type: str, size: int | None, encoding: str = "") -> Message:
    headers = [(b"content-type", content_type.encode("latin-1")), (b"cache-control", b"no-cache")]
    if size is not None:
        headers.append((b"content-length", str(size).encode()))
    if encoding:
        headers.append((b"content-encoding", encoding.encode("latin-1")))
    return {"type": "http.response.start", "status": status, "headers": headers}


@dataclass(frozen=True)
class RoutePlace:
    registry: str
    token: str
    """Shown in the path; empty if a header shows it."""
    path: str


def _place(scope: Scope) -> RoutePlace:
    """Take the path as it was sent, before anything in it is decoded."""
    sent = (scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")).decode("latin-1")
    found = _ROUTE.fullmatch(sent.removeprefix(PATH)) if sent.startswith(PATH) else None
    if found is None:
        raise RegistryRefusal(404, "Not found")
    if scope["method"] not in (*READING, "POST"):
        raise RegistryRefusal(405, "Registries are open for reading only.")
    token, path = token_in(found[2])
    return RoutePlace(found[1], token, path)


async def _body(scope: Scope, receive: Receive) -> bytes:
    taken = 0

    def take(size: int) -> None:
        nonlocal taken
        taken += size
        if taken > MOST_OF_A_QUESTION:
            raise RegistryRefusal(413, f"A question may have {MOST_OF_A_QUESTION >> 20} MiB at most.")

    return await read_body(scope, receive, BODY_SECONDS, take)


async def _while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, and leave it if the client goes away: a package may have gigabytes."""

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, gone = asyncio.create_task(work), asyncio.create_task(until_gone())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({working}, timeout=FINISHING_SECONDS)  # a client that has all of it goes away too
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.wait({working, gone})
    with contextlib.suppress(asyncio.CancelledError):
        try:
            working.result()
        except TimeoutError:
            raise OutsideTrouble("The registry took too long.") from None


def _refusal(error: BotError | GatewayRefusal) -> PlainTextResponse:
    if isinstance(error, GatewayRefusal):
        wait = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
        return PlainTextResponse(f"{error.message}\n", error.status, wait)
    if isinstance(error, TransientError):
        return PlainTextResponse("Forgehand is busy. Try again.\n", 503, {"retry-after": "2"})
    status = error.status if isinstance(error, RegistryRefusal) else 502
    asks = {"www-authenticate": 'Basic realm="forgehand"'} if status == 401 else None
    return PlainTextResponse(f"{error}\n", status, asks)
