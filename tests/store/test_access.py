"""What stands between us and a PostgreSQL that answers: rights, and poolers."""

from __future__ import annotations

import psycopg
import pytest

from bot.checkup import server
from bot.engine.durable import DurableEngine
from bot.errors import StoreError
from bot.models import TurnKey
from bot.settings import Secret
from bot.store.base import Store, place
from bot.store.postgres import access
from tests.world.pooler import Pooler
from tests.world.postgres import PostgresServer

pytestmark = pytest.mark.postgres
USER = "forge-hand"


async def test_a_user_who_may_not_create_schemas_learns_what_the_owner_has_to_run(postgres: PostgresServer) -> None:
    owners = postgres.fresh().reveal()
    theirs = Secret(owners.replace("postgres@", f"{USER}@"))
    with psycopg.connect(owners, autocommit=True) as owner:
        owner.execute(f'CREATE ROLE "{USER}" LOGIN')
        with pytest.raises(StoreError, match="may not create tables in bot and dbos"):
            place(theirs).require()
        with pytest.raises(StoreError) as refused:
            await Store.open(theirs)
        [_, advice] = str(refused.value).split(" run: ")
        owner.execute(advice.encode())
    store = await Store.open(theirs)
    await store.run("INSERT INTO cloud (id, instance, next_at) VALUES (1, 'here', 0)")
    await store.close()
    place(theirs).require()

    async def advance(_: TurnKey) -> None: ...

    engine = DurableEngine(theirs, advance)
    await engine.start()
    await engine.drain()


@pytest.mark.parametrize("swallows", [False, True], ids=["it refuses our options", "it swallows them"])
async def test_a_pooler_is_named(postgres: PostgresServer, swallows: bool) -> None:
    address = postgres.fresh().reveal()
    async with Pooler.running(postgres.port, swallows=swallows) as pooler:
        with pytest.raises(StoreError) as refused:
            await Store.open(Secret(address.replace(str(postgres.port), str(pooler.port))))
    assert str(refused.value) == access.POOLER


async def test_doctor_sees_a_pooler_that_looks_like_the_server(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    async with Pooler.running(postgres.port, swallows=True, search_path="bot") as pooler:
        for port in (postgres.port, pooler.port):
            store = await Store.open(Secret(address.reveal().replace(str(postgres.port), str(port))))
            found = (await server.examine(store))[0]
            assert ("pooler" in found.words) is (port == pooler.port), found
            await store.close()
