"""The store on PostgreSQL where the database or the network fails."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest

from bot.cli import keys, vault_access
from bot.errors import StoreError, TransientError
from bot.settings import Secret
from bot.setup.serving import serving
from bot.store import migrations, replicas
from bot.store.base import Database, Store, place
from bot.store.data_directory import Occupied
from bot.store.postgres import connections
from bot.store.replicas import Joining, Replaced
from bot.store.rows import one, run
from bot.store.writer import CommitUnknown
from tests.store.rows import guids, insert
from tests.world.postgres import PostgresServer
from tests.world.wire_cutter import WireCutter

pytestmark = pytest.mark.postgres


class Cut:
    """A store that reaches its server through a wire that tests can cut."""

    def __init__(self, store: Store, wire: WireCutter, direct: str) -> None:
        self.store = store
        self.wire = wire
        self.direct = direct
        """The address past the wire."""


@pytest.fixture
async def cut(postgres: PostgresServer) -> AsyncIterator[Cut]:
    async with AsyncExitStack() as stack:
        wire = await stack.enter_async_context(WireCutter.running(postgres.port))
        direct = postgres.fresh().reveal()
        store = await Store.open(Secret(direct.replace(str(postgres.port), str(wire.port))))
        stack.push_async_callback(store.close)
        yield Cut(store, wire, direct)


@pytest.mark.quick("bot.store.postgres", "bot.store.migrations")
async def test_what_is_written_is_seen_by_another_process(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    first, second = await Store.open(address), await Store.open(address)
    await first.write(insert("a"))
    assert await guids(second) == ["a"]
    await first.close()
    await second.close()


async def test_processes_write_one_after_the_other(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    stores = [await Store.open(address) for _ in range(3)]
    await stores[0].write(insert("a"))

    async def count(store: Store) -> None:
        def work(db: object) -> None:
            row = one(db, "SELECT attempts FROM deliveries")  # type: ignore[arg-type]
            assert row is not None
            run(db, "UPDATE deliveries SET attempts = :n", n=row["attempts"] + 1)  # type: ignore[arg-type]

        for _ in range(20):
            await store.write(work)

    await asyncio.gather(*(count(store) for store in stores))
    row = await stores[0].one("SELECT attempts FROM deliveries")
    assert row == {"attempts": 60}
    for store in stores:
        await store.close()


async def test_a_commit_whose_answer_is_lost_counts_once(cut: Cut) -> None:
    await cut.store.write(insert("before"))
    cut.wire.lose_answer_to = b"COMMIT"
    assert await cut.store.write(insert("a")) == 1
    assert cut.wire.lost == 1
    assert await guids(cut.store) == ["a", "before"]


async def test_a_transaction_that_was_cut_before_its_commit_runs_again(cut: Cut) -> None:
    await cut.store.write(insert("before"))
    cut.wire.lose_answer_to = b"INSERT"
    assert await cut.store.write(insert("a")) == 1
    assert cut.wire.lost == 1
    assert await guids(cut.store) == ["a", "before"]


async def test_a_commit_of_which_nobody_knows_is_not_repeated(cut: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.postgres.connections.BUDGET_SECONDS", 0.5)
    await cut.store.write(insert("a"))
    begun, gathered = threading.Event(), threading.Event()

    def hold(_: Database) -> None:
        begun.set()
        gathered.wait(4)

    def count(db: Database) -> None:
        if not cut.wire.lost:
            cut.wire.lose_answer_to, cut.wire.refusing = b"COMMIT", True
        run(db, "UPDATE deliveries SET attempts = attempts + 1")

    holding = asyncio.ensure_future(cut.store.write(hold))
    await asyncio.to_thread(begun.wait, 4)
    together = [cut.store.backend.submit(count) for _ in range(2)]
    gathered.set()
    await holding
    asyncio.get_running_loop().call_later(1.0, setattr, cut.wire, "refusing", False)
    assert [type(one) for one in await asyncio.gather(*together, return_exceptions=True)] == [CommitUnknown] * 2
    cut.wire.refusing = False
    row = await cut.store.one("SELECT attempts FROM deliveries")
    assert row == {"attempts": 2}


async def test_a_transaction_that_stands_still_keeps_nobody_out_and_runs_again(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = connections._OPTIONS.replace("session_timeout=5s", "session_timeout=200ms")
    monkeypatch.setattr(connections, "_OPTIONS", options)
    address, stands, goes_on = postgres.fresh(), threading.Event(), threading.Event()
    store, other = await Store.open(address), await Store.open(address)
    runs = 0

    def work(db: Database) -> int:
        nonlocal runs
        runs += 1
        stands.set()
        assert goes_on.wait(20)
        return insert("a")(db)

    writing = asyncio.ensure_future(store.write(work))
    await asyncio.to_thread(stands.wait)
    async with asyncio.timeout(8):  # before it would be cut by its own process, which may be frozen
        assert await other.write(insert("b")) == 1
    goes_on.set()
    assert await writing == 1
    assert runs == 2
    assert await guids(store) == ["a", "b"]
    await store.close()
    await other.close()


async def test_a_cut_wire_is_an_error_that_passes(cut: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.writer.BUDGET_SECONDS", 0.5)
    cut.wire.refusing = True
    cut.wire.cut()
    with pytest.raises(TransientError):
        await cut.store.write(insert("a"))
    with pytest.raises(TransientError):
        await guids(cut.store)
    cut.wire.refusing = False
    await cut.store.write(insert("b"))
    assert await guids(cut.store) == ["b"]


async def test_a_server_that_starts_again_loses_nothing(postgres: PostgresServer) -> None:
    store = await Store.open(postgres.fresh())
    await store.write(insert("a"))
    postgres.stop()
    written = asyncio.ensure_future(store.write(insert("b")))
    await asyncio.sleep(0)
    postgres.start()  # from this thread: the server ends with the thread that began it
    await written
    assert await guids(store) == ["a", "b"]
    await store.close()


async def test_a_wire_that_swallows_everything_is_noticed(cut: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.postgres.connections.WATCH._seconds", 1.0)
    monkeypatch.setattr("bot.store.writer.BUDGET_SECONDS", 2.0)
    await cut.store.write(insert("a"))
    assert await guids(cut.store) == ["a"]
    cut.wire.passing.clear()
    with pytest.raises(TransientError):
        await guids(cut.store)
    cut.wire.passing.set()
    await cut.store.write(insert("b"))
    assert await guids(cut.store) == ["a", "b"]


def joining(home: str, ended: list[str] | None = None) -> Joining:
    return Joining(home, lambda _: None, lambda: (ended if ended is not None else []).append(home))


async def test_who_was_given_up_writes_nothing_more(cut: Cut) -> None:
    first, second, ended = cut.store, await Store.open(Secret(cut.direct)), list[str]()
    async with first.joined(joining("one", ended)) as ours, second.joined(joining("two")) as other:
        assert ours is not None and other is not None
        await first.write(insert("a"))
        await second.write(insert("b"))
        before = await replicas.living(second)
        assert {one.id for one in before} == {ours.id, other.id}
        await ours.beat()
        assert not await replicas.give_up(second, before[0]), "its beat has moved"
        now = next(one for one in await replicas.living(second) if one.id == ours.id)
        assert await replicas.give_up(second, now)
        with pytest.raises(Replaced):
            await ours.beat()
        assert ended == ["one"], "also if it has nothing to write"
        with pytest.raises(Replaced):
            await first.write(insert("c"))
        assert ended == ["one", "one"]
        await second.write(insert("d"))
    assert await guids(first) == ["a", "b", "d"]
    with pytest.raises(Replaced):
        await second.write(insert("e"))
    await second.close()


async def test_one_replica_leads_and_the_next_when_it_ends(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    first, second = await Store.open(address), await Store.open(address)
    async with second.joined(joining("two")) as next_one:
        assert next_one is not None
        async with first.joined(joining("one")) as one:
            assert one is not None
            both = await asyncio.gather(replicas.lead(first, one.id), replicas.lead(second, next_one.id))
            assert sorted(both) == [False, True]
        assert await replicas.lead(second, next_one.id)
        assert [row.leads for row in await replicas.living(second)] == [True]
    assert await replicas.living(second) == []
    await first.close()
    await second.close()


async def test_a_start_in_the_same_data_directory_ends_the_former_process(cut: Cut) -> None:
    first, second, ended = cut.store, await Store.open(Secret(cut.direct)), list[str]()
    async with first.joined(joining("one", ended)), second.joined(joining("one")) as ours:
        assert ours is not None
        assert [row.id for row in await replicas.living(second)] == [ours.id]
        with pytest.raises(Replaced):
            await first.write(insert("a"))
    assert ended == ["one"]
    await second.close()


async def test_notices_reach_the_others_and_a_gap_is_known(cut: Cut) -> None:
    heard, second = asyncio.Queue[list[str] | None](), await Store.open(Secret(cut.direct))
    loop = asyncio.get_running_loop()

    def hear(told: list[str] | None) -> None:
        loop.call_soon_threadsafe(heard.put_nowait, told)

    quiet = Joining("one", hear, lambda: None)
    async with cut.store.joined(quiet) as ours, second.joined(joining("two")) as other, asyncio.timeout(20):
        assert ours is not None and other is not None
        assert await heard.get() is None, "what was told before is unknown"
        other.send(["a", "b", "a"])
        assert await heard.get() == ["a", "b"]
        ours.send(["own"])
        other.send(["c" * 4000, "d" * 4000])
        told: list[str] = []
        while len(told) < 2:
            told += await heard.get() or []
        assert told == ["c" * 4000, "d" * 4000], "our own do not come back"
        cut.wire.cut()
        assert await heard.get() is None
        other.send(["e"])
        assert await heard.get() == ["e"]
    await second.close()


async def test_what_no_replica_has_told_is_not_heard(cut: Cut) -> None:
    """Every user of the database may tell something."""
    heard = asyncio.Queue[list[str] | None]()
    loop, second = asyncio.get_running_loop(), await Store.open(Secret(cut.direct))

    def hear(told: list[str] | None) -> None:
        loop.call_soon_threadsafe(heard.put_nowait, told)

    async with cut.store.joined(Joining("one", hear, lambda: None)), second.joined(joining("two")) as other:
        async with asyncio.timeout(20):
            assert other is not None
            assert await heard.get() is None
            with psycopg.connect(cut.direct, autocommit=True) as stranger:
                for words in ("", "x", "7", "[]", '["a", 7]', '{"a": "b"}', "[" * 7000):
                    stranger.execute("SELECT pg_notify('forgehand', %s)", [words])
            other.send(["a"])
            assert await heard.get() == ["a"]
    await second.close()


async def test_who_lost_the_lock_to_a_move_is_given_up(cut: Cut) -> None:
    ended: list[str] = []
    async with cut.store.joined(joining("one", ended)) as ours:
        assert ours is not None
        with pytest.raises(Occupied, match="already running on"), place(Secret(cut.direct)).unused():
            pass
        cut.wire.refusing = True
        cut.wire.cut()
        await until_unused(cut.direct)
        cut.wire.refusing = False
        with pytest.raises(TransientError):
            await ours.beat()
        with pytest.raises(Replaced):
            await ours.beat()
        assert ended == ["one"]


async def test_nobody_joins_while_a_command_has_the_database_to_itself(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    store = await Store.open(address)
    with place(address).unused(), pytest.raises(Occupied, match="Start again when it has ended"):
        async with store.joined(joining("one")):
            pass
    await store.close()


async def until_unused(address: str) -> None:
    """The server lets go of a lock a moment after its connection was cut."""
    async with asyncio.timeout(20):
        while True:
            try:
                with place(Secret(address)).unused():
                    return
            except Occupied:
                await asyncio.sleep(0.05)


async def test_what_is_wrong_with_the_address_is_said_without_the_password(postgres: PostgresServer) -> None:
    for address in (
        f"postgresql://nobody:hunter2@127.0.0.1:{postgres.port}/postgres",
        "postgresql://postgres:hunter2@127.0.0.1:1/postgres",
        postgres.url("nowhere").replace("postgres@", "postgres:hunter2@"),
    ):
        with pytest.raises(StoreError, match="FORGEHAND_DATABASE_URL") as refused:
            await Store.open(Secret(address))
        assert "hunter2" not in str(refused.value)


async def test_a_schema_that_is_not_ours_is_left_alone(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    with psycopg.connect(address.reveal()) as connection:
        connection.execute("CREATE SCHEMA bot")
        connection.execute("CREATE TABLE bot.mine (id INTEGER)")
    with pytest.raises(StoreError, match="another program"):
        await Store.open(address)


async def test_a_newer_schema_is_refused(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    await (await Store.open(address)).close()
    with psycopg.connect(address.reveal()) as connection:
        connection.execute("INSERT INTO bot.migrations (name) VALUES ('9999_future')")
    with pytest.raises(StoreError, match="newer Forgehand"):
        await Store.open(address)


async def test_only_a_migration_that_adds_is_applied_beside_a_running_service(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, known = postgres.fresh(), migrations.known()
    store = await Store.open(address)
    adds = migrations.MigrationFile("0002_adds", "CREATE TABLE more (id TEXT);")
    breaks = migrations.MigrationFile("0003_breaks", f"{migrations.ALONE}\nALTER TABLE more RENAME TO less;")
    async with store.joined(joining("one")):
        monkeypatch.setattr(migrations, "known", lambda _=None: [*known, adds])
        newer = await Store.open(address)
        await store.write(insert("a"))
        assert await newer.many("SELECT * FROM more") == []
        monkeypatch.setattr(migrations, "known", lambda _=None: [*known, adds, breaks])
        with pytest.raises(Occupied, match="Stop it first"):
            await Store.open(address)
    await store.close()
    await newer.close()
    alone = await Store.open(address)
    assert await alone.many("SELECT * FROM less") == []
    await alone.close()


async def test_a_command_on_another_host_knows_of_the_service(postgres: PostgresServer, tmp_path: Path) -> None:
    key = base64.b64encode(bytes(32)).decode()
    values = {"FORGEHAND_DATA_DIR": str(tmp_path), "FORGEHAND_SECRET_KEY": key, "FORGEHAND_PORT": "0"}
    values["FORGEHAND_DATABASE_URL"] = postgres.fresh().reveal()
    service = await Store.open(Secret(values["FORGEHAND_DATABASE_URL"]))
    async with service.joined(joining("one")):
        async with vault_access.opened(values, writes=True) as (_, _, alone):
            assert not alone
        with pytest.raises(Occupied):
            async with serving(values):
                pass
    await service.close()
    async with vault_access.opened(values, writes=True) as (_, _, alone):
        assert alone


def test_all_keys_are_not_removed_under_a_service(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.fresh()
    monkeypatch.setenv("FORGEHAND_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("FORGEHAND_DATABASE_URL", address.reveal())

    async def remove() -> None:
        service = await Store.open(address)
        async with service.joined(joining("one")):
            with pytest.raises(Occupied):
                await keys._remove(None, None, None)
        await service.close()

    asyncio.run(remove())


async def test_what_is_not_the_networks_fault_is_not_called_so(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    await (await Store.open(address)).close()
    with psycopg.connect(address.reveal()) as connection:
        connection.execute("DELETE FROM bot.migrations")
    with pytest.raises(psycopg.errors.DuplicateTable):
        await Store.open(address)


async def test_a_command_does_not_migrate(postgres: PostgresServer) -> None:
    with pytest.raises(StoreError, match="serve"):
        await Store.open_reader(postgres.fresh())


async def test_sums_and_times_are_numbers_as_in_sqlite(postgres: PostgresServer) -> None:
    store = await Store.open(postgres.fresh())
    three = "(SELECT CAST(3 AS BIGINT) AS n) AS three"
    row = await store.one(
        f"SELECT SUM(n) AS whole, SUM(n * :half) AS broken, :nothing IS :other AS same FROM {three}",
        half=0.1,
        nothing=None,
        other=None,
    )
    assert row == {"whole": 3, "broken": 3 * 0.1, "same": True}
    assert type(row["whole"]) is int
    await store.close()
