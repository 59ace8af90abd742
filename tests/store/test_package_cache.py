"""The cache of packages: whole or absent, within its room, the last used longest."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from bot.store.package_cache import BLOCK, HEAD_SIZE, PackageCache


async def put(cache: PackageCache, account: str, question: str, data: bytes) -> None:
    async with cache.arriving() as answer:
        for at in range(0, len(data), 70_000):
            await answer.write(data[at : at + 70_000])
        await cache.keep(account, question, answer, "application/octet-stream", '"1"')


async def read(cache: PackageCache, account: str, question: str) -> bytes | None:
    found = await cache.find(account, question)
    return None if found is None else await found.body()


async def test_what_was_kept_is_found_by_its_account_also_after_a_restart(tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    cache = PackageCache(tmp_path, 100 << 20)
    await asyncio.gather(*(put(cache, "1", "a", data) for _ in range(4)))
    await put(cache, "1", "the same under another name", data)
    assert cache.size == len(data) + 2 * HEAD_SIZE
    for one in (cache, PackageCache(tmp_path, 100 << 20)):
        assert await read(one, "1", "a") == data
        assert await read(one, "2", "a") is None and await read(one, "1", "b") is None
        assert one.size == len(data) + 2 * HEAD_SIZE
    found = await cache.find("1", "a")
    assert found is not None
    assert (found.head.etag, found.head.sha256) == ('"1"', hashlib.sha256(data).hexdigest())
    await found.body()


async def test_torn_and_damaged_files_are_misses(tmp_path: Path) -> None:
    cache = PackageCache(tmp_path, 100 << 20)
    await put(cache, "1", "a", b"whole" * 1000)
    async with cache.arriving() as answer:  # the registry's connection broke: nobody calls keep
        await answer.write(b"x" * (2 * BLOCK))
    (kept,) = (tmp_path / "packages/1/bytes").iterdir()
    kept.write_bytes(b"torn")
    await put(cache, "2", "large", b"x" * (2 * BLOCK))
    for _ in range(2):
        assert await read(cache, "2", "large") is not None
    (kept,) = (tmp_path / "packages/2/bytes").iterdir()
    kept.write_bytes(b"y" * (2 * BLOCK))
    assert await read(cache, "2", "large") is None, "hashed again, because the file has changed"
    (tmp_path / "packages/arriving/left").write_bytes(b"by a crash")
    (tmp_path / "packages/1/answers" / ("0" * 64)).write_bytes(b"not JSON")
    for one in (cache, PackageCache(tmp_path, 100 << 20)):
        assert await read(one, "1", "a") is None
        assert one.size == 0
    assert not [path for path in (tmp_path / "packages").rglob("*") if path.is_file()]
    await put(cache, "1", "a", b"again")
    assert await read(cache, "1", "a") == b"again"


async def test_the_room_is_kept_and_the_last_used_stay(tmp_path: Path) -> None:
    cache = PackageCache(tmp_path, 100_000)
    for name in "abcd":
        await put(cache, "1", name, name.encode() * 8000)
    assert await read(cache, "1", "a") is not None  # used again: b is the oldest now
    opened = await cache.find("1", "b")
    await put(cache, "1", "e", b"e" * 8000)  # an account has half of the room
    await put(cache, "1", "larger than its share", b"x" * 50_001)
    await put(cache, "2", "f", b"f" * 39_000)
    await put(cache, "3", "g", b"g" * 39_000)
    held = {name for account in "123" for name in "abcdefg" if await read(cache, account, name)}
    assert held == {"e", "f", "g"}
    assert cache.size == 8000 + 2 * 39_000 + 3 * HEAD_SIZE
    assert opened is not None and await opened.body() == b"b" * 8000  # somebody was still reading it
    stored = sum(path.stat().st_size for path in (tmp_path / "packages").glob("*/bytes/*"))
    assert stored + 3 * HEAD_SIZE == cache.size


async def test_questions_with_the_same_answer_take_room_as_well(tmp_path: Path) -> None:
    """A client inside can ask for the same file in any number of ways."""
    cache = PackageCache(tmp_path, 100_000)
    for n in range(100):
        await put(cache, "1", f"file?{n}", b"same")
    assert len(list((tmp_path / "packages/1/answers").iterdir())) * HEAD_SIZE <= 50_000
    assert await read(cache, "1", "file?99") == b"same"
    again = PackageCache(tmp_path, 100_000)
    assert await read(again, "1", "file?99") == b"same" and again.size == cache.size
