"""envd's Filesystem service."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.e2b_stand_in.link import GuestError
from tests.e2b_stand_in.paths import resolved
from tests.e2b_stand_in.rpc import Stream, failed, first, one_frame, unary
from tests.e2b_stand_in.sandbox import Sandbox

LOOK_EVERY = 0.02
Entries = dict[str, dict[str, Any]]


class FilesystemService:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["path"].rpartition("/")[2]
        sandbox: Sandbox = scope["sandbox"]
        request = Request(scope, receive)
        if method == "WatchDir":
            await self._watch(sandbox, request, Stream(scope, receive, send))
            return
        works = {
            "Stat": self._stat,
            "ListDir": self._list,
            "MakeDir": self._make,
            "Move": self._move,
            "Remove": self._remove,
        }
        work = works.get(method)
        if work is None:
            response: Response = failed(GuestError("unimplemented", f"no method {method}"))
        else:
            found = work

            async def run(body: dict[str, Any]) -> dict[str, Any]:
                return await found(sandbox, {**body, "user": scope["user"]})

            response = await unary(request, run)
        await response(scope, receive, send)

    async def _stat(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        return await self._one(sandbox, "stat", body)

    async def _make(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        return await self._one(sandbox, "mkdir", body)

    async def _move(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        user = body["user"]
        source, target = resolved(body.get("source", ""), user), resolved(body.get("destination", ""), user)
        return await self._one(sandbox, "move", {"path": source, "user": user}, to=target)

    async def _remove(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        await sandbox.machine.link.ask("remove", path=resolved(body.get("path", ""), body["user"]))
        return {}

    async def _list(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        entries = await listing(sandbox, resolved(body.get("path", ""), body["user"]), int(body.get("depth", 1)))
        return {"entries": [_told(each) for each in entries.values()]}

    async def _one(self, sandbox: Sandbox, do: str, body: dict[str, Any], **values: Any) -> dict[str, Any]:
        user = body["user"]
        path = resolved(body.get("path", ""), user)
        answer, _ = await sandbox.machine.link.ask(do, path=path, user=user, **values)
        return {"entry": _told(answer["entry"])}

    async def _watch(self, sandbox: Sandbox, request: Request, stream: Stream) -> None:
        """By looking again and again: late by one look, and blind to what came and went between two."""
        body = await one_frame(request)
        path, depth = resolved(body.get("path", ""), request.scope["user"]), 1000 if body.get("recursive") else 1
        interrupted = sandbox.interrupted
        try:
            before = await listing(sandbox, path, depth)
            await stream.event({"start": {}})
            ended = await first(self._tell(sandbox, (path, depth), before, stream), stream.left(), interrupted.wait())
        except GuestError as error:
            await stream.end(error)
            return
        if ended == 2:
            said = f"the connection to sandbox {sandbox.id} ended before the stream completed"
            await stream.end(GuestError("unavailable", said))

    async def _tell(self, sandbox: Sandbox, what: tuple[str, int], before: Entries, stream: Stream) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            now = await listing(sandbox, *what)
            for name, kind in _changes(before, now):
                await stream.event({"filesystem": {"name": name[len(what[0]) :].lstrip("/"), "type": kind}})
            before = now


async def listing(sandbox: Sandbox, path: str, depth: int) -> Entries:
    answer, _ = await sandbox.machine.link.ask("list", path=path, depth=depth)
    return {each["path"]: each for each in answer["entries"]}


def _changes(before: Entries, now: Entries) -> list[tuple[str, str]]:
    found = [(name, "EVENT_TYPE_REMOVE") for name in before if name not in now]
    for name, about in now.items():
        old = before.get(name)
        if old is None:
            found.append((name, "EVENT_TYPE_CREATE"))
        elif (old["modified"], old["size"]) != (about["modified"], about["size"]):
            found.append((name, "EVENT_TYPE_WRITE"))
        elif old["mode"] != about["mode"]:
            found.append((name, "EVENT_TYPE_CHMOD"))
    return found


def _told(entry: dict[str, Any]) -> dict[str, Any]:
    told = dict(entry)
    seconds, rest = divmod(told.pop("modified"), 1_000_000_000)
    stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return told | {"modifiedTime": f"{stamp}.{rest:09d}Z"}
