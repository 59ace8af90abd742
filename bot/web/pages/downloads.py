"""Downloads, a portion at a time; access is checked again before each portion."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

from starlette.responses import Response, StreamingResponse

from bot.errors import TransientError
from bot.web.pages.frame import COMMON
from bot.web.pages.gate import GONE, NO_ANSWER, Stay

PORTION = 256 << 10
APART = "sandbox; default-src 'none'"  # a browser must never show it as a page of ours


def download(name: str, portions: AsyncGenerator[bytes, None], stay: Stay) -> Response:
    kept_apart = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": APART}
    return StreamingResponse(_as_long_as(stay, portions), media_type="text/plain", headers={**COMMON, **kept_apart})


async def of_files(files: Sequence[Path]) -> AsyncGenerator[bytes, None]:
    """Read one file after the other, without those that retention has removed meanwhile."""
    for path in files:
        try:
            file = await asyncio.to_thread(path.open, "rb")
        except FileNotFoundError:
            continue
        with file:
            while portion := await asyncio.to_thread(file.read, PORTION):
                yield portion


async def _as_long_as(stay: Stay, portions: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """End a cut download with a line that says so."""
    async with aclosing(portions):
        try:
            async for portion in portions:
                if not await stay.may_go_on():
                    yield _cut(GONE)
                    return
                yield portion
        except TransientError:
            yield _cut(NO_ANSWER)


def _cut(why: str) -> bytes:
    return f"\n[Cut off here. {why}]\n".encode()
