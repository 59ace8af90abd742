"""envd's Process service."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.e2b_stand_in.clock import Clock
from tests.e2b_stand_in.fan import Event, Reader
from tests.e2b_stand_in.link import GuestError
from tests.e2b_stand_in.machine import PATH
from tests.e2b_stand_in.paths import home_of, resolved
from tests.e2b_stand_in.processes import Order, Process
from tests.e2b_stand_in.rpc import Stream, failed, first, frame, frames, one_frame, pump, unary
from tests.e2b_stand_in.sandbox import Sandbox

SIGNALS = {"SIGNAL_SIGKILL": 9, "SIGNAL_SIGTERM": 15, 9: 9, 15: 15}
KEEPALIVE = 90.0
EXPIRED = GuestError("deadline_exceeded", "context deadline exceeded")


class ProcessService:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["path"].rpartition("/")[2]
        sandbox: Sandbox = scope["sandbox"]
        if method in ("Start", "Connect"):
            await self._streaming(method, sandbox, Request(scope, receive), Stream(scope, receive, send))
            return
        request = Request(scope, receive)
        if method == "StreamInput":
            response = await self._stream_input(sandbox, request)
        else:
            response = await self._unary(method, sandbox, request)
        await response(scope, receive, send)

    # --- streams

    async def _streaming(self, method: str, sandbox: Sandbox, request: Request, stream: Stream) -> None:
        body = {**await one_frame(request), "user": request.scope["user"]}
        timeout = int(stream.headers.get("connect-timeout-ms", 0)) / 1000 or None
        deadline = None if timeout is None else self._clock.now() + timeout
        interrupted = sandbox.interrupted
        try:
            if method == "Start":
                reader: Reader | None = await self._start(sandbox, body, timeout, stream)
            else:
                reader = await self._connect(sandbox, body, stream)
        except GuestError as error:
            await stream.end(error)
            return
        if reader is None:
            return
        try:
            ended = await first(
                pump(stream, reader, _wrapped),
                stream.left(),
                interrupted.wait(),
                self._until(deadline),
                self._keep_alive(stream),
            )
        finally:
            reader.leave()
        if ended == 2:
            said = f"the connection to sandbox {sandbox.id} ended before the stream completed"
            await stream.end(GuestError("unavailable", said))
        elif ended == 3:
            await stream.end(EXPIRED)

    async def _start(self, sandbox: Sandbox, body: dict[str, Any], timeout: float | None, stream: Stream) -> Reader:
        config, user = body.get("process", {}), body["user"]
        cwd = resolved(config.get("cwd", ""), user)
        if "pty" in body:
            raise GuestError("unimplemented", "the stand-in has no terminals")
        try:
            await sandbox.machine.link.ask("stat", path=cwd)
        except GuestError as error:
            raise GuestError("invalid_argument", f"cwd '{cwd}' does not exist") from error
        own = {"PATH": PATH, "HOME": home_of(user), "USER": user, "LOGNAME": user}
        env = {**own, **sandbox.env, **config.get("envs", {})}
        argv = [config.get("cmd", ""), *config.get("args", [])]
        order = Order(argv, config, env, cwd, bool(body.get("stdin", True)), user, body.get("tag"), timeout)
        process = Process(sandbox.machine, order)
        reader = process.fan.join()
        await sandbox.processes.start(process)
        await stream.event(_wrapped({"start": {"pid": process.pid}}))
        return reader

    async def _connect(self, sandbox: Sandbox, body: dict[str, Any], stream: Stream) -> Reader | None:
        selector = body.get("process", {})
        try:
            process = sandbox.processes.find(selector)
        except GuestError:
            remembered = sandbox.processes.end_of(selector)
            if remembered is None:
                raise
            pid, end = remembered
            await stream.event(_wrapped({"start": {"pid": pid}}))
            await stream.event(_wrapped(end))
            await stream.end()
            return None
        reader = process.fan.join()
        await stream.event(_wrapped({"start": {"pid": process.pid}}))
        return reader

    async def _until(self, deadline: float | None) -> None:
        if deadline is None:
            await asyncio.Event().wait()
        else:
            await self._clock.sleep_until(deadline)

    async def _keep_alive(self, stream: Stream) -> None:
        said = stream.headers.get("keepalive-ping-interval", "")
        interval = float(said) if said.isdigit() else KEEPALIVE
        while True:
            await self._clock.sleep_until(self._clock.now() + interval)
            await stream.event(_wrapped({"keepalive": {}}))

    async def _stream_input(self, sandbox: Sandbox, request: Request) -> Response:
        process: Process | None = None
        end = frame({}, flags=2)
        try:
            async for message in frames(request):
                if "start" in message:
                    process = sandbox.processes.find(message["start"].get("process", {}))
                elif "data" in message and process is not None:
                    await process.write(base64.b64decode(message["data"]["input"].get("stdin", "")))
            end = frame({}) + end
        except GuestError as error:
            end = frame({"error": {"code": error.code, "message": str(error)}}, flags=2)
        return Response(end, media_type="application/connect+json")

    # --- single calls

    async def _unary(self, method: str, sandbox: Sandbox, request: Request) -> Response:
        work = {
            "List": self._list,
            "SendInput": self._send_input,
            "SendSignal": self._send_signal,
            "CloseStdin": self._close_stdin,
            "Update": self._update,
        }.get(method)
        if work is None:
            return failed(GuestError("unimplemented", f"no method {method}"))
        found = work

        async def run(body: dict[str, Any]) -> dict[str, Any]:
            return await found(sandbox, body)

        return await unary(request, run)

    async def _list(self, sandbox: Sandbox, _: dict[str, Any]) -> dict[str, Any]:
        told = []
        for process in sandbox.processes.live:
            about = {"pid": process.pid, "config": process.order.config}
            told.append(about | ({"tag": process.order.tag} if process.order.tag else {}))
        return {"processes": told}

    async def _send_input(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        process = sandbox.processes.find(body.get("process", {}))
        await process.write(base64.b64decode(body.get("input", {}).get("stdin", "")))
        return {}

    async def _send_signal(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        process = sandbox.processes.find(body.get("process", {}))
        number = SIGNALS.get(body.get("signal", ""))
        if number is None:
            raise GuestError("unimplemented", f"invalid signal: {body.get('signal')}")
        await sandbox.processes.send_signal(process, number)
        return {}

    async def _close_stdin(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        sandbox.processes.find(body.get("process", {})).close_stdin()
        return {}

    async def _update(self, sandbox: Sandbox, body: dict[str, Any]) -> dict[str, Any]:
        sandbox.processes.find(body.get("process", {}))
        return {}


def _wrapped(event: Event) -> dict[str, Any]:
    return {"event": event}
