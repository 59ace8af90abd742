"""The server: checks a request, finds its place in a script, and answers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.simulation.anthropic import checks, wire
from bot.simulation.anthropic.answering import Plan, ScriptedAnswer, with_preludes
from bot.simulation.anthropic.gates import Gates
from bot.simulation.anthropic.reading import ModelRequest
from bot.simulation.anthropic.script import Answer, Cut, Fail, Prelude, Say, Script, Slow, Wait
from bot.simulation.loopback import serving

SIDE_ANSWER = Say("Work on the repository")
"""The answer to requests without tools: the client's own questions (a title, a summary), never the agent's work."""


class SimulatedAnthropic:
    """Use `async with SimulatedAnthropic.running(api_key=…) as model:`; scripts may be set at any time."""

    def __init__(self, api_key: str, oauth_token: str | None = None) -> None:
        self.url = ""
        self.api_keys = [api_key]
        """Change it to revoke or rotate."""
        self.oauth_tokens = [oauth_token] if oauth_token else []
        self.requests: list[ModelRequest] = []
        """All requests: refused ones, side questions and counts too."""
        self.gone = 0
        """The number of answers whose client left before their end."""
        self._changed = asyncio.Condition()
        self._scripts: dict[str, Script] = {}
        self._default = Script([Say("Done.")])
        self._side: Answer = SIDE_ANSWER
        self._gates = Gates()
        self._used: Counter[tuple[str | None, int, int]] = Counter()
        self._count = 0

    @classmethod
    @asynccontextmanager
    async def running(cls, api_key: str, *, oauth_token: str | None = None, port: int = 0) -> AsyncIterator[Self]:
        model = cls(api_key, oauth_token)
        async with serving(model.app(), port, closing=model._gates.release_all) as bound:
            model.url = f"http://127.0.0.1:{bound}"
            yield model

    def app(self) -> Starlette:
        every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/{path:path}", self._nothing, methods=every),
            ]
        )

    def script(self, name: str, script: Script) -> None:
        """Set the script for conversations whose latest marker is `[[scenario:NAME]]`."""
        self._scripts[name] = script

    def default(self, script: Script) -> None:
        self._default = script

    def side_answer(self, answer: Answer) -> None:
        self._side = answer

    def release(self, name: str) -> None:
        """Open a Wait or a hold permanently."""
        self._gates.release(name)

    async def reached(self, name: str, timeout: float = 10.0) -> None:
        await self._gates.reached(name, timeout)

    async def until(self, predicate: Callable[[SimulatedAnthropic], bool], timeout: float = 10.0) -> None:
        """Return once the predicate is true; it is asked after each request and each departure of a client."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: predicate(self))

    async def _messages(self, request: Request) -> Response:
        asked, size = await self._take(request)
        request_id = f"req_{self._count:024d}"
        try:
            checks.credential(asked.headers, self.api_keys, self.oauth_tokens)
            checks.request(asked.headers, asked.body, counts_only=False)
        except checks.Refused as refused:
            return _error(refused.status, refused.message, request_id)
        return self._answer(asked, size, request_id)

    async def _count_tokens(self, request: Request) -> Response:
        asked, size = await self._take(request)
        try:
            checks.credential(asked.headers, self.api_keys, self.oauth_tokens)
            checks.request(asked.headers, asked.body, counts_only=True)
        except checks.Refused as refused:
            return _error(refused.status, refused.message, f"req_{self._count:024d}")
        return JSONResponse({"input_tokens": size // 4 + 1})

    async def _nothing(self, request: Request) -> Response:
        await self._take(request)
        return _error(404, "Not found", f"req_{self._count:024d}")

    async def _take(self, request: Request) -> tuple[ModelRequest, int]:
        raw = await request.body()
        try:
            body: Any = json.loads(raw)
        except ValueError:
            body = None
        asked = ModelRequest(
            request.url.path, dict(request.headers), body if isinstance(body, dict) else {}, request.url.query
        )
        self._count += 1
        self.requests.append(asked)
        async with self._changed:
            self._changed.notify_all()
        return asked, len(raw)

    def _answer(self, asked: ModelRequest, size: int, request_id: str) -> Response:
        if not asked.has_tools:
            return self._send(asked, self._side, size, request_id, [])
        scenario = asked.scenario if asked.scenario in self._scripts else None
        turn = self._scripts.get(scenario or "", self._default).turn(asked.step)
        going: list[Prelude] = []
        for index, prelude in enumerate(turn.preludes):
            elsewhere = isinstance(prelude, Fail) and prelude.model not in (None, asked.model)
            if elsewhere or not self._still(prelude, (scenario, asked.step, index)):
                continue
            if isinstance(prelude, Fail):
                words = prelude.message or wire.ERROR_WORDS.get(prelude.status, "The request was refused.")
                return _error(prelude.status, words, request_id, prelude.headers, prelude.kind)
            going.append(prelude)
            if isinstance(prelude, Cut):
                break
        answer = turn.answer(asked) if callable(turn.answer) else turn.answer
        return self._send(asked, answer, size, request_id, going)

    def _still(self, prelude: Prelude, place: tuple[str | None, int, int]) -> bool:
        """Decide whether a prelude happens (again), and count it if its times are limited."""
        if not isinstance(prelude, Fail | Cut) or prelude.times is None:
            return True
        self._used[place] += 1
        return self._used[place] <= prelude.times

    def _send(
        self, asked: ModelRequest, answer: Answer, size: int, request_id: str, going: list[Prelude]
    ) -> ScriptedAnswer:
        name = f"msg_{self._count:024d}"
        message = wire.message(answer, id_=name, model=asked.model, request_bytes=size)
        hold = answer.hold if isinstance(answer, Say) else None
        hold_at = "ping" if isinstance(answer, Say) and answer.thought else "content_block_delta"
        plan = with_preludes(
            Plan(message, request_id, asked.streams, hold=hold, hold_at=hold_at),
            waits=[prelude.name for prelude in going if isinstance(prelude, Wait)],
            slow=next(((p.first_token_seconds, p.between_seconds) for p in going if isinstance(p, Slow)), (0, 0)),
            cut=next((prelude for prelude in going if isinstance(prelude, Cut)), None),
        )
        return ScriptedAnswer(plan, self._gates, self._note_gone)

    async def _note_gone(self) -> None:
        self.gone += 1
        async with self._changed:
            self._changed.notify_all()


def _error(
    status: int, message: str, request_id: str, headers: Mapping[str, str] | None = None, kind: str | None = None
) -> JSONResponse:
    body = wire.error_body(kind or wire.ERROR_KINDS.get(status, "api_error"), message, request_id)
    return JSONResponse(body, status_code=status, headers={"request-id": request_id, **(headers or {})})
