"""The sums of a day, from which limits are judged: they are the rows' own, and no month is read for a request."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlite_utils
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.models import InstallationId, RepoId, SessionId, TokenUsage, TurnKey
from bot.store import spend
from bot.store.base import Address, Database, Store
from bot.store.rows import many, run
from bot.store.spend import DAY_SECONDS, Payer, Payers, Reserve, Settlement, Window
from tests.world.stored import on_file

NOON = 20_000.5 * DAY_SECONDS
KEY = TurnKey(SessionId("s0000001"), 1)
PAYERS = (Payers(InstallationId(1), RepoId(2), 3), Payers(InstallationId(1), RepoId(4), 3), Payers(InstallationId(5)))
REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(PAYERS),
        st.integers(0, 40),
        st.sampled_from(["open", "settled", "twice", "abandoned"]),
        st.integers(0, 64).map(lambda n: n / 16),
    ),
    max_size=25,
)


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Store]:
    opened = await Store.open(address)
    yield opened
    await opened.close()


async def reserve(store: Store, claim: str, payers: Payers, at: float) -> None:
    await store.write(lambda db: spend.insert(db, claim, KEY, payers, Reserve("m", 8.0, at)))


@settings(max_examples=25, deadline=None)
@given(REQUESTS, st.booleans())
async def test_the_sums_of_the_days_are_those_of_the_rows(
    requests: list[tuple[Payers, int, str, float]], died: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(Path(folder) / "data" / "state.db")
        for number, (payers, days, end, usd) in enumerate(requests):
            await reserve(store, f"c{number}", payers, NOON - days * DAY_SECONDS)
            for _ in range({"open": 0, "twice": 2}.get(end, 1)):
                await spend.settle(
                    store, f"c{number}", Settlement(usd, TokenUsage(), 200, abandoned=end == "abandoned")
                )
        if died:
            await spend.abandon_open(store)
        for payer in Payer:
            for since in (20_000 * DAY_SECONDS, 19_980 * DAY_SECONDS, 0):
                sums = await spend.in_windows(store, PAYERS[0], [Window(payer, since)])
                number = PAYERS[0].number(payer)
                sql = f"SELECT * FROM spend WHERE {payer.value} = :number AND at >= :since"
                rows = await store.read(lambda db, s=sql, n=number, t=since: many(db, s, number=n, since=t))  # type: ignore[misc]
                reserved = [row["reserved_usd"] for row in rows if row["state"] == "reserved"]
                assert sums[0] is not None
                assert sums[0].usd == sum(row["cost_usd"] for row in rows)
                assert (sums[0].reserved_usd, sums[0].open) == (sum(reserved), len(reserved))
        await store.close()


@on_file
async def test_a_limit_is_judged_without_reading_the_month(store: Store) -> None:
    """Judged by the steps of the database's machine, which are the same on a busy computer."""
    windows = [Window(payer, since) for payer in Payer for since in (20_000 * DAY_SECONDS, 19_990 * DAY_SECONDS)]
    await reserve(store, "first", PAYERS[0], NOON)
    await spend.settle(store, "first", Settlement(0.5, TokenUsage(), 200))
    few = await steps(store, windows)
    sql = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO spend
        (id, session_id, turn, installation_id, repo_id, user_id, model, state, reserved_usd, cost_usd, at)
    SELECT 'x' || i, 'other000', i, 1, 2, 3, 'm', 'settled', 1, 1, :noon - i FROM n
    """
    await store.write(lambda db: run(db, sql, noon=NOON))
    assert await steps(store, windows) <= few + 100


async def steps(store: Store, windows: list[Window]) -> int:
    def work(db: Database) -> int:
        count = 0

        def step() -> int:
            nonlocal count
            count += 1
            return 0

        assert isinstance(db, sqlite_utils.Database)
        db.conn.set_progress_handler(step, 1)
        try:
            for window in windows:
                spend.of_window(db, PAYERS[0], window)
        finally:
            db.conn.set_progress_handler(None, 0)
        return count

    return await store.write(work)
