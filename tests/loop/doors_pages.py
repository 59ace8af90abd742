"""What browsers, and whoever says to be one, ask of the pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import httpx

from tests.loop.attacks import attack
from tests.loop.field import Field
from tests.world.plain_http import plain_client
from tests.world.visitor import visitor

AT_ONCE = 16


async def over_and_over(times: int, ask: Callable[[], Awaitable[httpx.Response]]) -> None:
    """From several connections at once; an answer that is not even HTTP is the server's right."""

    async def one() -> None:
        for _ in range(times):
            try:
                await ask()
            except httpx.HTTPError:
                continue

    await asyncio.gather(*(one() for _ in range(AT_ONCE)))


@attack("query strings, paths and cookies of 60 KB", "pages")
async def long_heads(field: Field) -> None:
    many = "&".join(f"a{n}=%00%ff" for n in range(4_000))
    async with plain_client(base_url=field.service.url, timeout=30) as client:
        await over_and_over(10, lambda: client.get(f"/?{many}"))
        await over_and_over(10, lambda: client.get(f"/sign-in?next=/{'%2e%2e/' * 6_000}"))
        await over_and_over(10, lambda: client.get("/", headers={"cookie": "; ".join(f'c{n}="' for n in range(8_000))}))
        await over_and_over(10, lambda: client.get("/" + "/".join("a" * 20_000)))
        await over_and_over(
            10, lambda: client.get("/", headers={"accept": ",".join("text/*;q=0.1" for _ in range(4_000))})
        )


@attack("forms of 30 MB", "pages")
async def forms(field: Field) -> None:
    fields = b"&".join(b"a%d=%%41" % n for n in range(3_000_000))
    multipart = b"--b\r\n" + b"Content-Disposition: form-data; name=a\r\n\r\nx\r\n--b\r\n" * 200_000
    kinds = {"application/x-www-form-urlencoded": fields, "multipart/form-data; boundary=b": multipart}
    async with visitor(field.world, field.service.url, "alice") as alice:
        for path in ("/sign-out", "/sessions/aaaaaaaa/stop", "/", "/installations"):
            for kind, content in kinds.items():
                headers = {"content-type": kind}
                await over_and_over(2, partial(alice.client.post, path, content=content, headers=headers))
