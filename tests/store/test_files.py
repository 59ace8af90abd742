"""KeptFiles are whole, or as they were before, in each home: the folder, the store's chunks, a bucket.

A file in a home other than the folder reaches a service on another machine."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.errors import StoreError, TransientError
from bot.store import operations
from bot.store.base import Address, Store
from bot.store.bucket.home import PART_BYTES
from bot.store.chunks import CHUNK_BYTES, ChunkHome
from bot.store.file_home import StoredFile
from bot.store.files import KeptFiles
from tests.world.s3_bucket import SimulatedBucket

NAME = "transcripts/one.jsonl"
homes = pytest.mark.parametrize("home", ["folder", "chunks", "bucket"])
remote = pytest.mark.parametrize("home", ["chunks", "bucket"])


class Machines:
    """Two machines on one store; with the folder for a home it is one, after a restart."""

    def __init__(self, here: KeptFiles, there: KeptFiles, store: Store, clock: list[float]) -> None:
        self.here = here
        self.there = there
        self.store = store
        self.clock = clock
        self.bucket: SimulatedBucket | None = None

    async def held(self) -> int:
        """Count the pieces that the home holds."""
        if self.bucket is not None:
            return len(self.bucket.objects)
        row = await self.store.one("SELECT COUNT(*) AS n FROM file_chunks")
        assert row is not None
        return int(row["n"])

    async def lose_a_piece(self, name: str) -> None:
        if self.bucket is not None:
            [key] = [one for one in self.bucket.objects if name in one]
            self.bucket.objects[key] = self.bucket.objects[key][:-1]
        else:
            await self.store.run("DELETE FROM file_chunks WHERE n = 1")


@pytest.fixture
async def machines(home: str, tmp_path: Path, address: Address) -> AsyncIterator[Machines]:
    clock = [1_790_000_000.0]
    store = await Store.open(address, clock=lambda: clock[0])
    async with SimulatedBucket.running() as bucket:
        if home == "bucket":
            here, there = (KeptFiles.of(store, tmp_path / one, bucket.settings()) for one in ("here", "there"))
        elif home == "chunks":
            here, there = (KeptFiles(store, tmp_path / one, (ChunkHome(store),)) for one in ("here", "there"))
        else:
            here, there = KeptFiles(store, tmp_path / "here"), KeptFiles(store, tmp_path / "here")
        made = Machines(here, there, store, clock)
        made.bucket = bucket if home == "bucket" else None
        yield made
        await here.close()
        await there.close()
    await store.close()


def put(files: KeptFiles, data: bytes, name: str = NAME) -> None:
    files.path(name).parent.mkdir(parents=True, exist_ok=True)
    files.path(name).write_bytes(data)


def content(size: int) -> bytes:
    return (bytes(at % 251 for at in range(1000)) * (size // 1000 + 1))[:size]


@homes
@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 1])
async def test_a_file_arrives_at_another_machine(machines: Machines, size: int) -> None:
    put(machines.here, content(size))
    await machines.here.save(NAME)
    path = await machines.there.fetch(NAME)
    assert path is not None
    assert path.read_bytes() == content(size)
    assert [one.name for one in path.parent.iterdir()] == ["one.jsonl"]
    if machines.there.home is not None:
        assert path.stat().st_mode & 0o777 == 0o600


@homes
async def test_a_newer_file_replaces_a_stale_copy(machines: Machines) -> None:
    for data in (b"old\n", b"new\n"):
        put(machines.here, data)
        await machines.here.save(NAME)
        await machines.here.save(NAME)
        path = await machines.there.fetch(NAME)
        assert path is not None
        assert path.read_bytes() == data
    assert await machines.held() == (0 if machines.here.home is None else 1)


@homes
async def test_what_is_forgotten_is_gone_everywhere(machines: Machines) -> None:
    for name in (NAME, "transcripts/two.jsonl", "kept/three.bundle"):
        put(machines.here, b"x", name)
        await machines.here.save(name)
    assert await machines.there.names("transcripts/") == [NAME, "transcripts/two.jsonl"]
    assert await machines.there.names("transcripts/o") == [NAME]
    await machines.there.forget(NAME)
    assert await machines.there.names("transcripts/") == ["transcripts/two.jsonl"]
    assert await machines.there.fetch(NAME) is None
    machines.clock[0] += 100
    await machines.there.forget_older("transcripts", max(machines.clock[0] - 10, 4e9))
    assert await machines.there.fetch("transcripts/two.jsonl") is None
    assert await machines.there.fetch("kept/three.bundle") is not None
    assert await machines.held() == (0 if machines.here.home is None else 1)


@remote
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
    await machines.here.sweep()
    assert await machines.held() == 2, "it may still be under way"
    machines.clock[0] += 2 * 86_400
    await machines.here.sweep()
    assert await machines.held() == 1


def interrupted(*_: object, **__: object) -> None:
    raise InterruptedError


@remote
async def test_a_check_names_a_file_that_lost_a_part(machines: Machines) -> None:
    for name, size in (("kept/empty.bundle", 0), ("kept/large.bundle", CHUNK_BYTES + 1)):
        put(machines.here, bytes(size), name)
        await machines.here.save(name)
    assert await operations.check(machines.store, machines.here) == []
    await machines.lose_a_piece("large")
    lost = ["the stored file kept/large.bundle is missing or incomplete"]
    assert await operations.check(machines.store, machines.here) == lost


@remote
async def test_a_file_that_is_lost_is_none_unless_a_copy_is_here(machines: Machines) -> None:
    put(machines.here, content(CHUNK_BYTES + 1))
    await machines.here.save(NAME)
    await machines.here._remove(await stored(machines))
    assert await machines.there.fetch(NAME) is None
    put(machines.there, b"an older copy\n")
    path = await machines.there.fetch(NAME)
    assert path is not None
    assert path.read_bytes() == b"an older copy\n"


async def stored(machines: Machines) -> StoredFile:
    [file] = await StoredFile.many(machines.store, "SELECT * FROM files")
    return file


@remote
async def test_a_damaged_file_is_refused(machines: Machines) -> None:
    put(machines.here, b"x")
    await machines.here.save(NAME)
    await machines.store.run("UPDATE files SET sha256 = 'other'")
    with pytest.raises(StoreError, match="damaged"):
        await machines.there.fetch(NAME)
    assert not list((machines.there.path(NAME).parent).iterdir())


@remote
async def test_a_file_that_changes_while_it_is_stored_is_stored_again(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(machines.here, b"first\n")
    measured = await machines.here._measured(NAME)
    put(machines.here, b"second\n")
    with pytest.raises(TransientError, match="changed"):
        await machines.here._put(measured)
    assert await machines.there.fetch(NAME) is None


@pytest.mark.parametrize("home", ["chunks"])
async def test_files_move_into_a_bucket_and_back(machines: Machines, tmp_path: Path) -> None:
    names = ("kept/work.bundle", NAME)
    for name in names:
        put(machines.here, content(PART_BYTES + 1), name)
        await machines.here.save(name)
    async with SimulatedBucket.running() as bucket:
        in_bucket = KeptFiles.of(machines.store, tmp_path / "here", bucket.settings())
        assert (await in_bucket.fetch(NAME)) is not None, "what was stored before is found without a move"
        assert await machines.here.move(in_bucket) == 2
        assert (await machines.held(), len(bucket.objects)) == (0, 2)
        elsewhere = KeptFiles.of(machines.store, tmp_path / "elsewhere", bucket.settings())
        for name in names:
            path = await elsewhere.fetch(name)
            assert path is not None
            assert path.read_bytes() == content(PART_BYTES + 1)
        assert await elsewhere.move(KeptFiles(machines.store, tmp_path / "elsewhere")) == 2
        assert bucket.objects == {}
        assert not await StoredFile.many(machines.store, "SELECT * FROM files")
        assert all((tmp_path / "elsewhere" / name).is_file() for name in names)
        await in_bucket.close()
        await elsewhere.close()


@remote
async def test_copies_of_what_was_forgotten_elsewhere_go(machines: Machines) -> None:
    young = NAME.replace("one", "young")
    put(machines.here, b"words")
    await machines.here.save(NAME)
    copy = await machines.there.fetch(NAME)
    assert copy is not None
    put(machines.there, b"not stored yet", young)
    os.utime(copy, (1_700_000_000, 1_700_000_000))
    await machines.there.forget_copies()
    assert copy.exists(), "it is stored"
    await machines.here.forget(NAME)
    await machines.there.forget_copies()
    assert not copy.exists()
    assert machines.there.path(young).exists()
