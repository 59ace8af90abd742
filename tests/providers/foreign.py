"""What the stand-ins of Bedrock and Vertex have in common: a scripted model behind another provider's door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from bot.simulation.anthropic import ModelRequest, SimulatedAnthropic, checks
from bot.simulation.loopback import serving

FIELDS = {
    "anthropic_beta", "anthropic_version", "max_tokens", "messages", "metadata", "output_config", "stop_sequences",
    "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
}  # fmt: skip
"""Those that are known without a beta."""
BETAS = {
    "context-1m-2025-08-07", "interleaved-thinking-2025-05-14", "thinking-display-updates-2026-08-18",
    "thinking-token-count-2026-05-13", "tool-search-tool-2025-10-19",
}  # fmt: skip


class ForeignRefusal(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message = status, code, message


class ForeignModel(SimulatedAnthropic):
    """Scripts as for Anthropic's; `refused` are the refusals, in order."""

    def __init__(self) -> None:
        super().__init__("unused")
        self.refused: list[ForeignRefusal] = []
        self.betas = set(BETAS)

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[Self]:
        model = cls()
        async with serving(model.app(), 0, closing=model._gates.release_all) as bound:
            model.url = f"http://127.0.0.1:{bound}"
            yield model

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self._any, methods=["GET", "POST", "PUT"])])

    def door(self, request: Request, raw: bytes) -> tuple[str, str, bool]:
        """Judge who asks, and return (what they want, the model, whether they want a stream)."""
        raise NotImplementedError

    def refusal(self, refused: ForeignRefusal) -> Response:
        raise NotImplementedError

    def framed(self, body: bytes) -> bytes:
        """Return an event of the stream in the provider's form."""
        return body

    def kind_of_stream(self) -> str:
        return "text/event-stream; charset=utf-8"

    def counted(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}

    def checked(self, body: Mapping[str, Any], betas: list[str], fields: set[str]) -> None:
        if unknown := [beta for beta in betas if beta not in self.betas]:
            raise ForeignRefusal(400, "invalid", f"invalid beta flag: {unknown}")
        more = {"context_management"} if "context-management-2025-06-27" in betas else set()
        for name in body.keys() - FIELDS - fields - more:
            raise ForeignRefusal(400, "invalid", f"{name}: Extra inputs are not permitted")
        for name in body.get("output_config", {}).keys() - {"effort", "format"}:
            raise ForeignRefusal(400, "invalid", f"output_config.{name}: Extra inputs are not permitted")
        if "tool-search-tool-2025-10-19" not in betas:
            for number, tool in enumerate(body.get("tools") or []):
                if "defer_loading" in tool:
                    words = f"tools.{number}.custom.defer_loading: Extra inputs are not permitted"
                    raise ForeignRefusal(400, "invalid", words)

    def plain(self, what: str, asked: ModelRequest) -> Mapping[str, Any]:
        """Return the body of the request without its envelope, after its checks."""
        raise NotImplementedError

    async def _any(self, request: Request) -> Response:
        raw = await request.body()
        asked, size = await self._take(request)
        try:
            what, model, streams = self.door(request, raw)
            if what == "other":
                return self.other(request, raw)
            body = {**self.plain(what, asked), "model": model, "stream": streams}
            checks.request({"anthropic-version": "in the body"}, {"max_tokens": 1, **body}, counts_only=False)
        except ForeignRefusal as refused:
            self.refused.append(refused)
            return self.refusal(refused)
        except checks.Refused as refused:
            found = ForeignRefusal(refused.status, "invalid", refused.message)
            self.refused.append(found)
            return self.refusal(found)
        if what == "count":
            return JSONResponse(self.counted(size // 4 + 1))
        self.requests[self.requests.index(asked)] = seen = replace(asked, body=body)
        answer = self._answer(seen, size, f"req_{self._count:024d}")
        if isinstance(answer, JSONResponse):
            said = json.loads(bytes(answer.body))["error"]
            response = self.refusal(ForeignRefusal(answer.status_code, said["type"], said["message"]))
            for name in ("retry-after",):
                if name in answer.headers:
                    response.headers[name] = answer.headers[name]
            return response
        return Reframed(answer, self)

    def other(self, request: Request, raw: bytes) -> Response:
        raise ForeignRefusal(404, "missing", "Not found")


class Reframed(Response):
    """A scripted answer, event by event in the provider's framing."""

    def __init__(self, inner: Response, model: ForeignModel) -> None:
        super().__init__()
        self._inner, self._model = inner, model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        streams = False

        async def turned(message: Message) -> None:
            nonlocal streams
            if message["type"] == "http.response.start":
                headers = dict(message["headers"])
                if streams := headers[b"content-type"].startswith(b"text/event-stream"):
                    headers[b"content-type"] = self._model.kind_of_stream().encode()
                headers[b"x-amzn-requestid"] = headers.pop(b"request-id")
                message = {**message, "headers": [*headers.items()]}
            elif streams and message["body"]:
                message = {**message, "body": self._model.framed(message["body"])}
            await send(message)

        await self._inner(scope, receive, turned)
