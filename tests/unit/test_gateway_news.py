"""One timer serves all waits on a connection, and each of them has its own time all the same."""

from __future__ import annotations

import asyncio

import pytest

from bot.web.gateway.connection import News


async def come(news: News, until: float) -> None:
    waiting = asyncio.create_task(news.wait(until))
    await asyncio.sleep(0)
    news.come()
    await waiting


@pytest.mark.parametrize(("first", "second"), [(0.05, 0.15), (60.0, 0.1)])
async def test_a_wait_after_another_has_the_time_that_it_was_given(first: float, second: float) -> None:
    news, loop = News(), asyncio.get_running_loop()
    await come(news, news.later(first))
    until = news.later(second)
    async with asyncio.timeout(10):
        with pytest.raises(TimeoutError):
            await news.wait(until)
    assert loop.time() >= until
    await come(news, news.later(60.0))
    news.close()


async def test_what_comes_while_nobody_waits_is_no_news_later() -> None:
    news = News()
    news.come()
    with pytest.raises(TimeoutError):
        await news.wait(news.later(0.05))
