"""Money and ends at the gateway: reserves, budgets, cuts, and clients that leave."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.models import TokenUsage
from bot.simulation.anthropic import Cut, Say, Script, Wait
from bot.store import gateway as rows
from bot.store import operations, spend
from bot.store.operations import DAY
from bot.web.gateway import Ceilings, Tuning
from tests.world import stored
from tests.world.gateway import (
    COUNT,
    MESSAGES,
    Rig,
    kind,
    rigged,
)
from tests.world.stored import file_of


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path / "data", tuning=Tuning(check_seconds=0.02)) as found:
        yield found


async def test_counting_tokens_costs_nothing(rig: Rig) -> None:
    token, key = await rig.token(max_requests=1)
    assert (await rig.ask(token, path=COUNT)).json()["input_tokens"] > 0
    assert (await rig.settled(key)).usd == 0
    assert kind(await rig.ask(token, path=COUNT)) == (403, "permission_error")


@pytest.mark.acceptance("D14")
async def test_at_the_budget_the_answer_is_the_providers_credit_error(rig: Rig) -> None:
    token, _ = await rig.token(budget_usd=0.001)
    rig.model.default(Script([], after=Say("x", usage=TokenUsage(100, 100))))
    assert (await rig.ask(token)).status_code == 200
    refused = await rig.ask(token)
    assert kind(refused) == (400, "invalid_request_error")
    assert refused.json()["error"]["message"].startswith("Your credit balance is too low to access the Anthropic API")
    assert len(rig.model.requests) == 1


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize("patience", [0.0, 20.0])
async def test_requests_in_parallel_pass_the_budget_by_one_reserve_at_most(tmp_path: Path, patience: float) -> None:
    """I6: each costs all that it had reserved; those that come too late hear of the credit, or are asked to wait."""
    limit, reserve = 0.01, (100 * 10 + 400 * 2) / 1e6
    async with rigged(tmp_path / "data", tuning=Tuning(patience_seconds=patience)) as rig:
        token, key = await rig.token(budget_usd=limit, concurrency=50)
        rig.model.default(Script([], after=Say("x", usage=TokenUsage(400, 100))))
        answers = await asyncio.gather(*(rig.ask(token, "y" * 1000) for _ in range(20)))
        cost = await rig.settled(key)
        statuses = {answer.status_code for answer in answers}
        assert 200 in statuses
        assert statuses <= ({200, 400} if patience else {200, 400, 429})
        assert len(rig.model.requests) == sum(answer.status_code == 200 for answer in answers)
        assert cost.usd <= limit + reserve
        if patience:
            assert cost.usd >= limit, "nothing of the budget is left over because of reserves"


@pytest.mark.acceptance("D14")
async def test_searches_of_the_provider_are_reserved_for(tmp_path: Path) -> None:
    """What is found is read, and paid for, before a word of the answer is seen: cutting it live would be too late."""
    limit, reserve = 1.7, 1.55
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    async with rigged(tmp_path / "data", tuning=Tuning(patience_seconds=0.0)) as rig:
        token, key = await rig.token(budget_usd=limit, concurrency=50)
        rig.model.default(Script([], after=Say("x", usage=TokenUsage(720_000, 100))))
        await asyncio.gather(*(rig.ask(token, "y" * 1000, tools=[search]) for _ in range(20)))
        cost = await rig.settled(key)
    assert 1.4 < cost.usd <= limit + reserve


PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}}


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize(
    ("asked", "used", "reserve"),
    [
        ({"max_tokens": 64_000}, TokenUsage(10, 64_000), 64_000 * 10 / 1e6 + 0.001),
        ({"messages": [{"role": "user", "content": [PDF]}]}, TokenUsage(900_000, 100), 1_000_000 * 2 / 1e6 + 0.001),
        ({"system": "~^" * 100_000}, TokenUsage(199_000, 100), 200_500 * 2 / 1e6 + 0.001),
    ],
    ids=["seen only when it is whole", "a file of any size inside", "a token for each byte"],
)
async def test_what_no_word_of_it_tells_is_reserved_for(
    tmp_path: Path, asked: dict[str, Any], used: TokenUsage, reserve: float
) -> None:
    """Twenty at once, each as dear as its like can be: what is over by the time that it shows is one of them."""
    limit = 0.7
    async with rigged(tmp_path / "data", tuning=Tuning(patience_seconds=0.0)) as rig:
        token, key = await rig.token(budget_usd=limit, concurrency=50)
        rig.model.default(Script([], after=Say("x", usage=used)))
        await asyncio.gather(*(rig.ask(token, **asked) for _ in range(20)))
        cost = await rig.settled(key)
    assert 0.3 < cost.usd <= limit + reserve


async def test_who_leaves_an_answer_that_comes_as_a_whole_pays_for_what_it_may_have_been(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    asking = asyncio.create_task(rig.ask(token, "[[scenario:slow]]", max_tokens=64_000))
    await rig.model.reached("never")
    asking.cancel()
    await rig.model.until(lambda model: model.gone == 1)
    cost = await rig.settled(key)
    assert cost.usd == 0
    assert cost.unconfirmed_usd == pytest.approx(0.64, abs=0.005)


@pytest.mark.acceptance("D14")
@pytest.mark.acceptance("B14")
async def test_twenty_streams_at_once_pass_the_budget_by_one_reserve_at_most(rig: Rig) -> None:
    """Those that are under way have reserved all that they may say; the others wait for their end."""
    limit, reserve = 1.7, 64_000 * 10 / 1e6 + 0.005
    token, key = await rig.token(budget_usd=limit, concurrency=20)
    rig.model.script("long", Script([Wait("all"), Say("z" * 200_000, usage=TokenUsage(10, 64_000))]))

    async def listen() -> str:
        async with rig.stream(token, "[[scenario:long]]", max_tokens=64_000) as answer:
            return (await answer.aread()).decode()

    listening = [asyncio.create_task(listen()) for _ in range(20)]
    await rig.model.until(lambda model: len(model.requests) == 3)
    assert (await spend.turn_cost(rig.store, key)).open == 3
    rig.model.release("all")
    heard = await asyncio.gather(*listening)
    cost = await rig.settled(key)
    assert limit <= cost.counted_usd <= limit + reserve
    assert any("credit balance is too low" in text for text in heard)


@pytest.mark.review("security-2")
@pytest.mark.parametrize("thinking", [None, {"type": "adaptive", "display": "omitted"}, {"type": "disabled"}])
async def test_hidden_thinking_passes_the_budget_by_one_reserve_at_most(
    tmp_path: Path, thinking: dict[str, Any] | None
) -> None:
    """Eight at once, of which nothing is seen before it is paid: what is shown of them are pings."""
    limit, reserve = 1.0, 128_000 * 10 / 1e6 + 0.005
    async with rigged(tmp_path / "data", tuning=Tuning(patience_seconds=0.0)) as rig:
        token, key = await rig.token(budget_usd=limit, concurrency=20)
        rig.model.script("deep", Script([Wait("all"), Say("x", thought=128_000, usage=TokenUsage(10, 128_000))]))
        more = {} if thinking is None else {"thinking": thinking}

        async def listen() -> None:
            async with rig.stream(token, "[[scenario:deep]]", max_tokens=128_000, **more) as answer:
                await answer.aread()

        listening = [asyncio.create_task(listen()) for _ in range(8)]
        await rig.model.reached("all")
        rig.model.release("all")
        await asyncio.gather(*listening)
        cost = await rig.settled(key)
        assert 0 < cost.usd <= limit + reserve
        assert cost.unconfirmed_usd == 0


@pytest.mark.review("security-2")
async def test_a_stream_that_is_left_while_it_thinks_counts_all_that_it_may_think(rig: Rig) -> None:
    token, key = await rig.token()
    deep = Say("x", thought=60_000, hold="deep", usage=TokenUsage(10, 60_001))
    rig.model.script("deep", Script([], after=deep))
    for _ in range(5):
        async with rig.stream(token, "[[scenario:deep]]", max_tokens=64_000) as answer:
            await anext(answer.aiter_bytes())
            await rig.model.reached("deep")
    cost = await rig.settled(key)
    assert cost.usd < 0.001
    assert cost.unconfirmed_usd == pytest.approx(5 * 64_000 * 10 / 1e6, abs=0.001)


@pytest.mark.acceptance("B14")
async def test_the_installations_day_ends_a_turn_that_has_budget_left(tmp_path: Path) -> None:
    async with rigged(tmp_path / "data", ceilings=Ceilings(day_usd=0.0015, month_usd=10)) as rig:
        rig.model.default(Script([], after=Say("x", usage=TokenUsage(100, 100))))
        first, _ = await rig.token()
        second, _ = await rig.token()
        assert (await rig.ask(first)).status_code == 200
        assert (await rig.ask(second)).status_code == 200
        assert kind(await rig.ask(second)) == (400, "invalid_request_error")
        rig.time.now += 86_400
        fresh, _ = await rig.token()
        assert (await rig.ask(fresh)).status_code == 200


async def test_too_many_at_once_are_asked_to_come_back(rig: Rig) -> None:
    token, key = await rig.token(concurrency=1)
    rig.model.script("slow", Script([Wait("go"), Say("x")]))
    first = asyncio.create_task(rig.ask(token, "[[scenario:slow]]"))
    await rig.model.reached("go")
    answer = await rig.ask(token)
    assert kind(answer) == (429, "rate_limit_error")
    assert answer.headers["retry-after"] == "1"
    rig.model.release("go")
    assert (await first).status_code == 200
    assert (await rig.settled(key)).open == 0


async def test_a_long_answer_reserves_again_and_goes_on(rig: Rig) -> None:
    token, key = await rig.token(budget_usd=5)
    rig.model.default(Script([Say("z" * 90_000, usage=TokenUsage(10, 30_000))]))
    async with rig.stream(token, max_tokens=32_000) as answer:
        text = (await answer.aread()).decode()
    assert "message_stop" in text
    assert (await rig.settled(key)).usd == pytest.approx((10 * 2 + 30_000 * 10) / 1e6)


async def test_a_stream_is_cut_when_its_bytes_pass_the_budget(rig: Rig) -> None:
    token, key = await rig.token(budget_usd=0.02)
    rig.model.default(Script([], after=Say("z" * 200_000, usage=TokenUsage(10, 60_000))))
    async with rig.stream(token, max_tokens=64_000) as answer:
        text = (await answer.aread()).decode()
    assert "message_stop" not in text
    assert "credit balance is too low" in text.splitlines()[-2]
    cost = await rig.settled(key)
    assert 0.02 <= cost.usd < 0.03
    assert kind(await rig.ask(token)) == (400, "invalid_request_error")
    await rig.model.until(lambda model: model.gone == 1)


async def test_when_the_client_leaves_the_provider_is_let_go_and_what_was_seen_is_paid(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("held", Script([Say("a" * 300, hold="middle", usage=TokenUsage(1000, 900))]))
    async with rig.stream(token, "[[scenario:held]]") as answer:
        await anext(answer.aiter_bytes())
        await rig.model.reached("middle")
    await rig.model.until(lambda model: model.gone == 1)
    cost = await rig.settled(key)
    assert cost.usage.input_tokens == 1000
    assert 1 <= cost.usage.output_tokens < 100


@pytest.mark.review("suspected-2")
async def test_a_client_that_leaves_before_the_first_byte_pays_for_all_that_the_text_may_be(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    asking = asyncio.create_task(rig.ask(token, "[[scenario:slow]]" + "~^" * 150_000, stream=True))
    await rig.model.reached("never")
    asking.cancel()
    await rig.model.until(lambda model: model.gone == 1)
    cost = await rig.settled(key)
    assert cost.usd == 0
    assert cost.unconfirmed_usd >= (300_000 * 2 + 100 * 10) / 1e6, "a token for each byte, and all of the answer"


async def test_revoking_cuts_a_stream_under_way(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("held", Script([Say("a" * 300, hold="middle")]))
    async with rig.stream(token, "[[scenario:held]]") as answer:
        await rig.model.reached("middle")
        await rows.revoke(rig.store, key)
        text = (await answer.aread()).decode()
    assert "authentication_error" in text
    assert "message_stop" not in text
    await rig.model.until(lambda model: model.gone == 1)


async def test_revoking_ends_a_request_that_has_no_answer_yet(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    asking = asyncio.create_task(rig.ask(token, "[[scenario:slow]]"))
    await rig.model.reached("never")
    await rows.revoke(rig.store, key)
    assert kind(await asking) == (401, "authentication_error")


@pytest.mark.acceptance("D13")
@pytest.mark.parametrize("cut", [Cut(), Cut(error="overloaded_error")])
async def test_a_torn_stream_ends_with_an_error_and_is_paid_as_seen(rig: Rig, cut: Cut) -> None:
    token, key = await rig.token()
    rig.model.default(Script([cut, Say("b" * 400, usage=TokenUsage(50, 500))]))
    async with rig.stream(token) as answer:
        text = (await answer.aread()).decode()
    assert text.rstrip().splitlines()[-2] == "event: error"
    assert (cut.error or "api_error") in text
    cost = await rig.settled(key)
    assert cost.usage.input_tokens == 50
    assert 0 < cost.usage.output_tokens < 500


@pytest.mark.review("suspected-2")
async def test_what_was_under_way_when_the_service_died_is_not_confirmed_and_counts_in_full(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    asking = asyncio.create_task(rig.ask(token, "[[scenario:slow]]", system="w" * 300_000, stream=True))
    await rig.model.reached("never")
    reserved = (await spend.turn_cost(rig.store, key)).reserved_usd
    assert await spend.abandon_open(rig.store) == 1
    cost = await spend.turn_cost(rig.store, key)
    assert (cost.usd, cost.unconfirmed_usd, cost.reserved_usd) == (0, reserved, 0)
    asking.cancel()
    await rig.model.until(lambda model: model.gone == 1)
    await rig.settled(key)
    assert (await stored.session_spend(rig.store, key.session)).counted_usd == reserved, "it is counted once"


async def test_who_dies_once_the_input_is_paid_leaves_no_more_open_than_the_answer(rig: Rig) -> None:
    """A long conversation reserves a token for every byte, and that must not be lost to a crash: the provider says
    what it was as soon as it begins to answer."""
    token, key = await rig.token()
    rig.model.script("held", Script([Say("a" * 300, hold="middle", usage=TokenUsage(1_000, 90))]))
    async with rig.stream(token, "[[scenario:held]]", system="w" * 300_000) as answer:
        await rig.model.reached("middle")
        most = (1_000 * 2 + 100 * 10) / 1e6
        async with asyncio.timeout(10):
            while (cost := await spend.turn_cost(rig.store, key)).reserved_usd > most + 1e-9:
                await rig.store.write(lambda db: None)
        assert cost.reserved_usd == pytest.approx(most)
        await spend.abandon_open(rig.store)
        assert (await spend.turn_cost(rig.store, key)).counted_usd == pytest.approx(most)
        rig.model.release("middle")
        await answer.aread()


async def test_deadlines_move_and_dead_tokens_are_swept(rig: Rig) -> None:
    token, key = await rig.token()
    await rows.extend(rig.store, key, rig.time.now + 5_000)
    rig.time.now += 700
    assert (await rig.ask(token)).status_code == 200
    rig.time.now += 5_000
    assert await rows.revoke_all_dead(rig.store) == 1
    await rows.extend(rig.store, key, rig.time.now + 5_000)
    assert (await rig.ask(token)).status_code == 401
    rig.time.now += 9 * DAY
    assert (await operations.prune(rig.store, 8))["gateway_tokens"] == 1
    assert await rows.grant(rig.store, rows.digest(token)) is None


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be settled is tried again soon."""
    monkeypatch.setattr("bot.web.gateway.money.AGAIN_SECONDS", 0.05)


@contextmanager
def locked(rig: Rig) -> Iterator[None]:
    """By somebody beside the service, as a backup may. The store gives up soon, but only as long as that lasts: a
    checkpoint of its own takes more than that on a busy machine."""
    beside = sqlite3.connect(file_of(rig.store), isolation_level=None)
    beside.execute("BEGIN IMMEDIATE")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bot.store.writer.BUDGET_SECONDS", 0.05)
            yield
    finally:
        beside.execute("ROLLBACK")
        beside.close()


@pytest.mark.acceptance("F06")
async def test_while_the_store_is_locked_requests_come_back_and_nothing_is_sent(impatient: None, rig: Rig) -> None:
    token, key = await rig.token()
    await rig.store.write(lambda db: db.execute("PRAGMA busy_timeout = 20"))
    with locked(rig):
        for path in (MESSAGES, COUNT):
            answer = await rig.ask(token, path=path)
            assert kind(answer) == (529, "overloaded_error")
            assert int(answer.headers["retry-after"]) > 0
    assert rig.model.requests == []
    assert (await rig.ask(token)).status_code == 200
    assert (await rig.settled(key)).usd > 0


@pytest.mark.acceptance("F06")
async def test_what_was_spent_while_the_store_was_locked_is_written_down_later(
    impatient: None, rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    token, key = await rig.token()
    await rig.store.write(lambda db: db.execute("PRAGMA busy_timeout = 20"))
    rig.model.script("held", Script([Say("a" * 300, hold="middle", usage=TokenUsage(1000, 900))]))
    async with rig.stream(token, "[[scenario:held]]") as answer:
        await rig.model.reached("middle")
        with locked(rig):
            rig.model.release("middle")
            assert "message_stop" in (await answer.aread()).decode()
            async with asyncio.timeout(20):
                while "could not be written down" not in caplog.text:
                    await asyncio.sleep(0.01)
    assert (await rig.settled(key)).usd == pytest.approx((1000 * 2 + 900 * 10) / 1e6)
