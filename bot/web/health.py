"""`/healthz`: the process lives and has its store. `/readyz`: it can do its work, or which part cannot and why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

Check = Callable[[], Awaitable[str | None]]
"""None when all is well, else a sentence that an operator understands and that holds no secret."""


ALIVE_SECONDS = 5.0


def health_routes(checks: Mapping[str, Check], *, alive: Check | None = None, timeout: float = 2.0) -> list[BaseRoute]:
    """Checks run at every question, all at once. `alive` is what a supervisor's restart might mend."""

    async def healthz(request: Request) -> Response:
        trouble = await _ask(alive, ALIVE_SECONDS) if alive else None
        return JSONResponse({"status": trouble or "ok"}, 503 if trouble else 200)

    async def readyz(request: Request) -> Response:
        answers = await asyncio.gather(*(_ask(check, timeout) for check in checks.values()))
        troubles = {name: answer for name, answer in zip(checks, answers, strict=True) if answer is not None}
        status = "not ready" if troubles else "ready"
        return JSONResponse({"status": status, "troubles": troubles}, 503 if troubles else 200)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


async def _ask(check: Check, timeout: float) -> str | None:
    try:
        async with asyncio.timeout(timeout):
            return await check()
    except TimeoutError:
        return "no answer in time"
    except Exception as error:  # noqa: BLE001 - a check that breaks is a trouble, not the end of the page
        return f"broken ({type(error).__name__})"
