"""Written, read, described, listed, moved, watched, removed."""

from __future__ import annotations

import asyncio
import io
import urllib.error
import urllib.request

import pytest
from e2b import AsyncSandbox, FileNotFoundException, FilesystemEventType, FileType, InvalidArgumentException
from e2b.sandbox.filesystem.filesystem import WriteEntry

from tests.e2b_stand_in.conftest import until

HOME = "/home/user"


@pytest.mark.parametrize("data", ["words", b"bytes", io.BytesIO(b"a stream")], ids=["text", "bytes", "stream"])
async def test_what_was_written_is_read(box: AsyncSandbox, data: str | bytes | io.BytesIO) -> None:
    wanted = {"str": "words", "bytes": "bytes", "BytesIO": "a stream"}[type(data).__name__]
    if isinstance(data, io.BytesIO):
        data.seek(0)
    info = await box.files.write("file", data)
    assert (info.path, info.type, info.name) == (f"{HOME}/file", FileType.FILE, "file")
    assert await box.files.exists("file")
    assert await box.files.read("file") == wanted
    assert await box.files.read("file", format="bytes") == bytearray(wanted.encode())
    stream = await box.files.read("file", format="stream")
    assert b"".join([block async for block in stream]) == wanted.encode()


async def test_a_new_file_takes_the_old_ones_place_also_in_new_folders(box: AsyncSandbox) -> None:
    for text in ("first, and longer", "second"):
        await box.files.write("a/b/file", text)
    assert await box.files.read(f"{HOME}/a/b/file") == "second"


async def test_many_in_one_go(box: AsyncSandbox) -> None:
    assert await box.files.write_files([]) == []
    entries = [WriteEntry(path=f"many/{number}", data=f"text {number}") for number in range(10)]
    written = await box.files.write_files(entries)
    assert [one.path for one in written] == [f"{HOME}/many/{number}" for number in range(10)]
    assert [await box.files.read(one.path) for one in written] == [f"text {number}" for number in range(10)]


async def test_what_is_not_there_is_told_so(box: AsyncSandbox) -> None:
    for call in (box.files.read("none"), box.files.get_info("none"), box.files.list("none")):
        with pytest.raises(FileNotFoundException):
            await call
    with pytest.raises(FileNotFoundException):
        await box.files.rename("none", "other")
    assert not await box.files.exists("none")
    await box.files.remove("none")


async def test_a_file_is_described(box: AsyncSandbox) -> None:
    await box.files.write("file", "text")
    info = await box.files.get_info("file")
    assert (info.name, info.type, info.path, info.size) == ("file", FileType.FILE, f"{HOME}/file", 4)
    assert (info.mode, info.permissions, info.owner, info.group) == (0o644, "-rw-r--r--", "user", "user")
    assert info.modified_time.tzinfo is not None
    assert info.symlink_target is None


async def test_a_folder_is_described(box: AsyncSandbox) -> None:
    await box.files.make_dir("folder")
    info = await box.files.get_info("folder")
    assert (info.type, info.mode, info.permissions) == (FileType.DIR, 0o755, "drwxr-xr-x")
    assert (info.owner, info.group, info.size > 0) == ("user", "user", True)


async def test_a_link_is_described_by_what_it_leads_to(box: AsyncSandbox) -> None:
    await box.files.write("real", "text")
    await box.commands.run("ln -s real link")
    info = await box.files.get_info("link")
    assert (info.type, info.symlink_target) == (FileType.FILE, f"{HOME}/real")


async def test_a_list_goes_as_deep_as_was_asked_for(box: AsyncSandbox) -> None:
    for path in ("top/one/a", "top/one/b", "top/two/a"):
        await box.files.make_dir(path)
    await box.files.write("top/file", "text")
    names = [(one.name, one.type) for one in await box.files.list("top")]
    assert names == [("file", FileType.FILE), ("one", FileType.DIR), ("two", FileType.DIR)]
    for depth in (2, 3):
        deeper = [one.path for one in await box.files.list("top", depth=depth)]
        below = ("file", "one", "one/a", "one/b", "two", "two/a")
        assert deeper == [f"{HOME}/top/{name}" for name in below]
    for depth in (0, -1):
        with pytest.raises(InvalidArgumentException, match="depth should be at least 1"):
            await box.files.list("top", depth=depth)
    with pytest.raises(InvalidArgumentException, match="not a directory"):
        await box.files.list("top/file")


async def test_folders_are_made_once(box: AsyncSandbox) -> None:
    assert await box.files.make_dir("deep/er")
    assert not await box.files.make_dir("deep/er")


async def test_moved_and_removed(box: AsyncSandbox) -> None:
    await box.files.write("old", "text")
    info = await box.files.rename("old", "folder/new")
    assert (info.name, info.path) == ("new", f"{HOME}/folder/new")
    assert not await box.files.exists("old")
    assert await box.files.read("folder/new") == "text"
    await box.files.remove("folder")
    assert not await box.files.exists("folder/new")


async def test_a_file_of_the_kernels_has_no_size_and_is_read(box: AsyncSandbox) -> None:
    assert (await box.files.read("/proc/self/status")).startswith("Name:")


async def test_gzip_is_the_lines_matter(box: AsyncSandbox) -> None:
    await box.files.write("zipped", "text" * 1000, gzip=True)
    assert await box.files.read("zipped") == "text" * 1000
    assert await box.files.read("zipped", gzip=True) == "text" * 1000


async def test_a_signed_address_opens_one_file_until_it_expires(box: AsyncSandbox) -> None:
    await box.files.write("file", "text")

    def opened(url: str) -> str:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())

    good = box.download_url("file", "user", use_signature_expiration=600)
    assert await asyncio.to_thread(opened, good) == "text"
    expired = box.download_url("file", "user", use_signature_expiration=-600)
    for url in (expired, good.replace("file", "other", 1) + "x"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            await asyncio.to_thread(opened, url)
        refused.value.close()


async def test_a_watch_tells_what_becomes_of_a_file(box: AsyncSandbox) -> None:
    await box.files.write("watched/file", "text")
    seen: list[tuple[str, FilesystemEventType]] = []
    handle = await box.files.watch_dir("watched", on_event=lambda event: seen.append((event.name, event.type)))
    await box.files.write("watched/file", "other text")

    async def told() -> bool:
        return ("file", FilesystemEventType.WRITE) in seen

    await until(told)
    await handle.stop()  # type: ignore[no-untyped-call]
    with pytest.raises(FileNotFoundException):
        await box.files.watch_dir("none", on_event=lambda event: None)
