"""KeptFiles reach a service on another machine through the store, whole or as they were before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.store.base import Store
from bot.store.files import KeptFiles
from bot.store.rows import CHUNK_BYTES
from tests.world.postgres import PostgresServer

NAME = "transcripts/one.jsonl"


class Machines:
    """Two machines on one store."""

    def __init__(self, store: Store, root: Path, clock: list[float]) -> None:
        self.store = store
        self.here = KeptFiles(store, root / "here", shared=True)
        self.there = KeptFiles(store, root / "there", shared=True)
        self.clock = clock


@pytest.fixture
async def machines(tmp_path: Path, postgres: PostgresServer) -> AsyncIterator[Machines]:
    clock = [1_790_000_000.0]
    store = await Store.open(postgres.fresh(), clock=lambda: clock[0])
    yield Machines(store, tmp_path, clock)
    await store.close()


def put(files: KeptFiles, data: bytes, name: str = NAME) -> None:
    files.path(name).parent.mkdir(parents=True, exist_ok=True)
    files.path(name).write_bytes(data)


async def chunks(store: Store) -> int:
    row = await store.one("SELECT COUNT(*) AS n FROM file_chunks")
    assert row is not None
    return int(row["n"])


@pytest.mark.postgres
@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 1])
async def test_a_file_arrives_at_another_machine(machines: Machines, size: int) -> None:
    data = bytes(at % 251 for at in range(min(size, 1000))) * (size // 1000 + 1)
    put(machines.here, data[:size])
    await machines.here.save(NAME)
    path = await machines.there.fetch(NAME)
    assert path is not None
    assert path.read_bytes() == data[:size]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["one.jsonl"]


@pytest.mark.postgres
async def test_a_newer_file_replaces_a_stale_copy(machines: Machines) -> None:
    for data in (b"old\n", b"new\n"):
        put(machines.here, data)
        await machines.here.save(NAME)
        await machines.here.save(NAME)
        path = await machines.there.fetch(NAME)
        assert path is not None
        assert path.read_bytes() == data
    assert await chunks(machines.store) == 1


@pytest.mark.postgres
async def test_a_save_that_was_interrupted_changes_nothing_and_is_swept(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(machines.here, b"old\n")
    await machines.here.save(NAME)
    put(machines.here, b"new\n")
    with monkeypatch.context() as patch:
        patch.setattr(KeptFiles, "_publish", interrupted)
        with pytest.raises(InterruptedError):
            await machines.here.save(NAME)
    path = await machines.there.fetch(NAME)
    assert path is not None
    assert path.read_bytes() == b"old\n"
    await machines.here.forget_older("transcripts", 0.0)
    assert await chunks(machines.store) == 2, "it may still be under way"
    machines.clock[0] += 2 * 86_400
    await machines.here.forget_older("transcripts", 0.0)
    assert await chunks(machines.store) == 1


def interrupted(*_: object) -> None:
    raise InterruptedError


@pytest.mark.postgres
async def test_what_is_forgotten_is_gone_everywhere(machines: Machines) -> None:
    for name in (NAME, "transcripts/two.jsonl", "kept/three.bundle"):
        put(machines.here, b"x", name)
        await machines.here.save(name)
    assert await machines.there.names("transcripts/") == [NAME, "transcripts/two.jsonl"]
    await machines.there.forget(NAME)
    assert await machines.there.names("transcripts/") == ["transcripts/two.jsonl"]
    assert await machines.there.fetch(NAME) is None
    machines.clock[0] += 100
    await machines.there.forget_older("transcripts", machines.clock[0] - 10)
    assert await machines.there.fetch("transcripts/two.jsonl") is None
    assert await machines.there.fetch("kept/three.bundle") is not None
    assert await chunks(machines.store) == 1


@pytest.mark.postgres
async def test_a_check_names_a_file_that_lost_a_part(machines: Machines) -> None:
    for name, size in (("kept/empty.bundle", 0), ("kept/large.bundle", CHUNK_BYTES + 1)):
        put(machines.here, bytes(size), name)
        await machines.here.save(name)
    assert await machines.store.backend.check() == []
    await machines.store.run("DELETE FROM file_chunks WHERE n = 1")
    assert await machines.store.backend.check() == ["the stored file kept/large.bundle is incomplete"]


@pytest.mark.postgres
async def test_a_damaged_file_is_refused(machines: Machines) -> None:
    put(machines.here, b"x")
    await machines.here.save(NAME)
    await machines.store.run("UPDATE files SET sha256 = 'other'")
    with pytest.raises(StoreError, match="damaged"):
        await machines.there.fetch(NAME)
    assert not list((machines.there.path(NAME).parent).iterdir())


async def test_on_one_machine_the_folder_is_all(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "data" / "state.db")
    files = KeptFiles.of(store, tmp_path / "data", tmp_path / "data" / "state.db")
    put(files, b"x")
    await files.save(NAME)
    assert await files.fetch(NAME) == files.path(NAME)
    assert await files.names("transcripts/o") == [NAME]
    assert await chunks(store) == 0
    await files.forget(NAME)
    assert await files.fetch(NAME) is None
    await store.close()
